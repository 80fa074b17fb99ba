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

// This file works the lanes of pauses. See package pause.

const (
	// drainPoll is the interval at which the owner checks whether a draining lane is empty.
	drainPoll = 50 * time.Millisecond
	// minClosing is the minimum time for which a pause is closing. After this time, every connected instance has
	// received the state "closing".
	minClosing = time.Second
	// drainTurn is the maximum time for which one lane drains while others wait.
	drainTurn = 10 * time.Second
	// These are the intervals at which the owner looks for messages that came too late into the lanes of ended pauses:
	// sweepSoon during the first minute after the end, then sweepEvery while the list contains the pause, and sweepRarely
	// otherwise.
	sweepSoon, sweepEvery, sweepRarely = 5 * time.Second, time.Minute, time.Hour
)

// pauseLanes works the lanes of pauses while this instance owns their stream.
type pauseLanes struct {
	*Engine
	lane  streams.Spec
	lease lease.Lease // of the stream

	last  string               // the pause whose lane was drained last
	swept map[string]time.Time // when the lanes of ended pauses were last checked
}

func newPauseLanes(e *Engine, l streams.Spec, held lease.Lease) *pauseLanes {
	return &pauseLanes{Engine: e, lane: l, lease: held, swept: make(map[string]time.Time)}
}

// run drains the lanes of resumed pauses, one after the other, until ctx or the lease ends.
func (l *pauseLanes) run(ctx context.Context) error {
	l.owning.Store(true)
	defer l.owning.Store(false)
	poll := time.NewTimer(0)
	defer poll.Stop()
	for {
		changed := l.Pauses.Changed()
		all, again := l.toDrain(ctx, time.Now())
		if len(all) > 0 {
			// Round robin: a lane that cannot drain must not delay the others for long.
			l.last = all[(slices.Index(all, l.last)+1)%len(all)]
			if err := l.drain(ctx, l.last); err != nil {
				return err
			}
			again = 0
		}
		poll.Reset(again)
		if !l.wait(ctx, changed, poll.C) {
			return nil
		}
	}
}

// wait returns when the list of pauses has changed, or the poll is due. It reports false when ctx or the lease has
// ended.
func (l *pauseLanes) wait(ctx context.Context, changed <-chan struct{}, poll <-chan time.Time) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-l.lease.Done():
			return false
		case <-l.lease.Beats():
		case <-changed:
			return true
		case <-poll:
			return true
		}
	}
}

// toDrain returns the pauses whose lanes are to be drained, and the time until the next check. The lane of an ended
// pause may hold messages of an instance that received the end too late. While no target is paused, every lane is
// drained.
func (l *pauseLanes) toDrain(ctx context.Context, local time.Time) (all []string, again time.Duration) {
	list, again := l.Pauses.List(), sweepRarely
	if list != nil && l.Pauses.Applied() < list.Version {
		return nil, drainPoll // the list will be applied soon: a longer wait would delay the first messages
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
			if _, err := l.Pauses.FirstPause(ctx, p.ID); err == nil {
				all = append(all, p.ID)
			} else {
				l.swept[p.ID] = local
			}
		}
	}
	if len(list.Present()) == 0 {
		if id, err := l.Pauses.FirstPause(ctx, ""); err == nil {
			all = append(all, id)
		}
	}
	return all, again
}

// drain works the lane of one pause. It ends when the lane is empty and the pause over, when the pause is active again,
// or after drainTurn if other lanes wait.
func (l *pauseLanes) drain(ctx context.Context, id string) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	began := time.Now()
	kind := pausedLane{pause: id, filter: l.names.PauseFilter(id)}
	w := l.newWorker(l.lane, kind, l.lease, l.lease.From())
	w.backlog.holdBack()
	if p, ok := l.Pauses.List().Get(id); ok {
		w.plan.resumed = leader.At(p.Changed)
	}
	l.roster.enlist(w)
	defer l.roster.dismiss(w)
	ended := make(chan error, 1)
	go func() { ended <- w.run(working) }()
	poll := time.NewTicker(drainPoll)
	defer poll.Stop()
	var closing time.Time // when this instance moved the pause to closing; zero if another instance did
	for {
		select {
		case err := <-ended:
			return err
		case local := <-poll.C:
			if working.Err() != nil {
				continue
			}
			if l.drained(ctx, id, &closing, local) || local.Sub(began) >= drainTurn && l.othersWait(ctx, id, local) {
				stop()
			}
		}
	}
}

// othersWait reports whether the lane of another pause is to be drained.
func (l *pauseLanes) othersWait(ctx context.Context, id string, local time.Time) bool {
	all, _ := l.toDrain(ctx, local)
	return slices.ContainsFunc(all, func(other string) bool { return other != id })
}

// drained advances the state of a pause as far as its lane permits. It reports whether the lane needs no worker any
// more.
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
		*closing = local
		l.Pauses.SetState(ctx, id, pause.Resuming, pause.Closing)
	case empty && local.Sub(*closing) >= minClosing:
		l.Pauses.SetState(ctx, id, pause.Closing, pause.Over)
		return true
	case p.State == pause.Closing && local.Sub(*closing) > pause.MaxClosing:
		l.Pauses.SetState(ctx, id, pause.Closing, pause.Resuming)
	}
	return false
}
