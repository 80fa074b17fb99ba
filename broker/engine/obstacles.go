package engine

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/fault"
	"delaybroker/broker/stats"
	"delaybroker/broker/text"
)

// errOverdue is the fault of a lane whose messages are overdue although no request of it fails.
var errOverdue = errors.New("messages are overdue, and no request of the broker fails: a target, a stream or the " +
	"broker is too slow")

const (
	// graceTime is the time for which a lane may be unread, or its messages overdue, before that is an error: an election,
	// or a restart of the server, takes less.
	graceTime = 5 * time.Second
	// faultInterval is the interval at which the log repeats a cause.
	faultInterval = time.Minute
)

// obstacles are the requests of a lane that fail now, each with its error: a publish into a stream of the broker, or a
// request to the JetStream API. They explain why messages of the lane are overdue. It is safe for concurrent use. The
// zero value is ready to use.
type obstacles struct {
	count atomic.Int32 // of failing, so that a success takes no lock while nothing fails
	mu    sync.Mutex   // guards failing
	// failing has a value for each subject or stream whose last request has failed: at most one for each stream, and some
	// for the API.
	failing map[string]obstacle
}

// obstacle is a request that fails.
type obstacle struct {
	err       error
	subject   string    // of the last failed request, to find a denied permission
	since, at time.Time // of the first failure without a success after it, and of the last
}

// note records the end of a request. What identifies requests with the same obstacle: one that succeeds ends it.
func (o *obstacles) note(what, subject string, err error) {
	if err == nil && o.count.Load() == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil {
		delete(o.failing, what)
	} else {
		if o.failing == nil {
			o.failing = make(map[string]obstacle)
		}
		now := time.Now()
		since := now
		if earlier, ok := o.failing[what]; ok {
			since = earlier.since
		}
		o.failing[what] = obstacle{err, subject, since, now}
	}
	o.count.Store(int32(len(o.failing)))
}

// lasting returns the obstacle that has failed last, among those that have lasted for graceTime.
func (o *obstacles) lasting(now time.Time) (last obstacle, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, each := range o.failing {
		if now.Sub(each.since) >= graceTime && each.at.After(last.at) {
			last, ok = each, true
		}
	}
	return last, ok
}

// faultOf returns why the messages of a worker's lane wait, or nil. An obstacle counts only while a message is overdue:
// otherwise the messages take another way, such as a shorter level.
func (e *Engine) faultOf(w *worker, l stats.LaneStatus, now time.Time) *fault.Fault {
	if err := w.reading.Trouble(); err != nil {
		return e.explain(err, l.Stream, now)
	}
	if o, ok := w.obstacles.lasting(now); ok && l.Overdue >= graceTime {
		return e.explain(o.err, o.subject, now)
	}
	if l.Late() {
		f := fault.Of(errOverdue)
		return &f
	}
	return nil
}

// explain returns the fault that an error shows. If no answer came, and the server has denied a permission for the
// subject, the permission is the cause: the server does not answer such a request.
func (e *Engine) explain(err error, subject string, now time.Time) *fault.Fault {
	f := fault.Of(err)
	if f.Cause == fault.NoAnswer || f.Cause == fault.ConsumerSilent {
		for _, r := range e.Denials.Recent(now) {
			if strings.Contains(r.Right+".", subject+".") || strings.HasPrefix(r.Right, "Subscription to ") {
				f = fault.Of(fmt.Errorf("%s on the link %s: %w", r.Right, r.Link, nats.ErrPermissionViolation))
			}
		}
	}
	return &f
}

// faultLog is what the log says about one cause. While a server is away, the cause concerns about forty lanes.
type faultLog struct {
	since    time.Time // when a lane first had the fault
	loggedAt time.Time // zero before the first line
}

// logFaults logs each cause for which messages wait when it has lasted for graceTime, again every faultInterval, and
// its end. The caller keeps logged.
func (e *Engine) logFaults(logged map[fault.Cause]*faultLog, now time.Time) {
	first, lanes := make(map[fault.Cause]*fault.Fault), make(map[fault.Cause][]string)
	for _, l := range e.Lanes() {
		if f := l.Fault; f != nil {
			first[f.Cause] = cmp.Or(first[f.Cause], f)
			lanes[f.Cause] = append(lanes[f.Cause], l.Stream)
		}
	}
	for cause, state := range logged {
		if first[cause] != nil {
			continue
		}
		if delete(logged, cause); !state.loggedAt.IsZero() {
			e.log.Info("the cause for which messages waited is gone", "cause", cause, "after", now.Sub(state.since))
		}
	}
	for cause, f := range first {
		state := logged[cause]
		if state == nil {
			state = &faultLog{since: now}
			logged[cause] = state
		}
		// The program that owns the connection logs its loss.
		if cause != fault.Offline && now.Sub(state.since) >= graceTime && now.Sub(state.loggedAt) >= faultInterval {
			e.log.Error("messages wait in lanes; will retry", "lanes", text.ShortList(lanes[cause]), "count", len(lanes[cause]),
				"cause", cause, "reason", f.Detail, "do", f.Remedy, "for", now.Sub(state.since))
			state.loggedAt = now
		}
	}
}
