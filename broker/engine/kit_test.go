package engine

import (
	"log/slog"
	"testing"
	"time"

	"delaybroker/broker/config"
	"delaybroker/broker/deliver"
	"delaybroker/broker/lane"
	"delaybroker/broker/lease"
	"delaybroker/broker/link"
	"delaybroker/broker/ratelog"
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
	i := &instance{
		names: s.Policy().Names, keys: s.Keys(), jetstream: new(link.JetStream), deliver: new(recorder),
		links: new(link.States), order: new(watermark), tally: stats.NewTally(nil),
		holdMessages: s.Config().HoldMessages, grace: s.Config().ShutdownGrace,
		timers:   role.NewStream(role.Config{Policy: s.Policy()}),
		refusals: ratelog.NewKeyed(slog.New(slog.DiscardHandler), refusalsEvery, mostRefusing),
	}
	reader := lane.NewReader(lane.ReaderConfig{Stream: l.Stream, Delay: l.Delay})
	room := newBudget(s.Config().HoldBytes, 1).Open(freeShare)
	var kind laneKind = plainLane{}
	if l.Kind == streams.Timers {
		kind = newTimersLane(i.timers, i.names.Armed())
	}
	w := newWorker(i, l, planOf(s.Config(), kind, l.Delay), by, reader, 1, room, new(stats.Lane),
		slog.New(slog.DiscardHandler))
	w.gauge = stats.NewGauge(now)
	w.clock = newLeaderClock(now)
	w.sampled(lane.Sample{ServerTime: now.Round(0), Received: now, LastSeq: 300})
	return w
}

// recorder is a deliverer that answers nothing.
type recorder []deliver.Message

func (r *recorder) Deliver(m deliver.Message, _ func(deliver.Result)) { *r = append(*r, m) }
func (r *recorder) Recall(deliver.Owner)                              {}
