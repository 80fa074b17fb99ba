package engine

import (
	"testing"
	"time"

	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
	"delaybroker/broker/lease"
	"delaybroker/broker/message"
)

// expiringLease is a lease that is lost after a number of calls of Held.
type expiringLease struct {
	lease.Lease
	held int
}

func (l *expiringLease) Held() bool {
	l.held--
	return l.held >= 0
}

func (l *expiringLease) Decline() {}

// TestLeaseIsCheckedBeforeEachMessage: the worker checks the lease before each message. After the lease is lost, it
// sends no message that waited for the leader's time or on the wheel.
func TestLeaseIsCheckedBeforeEachMessage(t *testing.T) {
	base := time.Now()
	for name, wait := range map[string]func(*worker, *flight){
		"for the time": func(w *worker, f *flight) { w.flights.untimed = append(w.flights.untimed, f) },
		"on the wheel": func(w *worker, f *flight) { w.flights.hold(f, leader.At(base)) },
	} {
		w := tenSecondWorker(t, base)
		w.lease = &expiringLease{held: 1}
		for range 3 { // the next step of each is to wait for a minute
			f := w.flights.begin(lane.Message{At: base}, lane.Mark{})
			f.problem = message.Problemf(message.NewerFormat, "x")
			wait(w, f)
		}
		m := w.moment(base)
		w.decideUntimed(m)
		w.advance(m.now, m)
		decided := 0
		for due := range w.flights.takeDue(m.now.Add(newerFormatRetry)) {
			if due.After(m.now) {
				decided++
			}
		}
		if untimed := len(w.flights.untimed); decided != 1 || name == "for the time" && untimed != 2 {
			t.Errorf("%s: %d messages were decided, and %d still wait for the time", name, decided, untimed)
		}
	}
}
