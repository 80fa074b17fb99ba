package broker

import (
	"log/slog"
	"testing"
	"time"

	"delaybroker/broker/budget"
	"delaybroker/broker/deliver"
	"delaybroker/broker/lane"
	"delaybroker/broker/lease"
	"delaybroker/broker/link"
	"delaybroker/broker/ratelog"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
	"delaybroker/broker/timer/role"
	"delaybroker/broker/watermark"
)

// atWork is the worker of a lane, as a broker makes it, without connections. The test plays its loop. At the time now,
// the lane's leader has told the same time, and that its last sequence is 300.
func atWork(t *testing.T, l streams.Spec, now time.Time) *worker {
	t.Helper()
	s, err := StreamsOf(Config{})
	if err != nil {
		t.Fatal(err)
	}
	by, err := lease.Static{}.Acquire(t.Context(), l.Stream, func() {})
	if err != nil {
		t.Fatal(err)
	}
	i := &instance{
		names: s.Policy().Names, keys: s.Keys(), jetstream: new(link.JetStream), deliver: new(recorder),
		links: new(link.States), order: new(watermark.Group), tally: stats.NewTally(nil),
		holdMessages: s.Config().HoldMessages, grace: s.Config().ShutdownGrace,
		timers:   role.NewStream(role.Config{Policy: s.Policy()}),
		refusals: ratelog.NewKeyed(slog.New(slog.DiscardHandler), refusalsEvery, mostRefusing),
	}
	reader := lane.NewReader(lane.ReaderConfig{Stream: l.Stream, Delay: l.Delay})
	room := budget.New(s.Config().HoldBytes, 1).Open(budget.FreeShare)
	w := newWorker(i, l, planOf(s.Config(), l), by, reader, room, new(stats.Lane), slog.New(slog.DiscardHandler))
	w.gauge = stats.NewGauge(now)
	w.clock = newLeaderClock(now)
	w.sampled(lane.Sample{ServerTime: now.Round(0), Received: now, LastSeq: 300})
	return w
}

// recorder is a deliverer that answers nothing.
type recorder []deliver.Message

func (r *recorder) Deliver(m deliver.Message, _ func(deliver.Result)) { *r = append(*r, m) }
func (r *recorder) Recall(deliver.Owner)                              {}
