package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"delaybroker/broker/leader"
	"delaybroker/broker/lease"
	"delaybroker/broker/pause"
	"delaybroker/broker/streams"
)

// This file drains the lanes of pauses. See package pause.

const (
	// maxDrains is the maximum number of lanes that drain concurrently. So a lane that cannot drain, because a target is
	// silent, does not delay the others.
	maxDrains = 4
	// drainTurn is the minimum time for which a lane drains while more than maxDrains lanes are to be drained.
	drainTurn = 10 * time.Second
	// drainPoll is the interval at which the active instance checks whether a draining lane is empty, and whether the
	// deliverer has applied the list.
	drainPoll = 50 * time.Millisecond
	// drainRetry is the time after which a drain that ended with an error begins again.
	drainRetry = time.Second
	// minClosing is the minimum time for which a pause is in the state "closing" before the active instance sets "over".
	// In this time, messages that were being parked are stored, and are found. A new active instance does not know how
	// long a pause has been closing, so it begins with "resuming" again.
	minClosing = time.Second
	// The active instance looks for messages that were stored too late in the lanes of ended pauses. In the first minute
	// after the end of a pause, it looks every minSweepInterval. Then it looks every sweepInterval while the list of
	// pauses contains the pause. After that, it looks at least every maxSweepInterval while all pauses in the list have
	// ended.
	minSweepInterval, sweepInterval, maxSweepInterval = 5 * time.Second, time.Minute, time.Hour
)

// pauseLanes drains the lanes of pauses while this instance is active. Each drain runs on a goroutine of its
// own, and so does the search for late messages. The loop of pauseLanes sends no request.
type pauseLanes struct {
	*Engine
	lane  streams.Spec
	lease lease.Lease // of the stream

	drains map[string]*drain    // by the id of the pause: the drains in progress
	late   map[string]bool      // by id: ended pauses whose lane has a message
	ended  map[string]time.Time // by id, of pauses that are to be drained: when the last drain ended, or may be repeated
}

// drain is the work on the lane of one pause.
type drain struct {
	stop  context.CancelFunc
	begun time.Time
}

// drained is the end of a drain.
type drained struct {
	id  string
	err error
}

func newPauseLanes(e *Engine, l streams.Spec, held lease.Lease) *pauseLanes {
	return &pauseLanes{
		Engine: e, lane: l, lease: held,
		drains: make(map[string]*drain), late: make(map[string]bool), ended: make(map[string]time.Time),
	}
}

// run drains the lanes of resumed and ended pauses until ctx or the lease ends. Then it returns the errors with which
// the drains in progress have ended.
func (l *pauseLanes) run(ctx context.Context) error {
	l.ownsPaused.Store(true)
	defer l.ownsPaused.Store(false)
	working, stop := context.WithCancel(ctx)
	defer stop()
	ends, found := make(chan drained, maxDrains), make(chan string)
	var sweeping sync.WaitGroup
	sweeping.Go(func() { l.sweep(working, found) })
	sweeping.Go(func() { l.keepHours(working) })
	poll := time.NewTimer(0)
	defer poll.Stop()
	for {
		changed := l.Pauses.Changed()
		poll.Reset(l.begin(working, ends, time.Now()))
		select {
		case <-ctx.Done():
		case <-l.lease.Done():
		case <-l.watch.pausesPing: // receiving proves to watchLoops that the loop is alive
			continue
		case <-changed:
			continue
		case <-poll.C:
			continue
		case id := <-found:
			l.late[id] = true
			continue
		case e := <-ends:
			l.finish(e, time.Now())
			continue
		}
		stop()
		sweeping.Wait()
		var errs []error
		for range l.drains {
			errs = append(errs, (<-ends).err)
		}
		return errors.Join(errs...)
	}
}

// begin begins the drains that may begin now. If others wait, it stops a drain whose turn is over. It returns the time
// until it must be called again, if no event comes before.
func (l *pauseLanes) begin(ctx context.Context, ends chan<- drained, local time.Time) (wait time.Duration) {
	list := l.Pauses.List()
	if list != nil && l.Pauses.AppliedVersion() < list.Version {
		return drainPoll // the deliverer must apply the list first, which takes little time
	}
	waiting, wait := l.waiting(list, local)
	for len(waiting) > 0 && len(l.drains) < maxDrains {
		id := waiting[0]
		waiting = waiting[1:]
		working, stop := context.WithCancel(ctx)
		l.drains[id] = &drain{stop: stop, begun: local}
		delete(l.late, id)
		go func() { ends <- drained{id, l.drain(working, id)} }() // run waits for the end
	}
	if len(waiting) == 0 {
		return wait
	}
	var longest *drain
	for _, d := range l.drains {
		if longest == nil || d.begun.Before(longest.begun) {
			longest = d
		}
	}
	if turn := longest.begun.Add(drainTurn).Sub(local); turn > 0 {
		return min(wait, turn)
	}
	longest.stop()
	return wait
}

// waiting returns the ids of the pauses whose lanes are to be drained and do not drain, in the order of their turns. It
// also returns the time until a failed drain may begin again.
func (l *pauseLanes) waiting(list *pause.List, local time.Time) (ids []string, wait time.Duration) {
	wanted := make(map[string]bool)
	for id := range l.late {
		wanted[id] = true
	}
	for _, p := range list.All() {
		wanted[p.ID] = wanted[p.ID] || p.State == pause.Resuming || p.State == pause.Closing
	}
	wait = forever
	for id := range l.ended {
		if !wanted[id] {
			delete(l.ended, id)
		}
	}
	for id, isWanted := range wanted {
		switch retry := l.ended[id].Sub(local); {
		case !isWanted || l.drains[id] != nil:
		case retry > 0:
			wait = min(wait, retry)
		default:
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return l.ended[a].Compare(l.ended[b]) })
	return ids, wait
}

// finish records the end of a drain. A drain that ended with an error begins again: messages whose arrival it could not
// commit are sent again.
func (l *pauseLanes) finish(e drained, local time.Time) {
	l.drains[e.id].stop()
	delete(l.drains, e.id)
	l.ended[e.id] = local
	if e.err != nil {
		l.ended[e.id] = local.Add(drainRetry)
		l.log.Warn("the drain of a resumed pause has ended with an error, and begins again", "pause", e.id, "err", e.err)
	}
}

// sweep looks for messages in the lanes of ended pauses, which an instance may have stored that learned of the end too
// late, until ctx ends. While all pauses of the list have ended, it also looks for the pause of the first message in
// the stream, which may have left the list.
func (l *pauseLanes) sweep(ctx context.Context, found chan<- string) {
	type end struct {
		seen  time.Time // when the sweep first saw that the pause is over
		empty time.Time // of the last look that found no message
	}
	ends := make(map[string]end) // by id
	look := func(id string) (empty bool) {
		first, empty := l.Pauses.FirstPause(ctx, id)
		if first != "" {
			select {
			case found <- first:
			case <-ctx.Done():
			}
		}
		return empty
	}
	for {
		list, changed, wait := l.Pauses.List(), l.Pauses.Changed(), maxSweepInterval
		known := make(map[string]end)
		for _, p := range list.All() {
			if !p.Sends() {
				continue
			}
			e := ends[p.ID]
			if e.seen.IsZero() {
				e.seen = time.Now()
			}
			interval := sweepInterval
			if time.Since(e.seen) < sweepInterval {
				interval = minSweepInterval
			}
			if wait = min(wait, interval); time.Since(e.empty) >= interval && look(p.ID) {
				e.empty = time.Now()
			}
			known[p.ID] = e
		}
		ends = known // without the pauses that have left the list
		stops := slices.ContainsFunc(list.All(), func(p pause.Pause) bool { return !p.Sends() })
		if !stops && !look("") {
			wait = min(wait, minSweepInterval)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-time.After(wait):
		}
	}
}

// keepHours records the beginning and the end of quiet hours in the list of pauses, until ctx ends. The loops of the
// lanes apply both at the moment itself: see pause.Keeper.ListAt.
func (l *pauseLanes) keepHours(ctx context.Context) {
	for {
		changed, local := l.Pauses.Changed(), time.Now()
		due, next := l.Pauses.List().Due(local)
		wait := forever
		if !next.IsZero() {
			wait = max(next.Sub(local), 0)
		}
		for _, p := range due {
			stored, _ := l.Pauses.List().Get(p.ID)
			l.Pauses.SetState(ctx, p.ID, stored.State, p.State)
			wait = min(wait, drainRetry) // perhaps the change was not made
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-time.After(wait):
		}
	}
}

// drain works the lane of one pause until ctx or the lease ends. It ends earlier when the lane is empty and the pause
// is over, or when the pause is active again.
func (l *pauseLanes) drain(ctx context.Context, id string) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	kind := pausedLane{pause: id, filter: l.names.PauseFilter(id)}
	w := l.newWorker(l.lane, kind, l.lease, lease.Cursor{})
	w.backlog.holdBack()
	if p, ok := l.Pauses.List().Get(id); ok {
		if w.plan.resumed = leader.At(p.Stored); p.Stored.IsZero() { // the list was announced, and is not stored
			w.plan.resumed = leader.At(time.Now())
		}
	}
	l.roster.add(w)
	defer l.roster.remove(w)
	result := make(chan error, 1)
	go func() { result <- w.work(working) }()
	poll := time.NewTicker(drainPoll)
	defer poll.Stop()
	var closing time.Time // when this call moved the pause to closing; zero if it did not
	for {
		select {
		case err := <-result:
			return err
		case local := <-poll.C:
			if working.Err() == nil && l.isDrained(ctx, id, &closing, local) {
				stop()
			}
		}
	}
}

// isDrained moves a pause to its next state if the pause's lane is empty, and back to resuming if the pause has been
// closing for longer than pause.MaxClosing. It reports whether the lane needs no worker any more.
func (l *pauseLanes) isDrained(ctx context.Context, id string, closing *time.Time, local time.Time) bool {
	p, known := l.Pauses.List().Get(id)
	if known && p.State == pause.Paused {
		return true
	}
	switch _, empty := l.Pauses.FirstPause(ctx, id); {
	case !known || p.Sends():
		return empty
	case empty && p.State == pause.Resuming:
		l.Pauses.SetState(ctx, id, pause.Resuming, pause.Closing)
		*closing = time.Now() // after SetState, which may take seconds: minClosing begins when the state is stored
	case p.State == pause.Closing && local.Sub(*closing) > pause.MaxClosing: // or another instance began to close it
		l.Pauses.SetState(ctx, id, pause.Closing, pause.Resuming)
	case empty && local.Sub(*closing) >= minClosing:
		l.Pauses.SetState(ctx, id, pause.Closing, p.Ended())
		return true
	}
	return false
}
