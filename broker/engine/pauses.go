package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/leader"
	"delaybroker/broker/lease"
	"delaybroker/broker/pause"
	"delaybroker/broker/streams"
)

// This file drains the lanes of pauses. See package pause.

const (
	// drainPoll is the interval at which the owner checks whether a draining lane is empty.
	drainPoll = 50 * time.Millisecond
	// minClosing is the minimum time for which a pause is in the state "closing" before the owner sets "over". In this
	// time, every connected instance should read the state "closing". A new owner does not know how long a pause has been
	// closing, so it begins with "resuming" again.
	minClosing = time.Second
	// drainTurn is the maximum time for which one lane drains while others wait.
	drainTurn = 10 * time.Second
	// The owner looks for messages that were stored too late in the lanes of ended pauses. In the first minute after the
	// end of a pause, it looks every minSweepInterval. Then it looks every sweepInterval while the list of pauses contains
	// the pause. After that, it looks at least every maxSweepInterval while all pauses in the list have ended.
	minSweepInterval, sweepInterval, maxSweepInterval = 5 * time.Second, time.Minute, time.Hour
)

// pauseLanes drains the lanes of pauses while this instance owns their stream.
type pauseLanes struct {
	*Engine
	lane  streams.Spec
	lease lease.Lease // of the stream

	lastDrained string               // the id of the pause whose lane was drained last
	checkedAt   map[string]time.Time // by id: the last check of an ended pause's lane that found no message
}

func newPauseLanes(e *Engine, l streams.Spec, held lease.Lease) *pauseLanes {
	return &pauseLanes{Engine: e, lane: l, lease: held, checkedAt: make(map[string]time.Time)}
}

// run drains the lanes of resumed and ended pauses, one after the other, until ctx or the lease ends.
func (l *pauseLanes) run(ctx context.Context) error {
	l.ownsPaused.Store(true)
	defer l.ownsPaused.Store(false)
	poll := time.NewTimer(0)
	defer poll.Stop()
	for {
		changed := l.Pauses.Changed()
		ids, wait := l.toDrain(ctx, time.Now())
		if len(ids) > 0 {
			// In turn, because a lane that cannot drain must not delay the other lanes for long.
			l.lastDrained = ids[(slices.Index(ids, l.lastDrained)+1)%len(ids)]
			if err := l.drain(ctx, l.lastDrained); err != nil {
				return err
			}
			wait = 0
		}
		poll.Reset(wait)
		if !l.wait(ctx, changed, poll.C) {
			return nil
		}
	}
}

// wait waits until the list of pauses has changed or the poll is due, and then returns true. It returns false when ctx
// or the lease has ended.
func (l *pauseLanes) wait(ctx context.Context, changed <-chan struct{}, poll <-chan time.Time) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-l.lease.Done():
			return false
		case <-l.lease.Ticks():
		case <-changed:
			return true
		case <-poll:
			return true
		}
	}
}

// toDrain returns the ids of the pauses whose lanes are to be drained, and the time until the next check. The lane of
// an ended pause may have messages of an instance that learned of the end too late. While all pauses of the list have
// ended, toDrain also returns the pause of the first message in the stream, even if this pause has left the list.
func (l *pauseLanes) toDrain(ctx context.Context, local time.Time) (ids []string, wait time.Duration) {
	list, wait := l.Pauses.List(), maxSweepInterval
	if list != nil && l.Pauses.AppliedVersion() < list.Version {
		return nil, drainPoll // the deliverer must apply the list first, which takes little time
	}
	for _, p := range list.All() {
		switch p.State {
		case pause.Resuming, pause.Closing:
			ids = append(ids, p.ID)
		case pause.Over:
			interval := sweepInterval
			if local.Sub(p.Changed) < sweepInterval {
				interval = minSweepInterval
			}
			wait = min(wait, interval)
			if local.Sub(l.checkedAt[p.ID]) < interval {
				continue
			}
			switch _, err := l.Pauses.FirstPause(ctx, p.ID); {
			case err == nil:
				ids = append(ids, p.ID)
			case errors.Is(err, jetstream.ErrMsgNotFound):
				l.checkedAt[p.ID] = local
			}
		}
	}
	if len(list.Present()) == 0 {
		if id, err := l.Pauses.FirstPause(ctx, ""); err == nil {
			ids = append(ids, id)
		}
	}
	return ids, wait
}

// drain works the lane of one pause until ctx or the lease ends. It ends earlier when the lane is empty and the pause
// is over, when the pause is active again, or after drainTurn if other lanes wait.
func (l *pauseLanes) drain(ctx context.Context, id string) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	start := time.Now()
	kind := pausedLane{pause: id, filter: l.names.PauseFilter(id)}
	w := l.newWorker(l.lane, kind, l.lease, l.lease.Cursor())
	w.backlog.holdBack()
	if p, ok := l.Pauses.List().Get(id); ok {
		w.plan.resumed = leader.At(p.Changed)
	}
	l.roster.add(w)
	defer l.roster.remove(w)
	result := make(chan error, 1)
	go func() { result <- w.run(working) }()
	poll := time.NewTicker(drainPoll)
	defer poll.Stop()
	var closing time.Time // when this call moved the pause to closing; zero if it did not
	for {
		select {
		case err := <-result:
			return err
		case local := <-poll.C:
			if working.Err() != nil {
				continue
			}
			if l.drained(ctx, id, &closing, local) || local.Sub(start) >= drainTurn && l.othersWait(ctx, id, local) {
				stop()
			}
		}
	}
}

// othersWait reports whether the lane of another pause is to be drained.
func (l *pauseLanes) othersWait(ctx context.Context, id string, local time.Time) bool {
	ids, _ := l.toDrain(ctx, local)
	return slices.ContainsFunc(ids, func(other string) bool { return other != id })
}

// drained moves a pause to its next state if the pause's lane is empty, and back to resuming if the pause has been
// closing for longer than pause.MaxClosing. It reports whether the lane needs no worker any more.
func (l *pauseLanes) drained(ctx context.Context, id string, closing *time.Time, local time.Time) bool {
	p, known := l.Pauses.List().Get(id)
	if known && p.State == pause.Paused {
		return true
	}
	_, err := l.Pauses.FirstPause(ctx, id)
	switch empty := errors.Is(err, jetstream.ErrMsgNotFound) || errors.Is(err, jetstream.ErrStreamNotFound); {
	case !known || p.State == pause.Over:
		return empty
	case empty && p.State == pause.Resuming:
		l.Pauses.SetState(ctx, id, pause.Resuming, pause.Closing)
		*closing = time.Now() // after SetState, which may take seconds: minClosing begins when the state is stored
	case p.State == pause.Closing && local.Sub(*closing) > pause.MaxClosing: // or another owner began to close it
		l.Pauses.SetState(ctx, id, pause.Closing, pause.Resuming)
	case empty && local.Sub(*closing) >= minClosing:
		l.Pauses.SetState(ctx, id, pause.Closing, pause.Over)
		return true
	}
	return false
}
