package engine

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/config"
	"delaybroker/broker/deliver"
	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
	"delaybroker/broker/lease"
	"delaybroker/broker/link"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
	"delaybroker/broker/streams/provision"
	"delaybroker/broker/timer/role"
	"delaybroker/levels"
	"delaybroker/test/harness/static"
)

// newTestWorker returns the worker of a lane as a broker creates it, but without connections. The test acts as the
// worker's loop. At the time now, the lane's leader has reported the time now, and 300 as the stream's last sequence.
func newTestWorker(t *testing.T, l streams.Spec, now time.Time) *worker {
	t.Helper()
	s, err := provision.StreamsOf(config.Config{})
	if err != nil {
		t.Fatal(err)
	}
	settings := s.Config()
	settings.Log = slog.New(slog.DiscardHandler)
	e := New(Config{
		Settings: settings, Keys: s.Keys(), JetStream: new(link.JetStream), Links: new(link.States),
		Tally: stats.NewTally(nil), Read: new(nats.Conn),
	})
	e.Services = Services{Deliver: new(recorder), Timers: role.NewStream(role.Config{Policy: s.Policy()})}
	e.budget = newBudget(settings.HoldBytes, 1)
	var kind laneKind = plainLane{}
	if l.Kind == streams.Timers {
		kind = newTimersLane(e.Timers, e.names.TimersCursor())
	}
	w := e.newWorker(l, kind, static.Lease{}, lease.Cursor{})
	w.gauge = stats.NewGauge(now)
	w.clock = newLeaderClock(now)
	w.recordSample(lane.Sample{ServerTime: now.Round(0), Received: now, LastSeq: 300})
	return w
}

// recorder is a deliverer that records the messages and never answers.
type recorder []deliver.Message

func (r *recorder) Deliver(m deliver.Message, _ func(deliver.Result)) { *r = append(*r, m) }

func (r *recorder) Recall(deliver.Owner) {}

func mustLadder(t *testing.T, spec string) levels.Ladder {
	t.Helper()
	l, err := levels.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (s step) String() string {
	switch s.kind {
	case hold:
		return "hold until " + s.at.Sub(epoch).String()
	case backOff:
		return "back off until " + s.at.Sub(epoch).String()
	case pace:
		return "pace until " + leader.At(s.request.RetryAt).Sub(epoch).String() + " of " + s.request.Reservation
	case hop:
		return "hop into " + s.level.Name
	case retry:
		at := leader.At(s.request.RetryAt).Sub(epoch)
		return fmt.Sprintf("retry in %s at %s after %d", s.level.Name, at, s.request.Attempts)
	case dead:
		if s.request != nil {
			return fmt.Sprintf("dead: %s after %d", s.problem.Code, s.request.Attempts)
		}
		return "dead: " + string(s.problem.Code)
	}
	return map[stepKind]string{
		awaitKey: "await its key", repeat: "repeat", check: "check", renew: "renew", fire: "fire", arrive: "arrive",
		readCopy: "read a copy", examine: "examine", claim: "claim", decideAgain: "decide again", remove: "remove",
	}[s.kind]
}

// epoch is the time at which the messages of most tests were stored.
var epoch = leader.At(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))

// after returns the time d after epoch, as the timestamp of a message.
func after(d time.Duration) time.Time { return epoch.Add(d).Stamp() }
