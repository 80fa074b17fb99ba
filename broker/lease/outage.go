package lease

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// failed notes that a round was in vain. Whoever was in good standing stays so while it keeps trying: what it cannot
// write, others cannot either, unless it is cut off, and then two owners are better than none.
func (s *Shared) failed(ctx context.Context, sent time.Time, err error) {
	if s.failing.IsZero() {
		s.failing = sent
	}
	st := s.standing.Load()
	switch {
	case errors.Is(err, errConflict): // the beat was good
	case isFull(err) && s.seesTable(ctx):
		s.roster.failed()
		s.reconcile(sent) // nobody can have replaced us: a leader says that nobody can write, and shows what was written
	default:
		s.roster.failed()
		if st.good(s.at(time.Now()), true) {
			silent := s.at(sent)
			s.standing.Store(&standing{since: st.since, silent: &silent})
		}
	}
	now := time.Now()
	s.ask(now)
	if now.Sub(s.failing) >= lostAfter {
		s.finish(s.released()) // who waits for it stops, and the others hear that it has nothing
	}
	if long := now.Sub(s.failing); long >= silentAfter || isFull(err) && long >= lostAfter { // a leader that answers is no election
		s.assume(now)
	}
	s.recreate(ctx)
}

// seesTable reads the table once more, shortly.
func (s *Shared) seesTable(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	return s.readTable(ctx, false) == nil && s.known
}

func (s *Shared) released() []*release {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.releases)
}

// recreate makes the bucket if it is gone.
func (s *Shared) recreate(ctx context.Context) {
	if s.cfg.Create == nil || ctx.Err() != nil || !s.bucket.conn.IsConnected() {
		return
	}
	if err := s.bucket.exists(ctx); !errors.Is(err, jetstream.ErrStreamNotFound) {
		return
	}
	if err := s.cfg.Create(ctx); err != nil {
		s.log.Warn("cannot create the stream that instances meet in", "stream", s.bucket.Stream, "err", err)
		return
	}
	s.log.Warn("the stream that instances meet in was gone, and is created anew", "stream", s.bucket.Stream)
}

// assume goes on without the bucket, when it could not be used for silentAfter, or was full for lostAfter. Every instance says what it has, and keeps
// it. What nobody says it has goes to those who are heard, as evenly as ever: all of them compute the same. Those who do not
// hear each other own the same lanes; copies of a message have one id, and a message that nobody delivers has nothing.
func (s *Shared) assume(now time.Time) {
	t := s.assembly(now)
	share := shares(t, s.cfg.MaxOwners)
	if _, ok := s.alerted.Allow(alertEvery); ok {
		s.log.Error("the stream that instances meet in cannot be used: going on without it, by what instances say to each other. "+
			"Messages may come twice, under one id, until it is back", "stream", s.bucket.Stream, "since", s.failing.UTC(), "instances", len(t.Instances))
	}
	s.standing.Store(&standing{since: s.at(now)})
	var waiting []func()
	s.mu.Lock()
	for lane, l := range s.leases {
		if owner := t.Lanes[lane].Instance; owner != s.id {
			s.log.Warn("another instance says that it owns a lane", "stream", lane, "instance", owner)
			s.lose(l)
			continue
		}
		l.denied.Store(false)
		l.beat(s.at(now))
	}
	for lane, w := range s.waiters {
		switch owner := t.Lanes[lane].Instance; {
		case owner != "":
			waiting = append(waiting, w.waiting)
		case share[lane] == s.id && !s.leaving:
			s.give(lane, w).assumed = true
		}
	}
	s.mu.Unlock()
	for _, f := range waiting {
		f()
	}
}

// assembly is the table of those who are heard, by what they say. Of two who say that they own a lane, it belongs to whom
// a later table gave it.
func (s *Shared) assembly(now time.Time) Table {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, epochs := Table{}.clone(), make(map[string]uint64)
	enter := func(id string, wants []string) {
		t.Instances[id] = Instance{Joined: s.table.Instances[id].Joined, Lanes: wants}
	}
	claim := func(id, lane string, epoch uint64) {
		owner, before := t.Lanes[lane].Instance, epochs[lane]
		if owner == "" || epoch > before || epoch == before && id < owner {
			t.Lanes[lane], epochs[lane] = Claim{Instance: id}, epoch
		}
	}
	enter(s.id, s.wants())
	for lane, l := range s.leases {
		if l.assumed {
			claim(s.id, lane, 0)
		} else {
			claim(s.id, lane, l.epoch)
		}
	}
	for id, w := range s.spoken {
		if now.Sub(w.at) < lostAfter {
			enter(id, w.Wants)
			for lane, epoch := range w.Owns {
				claim(id, lane, epoch)
			}
		}
	}
	return t
}
