package owners

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// sweepAfter is when the counter of an instance that left is removed.
const sweepAfter = 10 * time.Second

// errStale is returned when an answer did not show what was stored before the question.
var errStale = errors.New("a server answered from the past")

// round beats, reads what has happened, and acts on it. A round that reads its own beat has seen everything that was
// stored before: no replica that lags, and no leader that was deposed, can show that.
func (s *Shared) round(ctx context.Context, sent time.Time) error {
	s.begun = sent
	s.beats++
	seq, err := s.bucket.put(ctx, s.bucket.Beat+s.id, strconv.AppendUint(nil, s.beats, 10))
	if err == nil {
		if seq <= s.read {
			s.read, s.rewritten = 0, true // another stream
		}
		err = s.follow(ctx, seq)
	}
	if err == nil {
		s.roster.round(sent, time.Now(), s.others(s.table))
		err = s.agree(ctx, sent)
	}
	if err != nil {
		s.failed(ctx, sent, err)
		return err
	}
	s.plan(sent)
	return nil
}

// failed notes that nobody answered, and makes the bucket if that is why.
func (s *Shared) failed(ctx context.Context, sent time.Time, err error) {
	if errors.Is(err, errConflict) {
		return
	}
	s.roster.failed()
	s.read = 0 // who knows what happens meanwhile
	if st := s.standing.Load(); st != nil && !st.alone {
		silent := s.at(sent)
		s.standing.Store(&standing{since: st.since, silent: &silent})
	}
	if s.cfg.Create == nil || ctx.Err() != nil || !s.bucket.conn.IsConnected() {
		return
	}
	if _, err := s.bucket.next(ctx, 1); !errors.Is(err, jetstream.ErrStreamNotFound) {
		return
	}
	if err := s.cfg.Create(ctx); err != nil {
		s.log.Warn("cannot create the stream that instances meet in", "stream", s.bucket.Stream, "err", err)
		return
	}
	s.log.Warn("the stream that instances meet in was gone, and is created anew", "stream", s.bucket.Stream)
}

// follow reads what was stored since the last time, at least up to a sequence.
func (s *Shared) follow(ctx context.Context, until uint64) error {
	anew, found := s.read == 0, false
	for {
		e, err := s.bucket.next(ctx, s.read+1)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			break
		}
		if err != nil {
			return err
		}
		now := time.Now()
		s.read = e.Sequence
		if id, isBeat := strings.CutPrefix(e.Subject, s.bucket.Beat); isBeat && id != s.id {
			s.roster.saw(id, e.Sequence, !anew, now)
		}
		if e.Subject != s.bucket.Table {
			continue
		}
		found = true
		t, err := ParseTable(e.Data)
		if err != nil {
			return fmt.Errorf("the table of lanes in %s cannot be read; purge subject %s: %w", s.bucket.Stream, s.bucket.Table, err)
		}
		s.adopt(t, e.Sequence, now)
	}
	if s.read < until {
		return errStale
	}
	if anew && !found && s.revision > 0 {
		s.rewritten = true
		s.adopt(Table{}.clone(), 0, time.Now())
	}
	return nil
}

// adopt takes over a table that is stored.
func (s *Shared) adopt(t Table, revision uint64, now time.Time) {
	if !slices.Equal(t.members(), s.table.members()) {
		s.stable = now
	}
	s.table, s.revision = t, revision
	owned := make(map[string]string, len(t.Lanes))
	for lane, c := range t.Lanes {
		owned[lane] = c.Instance
	}
	s.mu.Lock()
	s.owners = owned
	s.mu.Unlock()
}

// plan says when the next round must be.
func (s *Shared) plan(sent time.Time) {
	if !s.company() && !s.wanting() {
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
	for _, id := range s.others(s.table) {
		sooner(s.roster.seen[id].since.Add(s.patience(s.table.Instances[id])))
		if !s.roster.lives(id) {
			s.call() // it may be alone, and beat only when it hears of us
		}
	}
	s.sweep()
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

// sweep removes the counters of those who are gone.
func (s *Shared) sweep() {
	for id := range s.roster.seen {
		if _, there := s.table.Instances[id]; there || s.roster.still(id) < sweepAfter {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), bucketTimeout)
		err := s.bucket.remove(ctx, s.bucket.Beat+id)
		cancel()
		if err != nil {
			s.log.Debug("removing the counter of an instance that is gone", "instance", id, "err", err)
		}
		s.roster.forget(id)
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
			err = s.follow(ctx, 0)
		}
		if err != nil {
			s.log.Warn("cannot tell the other instances that this one stops; they find out within seconds", "err", err)
			return
		}
	}
	if s.beats == 0 {
		return
	}
	if err := s.bucket.remove(ctx, s.bucket.Beat+s.id); err != nil {
		s.log.Debug("removing our counter", "err", err)
	}
}
