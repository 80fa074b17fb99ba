package engine

import (
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/config"
	"delaybroker/broker/deliver"
	"delaybroker/broker/lane"
	"delaybroker/broker/lease"
	"delaybroker/broker/link"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
	"delaybroker/broker/streams/provision"
	"delaybroker/broker/timer/role"
)

// atWork is the worker of a lane, as a broker makes it, without connections. The test plays its loop. At the time now,
// the lane's leader has told the same time, and that its last sequence is 300.
func atWork(t *testing.T, l streams.Spec, now time.Time) *worker {
	t.Helper()
	s, err := provision.StreamsOf(config.Config{})
	if err != nil {
		t.Fatal(err)
	}
	by, err := lease.Static{}.Acquire(t.Context(), l.Stream, func() {})
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
	e.room = newBudget(settings.HoldBytes, 1)
	var kind laneKind = plainLane{}
	if l.Kind == streams.Timers {
		kind = newTimersLane(e.Timers, e.names.Armed())
	}
	w := e.newWorker(l, kind, by, by.From())
	w.gauge = stats.NewGauge(now)
	w.clock = newLeaderClock(now)
	w.sampled(lane.Sample{ServerTime: now.Round(0), Received: now, LastSeq: 300})
	return w
}

// recorder is a deliverer that answers nothing.
type recorder []deliver.Message

func (r *recorder) Deliver(m deliver.Message, _ func(deliver.Result)) { *r = append(*r, m) }
func (r *recorder) Recall(deliver.Owner)                              {}
