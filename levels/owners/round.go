package owners

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// stableAfter is how long the same instances must be there before lanes move from one that lives to another.
	stableAfter = 5 * time.Second
	// namesakeAfter is how long a counter must stand still if it belonged to an earlier run of this very instance.
	namesakeAfter = time.Second
	// sweepAfter is when the counter of an instance that left is removed.
	sweepAfter = 10 * time.Second
	// swaps is how often one round tries to write against others.
	swaps = 10
)

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
		if errors.Is(err, errNothing) {
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

// agree brings the table and what is owned here together.
func (s *Shared) agree(ctx context.Context, sent time.Time) error {
	for range swaps {
		s.reconcile(sent)
		t, released := s.proposal(time.Now())
		if !t.equal(s.table) {
			err := s.write(ctx, t)
			if errors.Is(err, errConflict) {
				time.Sleep(rand.N(roundPause))
				err = s.follow(ctx, 0)
				if err == nil {
					continue
				}
			}
			if err != nil {
				return err
			}
		}
		s.finish(released)
		s.grant()
		s.handOver(time.Now())
		return nil
	}
	return errConflict
}

// reconcile ends the leases of lanes that are somebody else's now.
func (s *Shared) reconcile(sent time.Time) {
	before := s.standing.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	for lane, l := range s.leases {
		c, known := s.table.Lanes[lane]
		if known && (c.Instance != s.id || c.Epoch != l.epoch) {
			s.log.Warn("another instance has taken over a lane", "stream", lane, "instance", c.Instance)
			s.lose(l)
		}
	}
	now := s.at(time.Now())
	lapsed := !before.good(now, true)
	s.standing.Store(&standing{since: s.at(sent)})
	for lane, l := range s.leases {
		if l.owes.stuck(now) && len(l.beats) > 0 {
			s.log.Error("the loop of a lane does not turn; giving it up", "stream", lane)
			s.lose(l)
			continue
		}
		if lapsed || s.company() {
			l.beat(now)
		}
	}
}

// lose is called under the lock.
func (s *Shared) lose(l *shared) {
	l.lose()
	delete(s.leases, l.lane)
}

// company reports whether anybody else may be there.
func (s *Shared) company() bool {
	return len(s.others(s.table)) > 0 || len(s.roster.seen) > 0 ||
		time.Since(s.base)-time.Duration(s.heard.Load()) < lostAfter
}

func (s *Shared) others(t Table) []string {
	return slices.DeleteFunc(t.members(), func(id string) bool { return id == s.id })
}

// proposal is the table as it should be by what is known here, and the releases that are in it.
func (s *Shared) proposal(now time.Time) (Table, []*release) {
	t := s.table.clone()
	for _, id := range s.others(t) {
		if s.roster.still(id) >= s.patience(t.Instances[id]) {
			t.drop(id)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var lanes []string
	for lane := range s.waiters {
		lanes = append(lanes, lane)
	}
	for lane, l := range s.leases {
		if _, known := t.Lanes[lane]; !known {
			t.claim(lane, s.id) // somebody removed the table
			l.epoch = t.Lanes[lane].Epoch
		}
		lanes = append(lanes, lane)
	}
	released := slices.Clone(s.releases)
	for _, r := range released {
		if s.leases[r.lease.lane] == r.lease {
			t.free(r.lease.lane, r.at)
		}
	}
	for lane, c := range t.Lanes {
		if c.Instance == s.id && s.leases[lane] == nil && s.waiters[lane] == nil {
			t.free(lane, Cursor{})
		}
	}
	if s.leaving {
		lanes = nil
	}
	slices.Sort(lanes)
	t.join(s.id, s.cfg.Name, slices.Compact(lanes))
	for lane, id := range shares(t, s.cfg.MaxOwners) {
		c, known := t.Lanes[lane]
		if id == s.id && c.Instance == "" && s.waiters[lane] != nil && (known || s.mayFound(t, now)) {
			t.claim(lane, s.id)
		}
	}
	return t, released
}

// patience is how long an instance's counter may stand still.
func (s *Shared) patience(i Instance) time.Duration {
	if i.Name != "" && i.Name == s.cfg.Name {
		return namesakeAfter
	}
	return lostAfter
}

// mayFound reports whether a lane that is in no table may be claimed: others may own it and be about to say so.
func (s *Shared) mayFound(t Table, now time.Time) bool {
	return now.Sub(s.stable) >= stableAfter || !s.rewritten && len(t.Instances) == 1
}

// write replaces the table, and tells the others to look.
func (s *Shared) write(ctx context.Context, t Table) error {
	body, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("bug: encode the table of lanes: %w", err)
	}
	seq, err := s.bucket.swap(ctx, s.bucket.Table, body, s.revision)
	if err != nil {
		return err
	}
	for _, id := range s.others(s.table) {
		if _, stays := t.Instances[id]; !stays {
			s.log.Warn("an instance has stopped; others take over its lanes", "instance", id, "still", s.roster.still(id).Round(time.Millisecond))
		}
	}
	s.adopt(t, seq, time.Now())
	s.call()
	return nil
}

func (s *Shared) call() {
	if err := s.bucket.conn.Publish(s.bucket.Call, []byte(s.id)); err != nil {
		s.log.Debug("calling the other instances", "err", err)
	}
}

// finish ends the leases that are released.
func (s *Shared) finish(released []*release) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range released {
		if s.leases[r.lease.lane] == r.lease {
			s.lose(r.lease)
		}
		close(r.done)
	}
	s.releases = slices.DeleteFunc(s.releases, func(r *release) bool { return slices.Contains(released, r) })
}

// grant hands out what the table says is ours, and tells those who wait for what is another's.
func (s *Shared) grant() {
	var waiting []func()
	s.mu.Lock()
	for lane, w := range s.waiters {
		switch c := s.table.Lanes[lane]; {
		case c.Instance == s.id && s.leases[lane] == nil:
			l := &shared{
				of: s, lane: lane, from: Cursor{Next: c.Next, Created: c.Created}, epoch: c.Epoch,
				beats: make(chan struct{}, 1), done: make(chan struct{}),
			}
			s.leases[lane] = l
			w.got <- l
			delete(s.waiters, lane)
		case s.roster.lives(c.Instance):
			waiting = append(waiting, w.waiting)
		}
	}
	s.mu.Unlock()
	for _, f := range waiting {
		f()
	}
}

// handOver asks the owners here to give up what should be another's. The lane is free, and the other's, when they have
// released it.
func (s *Shared) handOver(now time.Time) {
	if now.Sub(s.stable) < stableAfter {
		return
	}
	share := shares(s.table, s.cfg.MaxOwners)
	s.mu.Lock()
	defer s.mu.Unlock()
	for lane, l := range s.leases {
		if to := share[lane]; to != s.id && s.roster.lives(to) && !l.ended {
			s.log.Info("handing a lane over", "stream", lane, "to", to)
			l.end()
		}
	}
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
