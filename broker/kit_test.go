package broker

import (
	"log/slog"
	"testing"
	"time"

	"delaybroker/broker/alarm"
	"delaybroker/broker/budget"
	"delaybroker/broker/deliver"
	"delaybroker/broker/lane"
	"delaybroker/broker/layout"
	"delaybroker/broker/lease"
	"delaybroker/broker/muster"
	"delaybroker/broker/ratelog"
)

// atWork is the worker of a lane, as a broker makes it, without connections. The test plays its loop. At the time now,
// the lane's leader has told the same time, and that its last sequence is 300.
func atWork(t *testing.T, l layout.Spec, now time.Time) *worker {
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
		names: s.names, keys: s.keys, jetstream: new(jetStream), deliver: new(recorder), links: new(linkStates),
		muster: new(muster.Muster), tally: newTally(), holdMessages: s.cfg.HoldMessages, grace: s.cfg.ShutdownGrace,
		timers:   alarm.NewStream(alarm.Config{Policy: s.keys.policy}),
		refusals: ratelog.NewKeyed(slog.New(slog.DiscardHandler), refusalsEvery, mostRefusing),
	}
	reader := lane.NewReader(lane.ReaderConfig{Stream: l.Stream, Delay: l.Delay})
	room := budget.New(s.cfg.HoldBytes, 1).Open(budget.FreeShare)
	w := newWorker(i, l, s.plan(l), by, reader, room, new(laneCount), slog.New(slog.DiscardHandler))
	w.gauge.base = now
	w.clock = newLeaderClock(now)
	w.sampled(lane.Sample{ServerTime: now.Round(0), Received: now, LastSeq: 300})
	return w
}

// recorder is a deliverer that answers nothing.
type recorder []deliver.Message

func (r *recorder) Deliver(m deliver.Message, _ func(deliver.Result)) { *r = append(*r, m) }
func (r *recorder) Recall(deliver.Owner)                              {}
