package broker

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/budget"
	"delaybroker/broker/deliver"
	"delaybroker/broker/leader"
	"delaybroker/broker/lease"
	"delaybroker/broker/pause"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
	"delaybroker/broker/timer"
)

// This file has an instance act by the list of what is paused, and works the lanes of pauses. See package pause.

const (
	// haltPatience is how long an instance that learns of a pause waits for the results of what it has sent. A target that
	// answers nothing may be the reason for the pause.
	haltPatience = 2 * time.Second
	// drainGlance is how often the owner looks whether a lane that drains is empty.
	drainGlance = 50 * time.Millisecond
	// closeLeast is how long a pause is closing at least: every instance that is connected knows of it by then.
	closeLeast = time.Second
	// drainTurn is how long one lane may drain while others wait for it.
	drainTurn = 10 * time.Second
	// sweepSoon, sweepEvery and sweepRarely are how often the owner looks for what came too late into the lanes of pauses
	// that are over: in the first minute, in the first hour, and after.
	sweepSoon, sweepEvery, sweepRarely = 5 * time.Second, time.Minute, time.Hour
)

// pausing is what an instance knows of pauses, and does about them.
type pausing struct {
	*pause.Keeper
	deliverer *deliver.Deliverer     // set by begin
	said      map[string]pause.State // of the pauses that were logged; belongs to applyPauses
	owning    atomic.Bool            // this instance has the lease of the stream
}

// begin finds out what is paused, before lanes are worked.
func (p *pausing) begin(ctx context.Context, d *deliver.Deliverer) {
	p.deliverer, p.said = d, make(map[string]pause.State)
	p.Load(ctx)
}

// newKeeper makes what knows of the pauses.
func (b *Broker) newKeeper() *pause.Keeper {
	cfg := pause.Config{
		Store: pause.Store{
			Conn: b.conns.Control, API: b.cfg.APIPrefix, Names: b.names, Keys: b.keys.Policy.Keys,
		},
		Apply: b.applyPauses, Log: b.log,
		Count: func(ctx context.Context) (uint64, error) {
			ctx, cancel := context.WithTimeout(ctx, apiTimeout)
			defer cancel()
			sample, err := b.jetstream.Sample(ctx, b.names.PausedStream())
			return sample.Messages, err
		},
	}
	if b.cfg.Provision {
		cfg.Create = b.streams.CreatePaused
	}
	return pause.NewKeeper(cfg)
}

// applyPauses has nothing more sent to what is paused. Decisions go by the list already. It returns when all that was
// sent before has reached its server and, but for silent targets, has been answered.
func (b *Broker) applyPauses(ctx context.Context, l *pause.List) {
	b.sayPauses(l)
	if len(l.Present()) == 0 {
		b.pauses.deliverer.Halt(ctx, nil)
		return
	}
	halting, cancel := context.WithTimeout(ctx, haltPatience)
	defer cancel()
	b.pauses.deliverer.Halt(halting, l.Stops)
	flushing, cancelFlush := context.WithTimeout(ctx, haltPatience)
	defer cancelFlush()
	if err := b.conns.Deliver.FlushWithContext(flushing); err != nil {
		b.log.Debug("flush what was sent to targets that are paused now", "err", err)
	}
}

// sayPauses logs what has changed. The end of a pause that was over before this instance knew of it is no change.
func (b *Broker) sayPauses(l *pause.List) {
	for _, p := range l.Pauses {
		last, known := b.pauses.said[p.ID]
		if last == p.State {
			continue
		}
		b.pauses.said[p.ID] = p.State
		switch p.State {
		case pause.Paused:
			b.log.Info("a target is paused: what is due for it waits", "pattern", p.Pattern, "since", p.Since)
		case pause.Resuming:
			b.log.Info("a target is resumed: what waits goes out", "pattern", p.Pattern)
		case pause.Over:
			if known {
				b.log.Info("what waited for a paused target is out", "pattern", p.Pattern)
			}
		}
	}
}

// pauseLanes is what an instance needs that owns the stream of what is paused.
type pauseLanes struct {
	*Broker
	shared *instance
	lane   streams.Spec
	lease  lease.Lease // of the stream
	room   *budget.Budget
	counts *stats.Lane

	last  string               // the pause whose lane was drained last
	swept map[string]time.Time // when the lanes of pauses that are over were last looked at
}

func (b *Broker) newPauseLanes(
	i *instance, l streams.Spec, held lease.Lease, room *budget.Budget, counts *stats.Lane,
) *pauseLanes {
	return &pauseLanes{
		Broker: b, shared: i, lane: l, lease: held, room: room, counts: counts, swept: make(map[string]time.Time),
	}
}

// run drains the lanes of pauses that are resumed, one after the other, until ctx or the lease ends.
func (l *pauseLanes) run(ctx context.Context) error {
	l.pauses.owning.Store(true)
	defer l.pauses.owning.Store(false)
	glance := time.NewTimer(0)
	defer glance.Stop()
	for {
		changed := l.pauses.Changed()
		all, again := l.toDrain(ctx, time.Now())
		if len(all) > 0 {
			// The one after that which was drained last: one that cannot go on holds up no other for long.
			l.last = all[(slices.Index(all, l.last)+1)%len(all)]
			if err := l.drain(ctx, l.last); err != nil {
				return err
			}
			again = 0
		}
		glance.Reset(again)
		if !l.wait(ctx, changed, glance.C) {
			return nil
		}
	}
}

// wait returns when the list of pauses has changed, or at the glance. It reports false when ctx or the lease has ended.
func (l *pauseLanes) wait(ctx context.Context, changed <-chan struct{}, glance <-chan time.Time) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-l.lease.Done():
			return false
		case <-l.lease.Beats():
		case <-changed:
			return true
		case <-glance:
			return true
		}
	}
}

// toDrain are the pauses whose lanes are to be drained, and when to look again. The lane of a pause that is over may
// hold what an instance put there that did not know it yet. While nothing is paused, no lane is to hold anything.
func (l *pauseLanes) toDrain(ctx context.Context, local time.Time) (all []string, again time.Duration) {
	list, again := l.pauses.List(), sweepRarely
	if list != nil && l.pauses.Applied() < list.Version {
		return nil, drainGlance // what would go out first would be held up
	}
	for _, p := range list.All() {
		switch p.State {
		case pause.Resuming, pause.Closing:
			all = append(all, p.ID)
		case pause.Over:
			every := sweepEvery
			if local.Sub(p.Changed) < sweepEvery {
				every = sweepSoon
			}
			again = min(again, every)
			if local.Sub(l.swept[p.ID]) < every {
				continue
			}
			if _, err := l.pauses.First(ctx, p.ID); err == nil {
				all = append(all, p.ID)
			} else {
				l.swept[p.ID] = local
			}
		}
	}
	if len(list.Present()) == 0 {
		if id, err := l.pauses.First(ctx, ""); err == nil {
			all = append(all, id)
		}
	}
	return all, again
}

// drain works the lane of one pause until it is empty and the pause over, until it is paused again, or until it has had
// its turn and others wait for theirs.
func (l *pauseLanes) drain(ctx context.Context, id string) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	began := time.Now()
	spec := l.lane
	spec.Name = id
	w := l.newWorker(l.shared, spec, l.lease, timer.Cursor{}, l.room, l.counts, func() {})
	if p, ok := l.pauses.List().Get(id); ok {
		w.plan.resumed = leader.At(p.Changed)
	}
	l.roster.enlist(w)
	defer l.roster.dismiss(w)
	ended := make(chan error, 1)
	go func() { ended <- w.run(working) }()
	glance := time.NewTicker(drainGlance)
	defer glance.Stop()
	var closing time.Time // since when the pause is closing
	for {
		select {
		case err := <-ended:
			return err
		case local := <-glance.C:
			if working.Err() != nil {
				continue
			}
			if l.drained(ctx, id, &closing, local) || local.Sub(began) >= drainTurn && l.othersWait(ctx, id, local) {
				stop()
			}
		}
	}
}

// othersWait reports whether another lane is to be drained than that of one pause.
func (l *pauseLanes) othersWait(ctx context.Context, id string, local time.Time) bool {
	all, _ := l.toDrain(ctx, local)
	return slices.ContainsFunc(all, func(other string) bool { return other != id })
}

// drained moves a pause on as far as its lane allows, and reports whether the lane needs no worker any more.
func (l *pauseLanes) drained(ctx context.Context, id string, closing *time.Time, local time.Time) bool {
	p, known := l.pauses.List().Get(id)
	if known && p.State == pause.Paused {
		return true
	}
	_, err := l.pauses.First(ctx, id)
	switch empty := errors.Is(err, jetstream.ErrMsgNotFound) || errors.Is(err, jetstream.ErrStreamNotFound); {
	case !known || p.State == pause.Over:
		return empty
	case empty && p.State == pause.Resuming:
		*closing = local
		l.pauses.Move(ctx, id, pause.Resuming, pause.Closing)
	case empty && local.Sub(*closing) >= closeLeast:
		l.pauses.Move(ctx, id, pause.Closing, pause.Over)
		return true
	case p.State == pause.Closing && local.Sub(*closing) > pause.MaxClosing:
		l.pauses.Move(ctx, id, pause.Closing, pause.Resuming)
	}
	return false
}
