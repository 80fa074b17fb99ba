package lease

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"
)

// sweepAfter is when the counter of an instance that died is removed.
const sweepAfter = 10 * time.Second

// errStale is returned when an answer did not show what was stored before the question.
var errStale = errors.New("a server answered from the past")

// round beats, reads what has happened, and acts on it. Only of whoever shows our own beat is anything believed: no
// replica that lags, and no leader that was deposed, can show that.
func (s *Shared) round(ctx context.Context, sent time.Time) error {
	s.begun = sent
	s.beats++
	seq, err := s.bucket.put(ctx, s.bucket.Beat+s.id, strconv.AppendUint(nil, s.beats, 10))
	if err == nil {
		if seq <= s.stored {
			s.otherStream()
		}
		s.stored = seq
		err = s.bucket.shows(ctx, seq)
	}
	if err == nil {
		err = s.read(ctx, true)
	}
	if err == nil {
		s.roster.round(sent, time.Now(), s.others(s.table))
		err = s.agree(ctx, sent)
	}
	if err != nil {
		s.failed(ctx, sent, err)
		return err
	}
	s.failing = time.Time{}
	s.alerted.Reset()
	s.plan(sent)
	return nil
}

// plan says when the next round must be.
func (s *Shared) plan(sent time.Time) {
	s.sweep()
	if s.known && !s.company() && !s.wanting() {
		s.glanced = sent
		s.standing.Store(&standing{since: s.at(time.Now()), alone: true})
		return
	}
	s.look = sent.Add(beatEvery)
	sooner := func(t time.Time) {
		if t.After(sent) && t.Before(s.look) {
			s.look = t
		}
	}
	sooner(s.stable.Add(stableAfter))
	sooner(s.sweepAt)
	for _, id := range s.others(s.table) {
		sooner(s.roster.seen[id].since.Add(s.patience(id, s.table.Instances[id])))
		if !s.roster.lives(id) {
			s.ask(sent) // it may be alone, and beat only when it hears of us
		}
	}
}

// wanting reports whether a lane that is nobody's is waited for here.
func (s *Shared) wanting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for lane := range s.waiters {
		if s.table.Lanes[lane].Instance == "" {
			return true
		}
	}
	return false
}

// sweep removes the counters of those who are gone, when all others have raised theirs.
func (s *Shared) sweep() {
	switch now := time.Now(); {
	case s.sweepAt.IsZero():
	case s.sweepBelow == 0:
		s.sweepBelow = s.stored
	case !now.Before(s.sweepAt):
		ctx, cancel := context.WithTimeout(context.Background(), bucketTimeout)
		err := s.bucket.sweep(ctx, s.sweepBelow)
		cancel()
		if err != nil {
			s.log.Debug("removing the counters of instances that are gone", "err", err)
		}
		s.sweepBelow, s.sweepAt = 0, time.Time{}
	}
}

// leave takes this instance out of the table.
func (s *Shared) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*bucketTimeout)
	defer cancel()
	for range swaps {
		if _, in := s.table.Instances[s.id]; !in {
			break
		}
		t := s.table.clone()
		t.drop(s.id)
		err := s.write(ctx, t)
		if errors.Is(err, errConflict) {
			time.Sleep(rand.N(roundPause))
			err = s.readTable(ctx, true)
		}
		if err != nil {
			s.call() // that it has nothing
			s.log.Warn("cannot tell the other instances that this one stops; they find out within seconds", "err", err)
			return
		}
	}
	if s.stored == 0 {
		return
	}
	if err := s.bucket.remove(ctx, s.bucket.Beat+s.id); err != nil {
		s.log.Debug("removing our counter", "err", err)
	}
}
