package test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// many publishes messages with numbers as bodies and waits until they are stored.
func (c *client) many(subject string, count int, headers ...string) {
	c.t.Helper()
	var last jetstream.PubAckFuture
	for i := range count {
		var err error
		if last, err = c.js.PublishMsgAsync(newMsg(subject, fmt.Sprint(i), headers...)); err != nil {
			c.t.Fatal(err)
		}
	}
	<-last.Ok()
}

// silent subscribes to a subject without ever acknowledging.
func (c *client) silent(subject string) {
	c.t.Helper()
	if _, err := c.nc.Subscribe(subject, func(*nats.Msg) {}); err != nil {
		c.t.Fatal(err)
	}
}

// TestSilentTargetSlowsNobody publishes more messages for a target that never acknowledges than the lane may hold. A
// message for a healthy target in the same lane is still on time.
func TestSilentTargetSlowsNobody(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, broker.Config{HoldMessages: 2 << 10})
		c := newClient(t, s)
		c.silent("silent.x")
		c.target("ORDERS", "orders.>")
		for range 30 { // in 3 s: none is refused yet, which takes 5 s
			c.many("delayin.100ms.silent.x", 500, message.HeaderDeliver, "stream")
			time.Sleep(100 * time.Millisecond)
		}
		start := time.Now()
		c.publish("delayin.100ms.orders.x", "healthy")
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if got := c.arrivals("ORDERS"); len(got) != 1 || !got[0].At.Equal(start.Add(100*time.Millisecond)) {
			t.Errorf("the healthy target has %d messages when its one is due, want it", len(got))
		}
	})
}

// TestTroubleBesideHealthy runs a healthy target beside four others under load: a full stream, a missing one, one that
// never acknowledges, and a service that never replies. The healthy target gets everything at the instant it is due. No
// message for the others is lost: each becomes one dead letter, or was stored before the stream was full.
func TestTroubleBesideHealthy(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const attempts, count, room = 3, 500, 20
		startBroker(t, s, broker.Config{Attempts: attempts, Log: slog.New(slog.DiscardHandler)})
		c := newClient(t, s)
		c.target("ORDERS", "orders.>")
		c.create(jetstream.StreamConfig{
			Name: "FULL", Subjects: []string{"full.>"}, Discard: jetstream.DiscardNew, MaxMsgs: room})
		c.silent("silent.x")
		c.silent("mute.x")
		for i := range count {
			c.publish("delay.1s.orders.x", fmt.Sprint(i))
			c.publish("delay.1s.full.x", fmt.Sprint(i))
			c.publish("delay.1s.nobody.x", fmt.Sprint(i))
			c.publish("delay.1s.silent.x", fmt.Sprint(i), message.HeaderDeliver, "stream")
			c.publish("delay.1s.mute.x", fmt.Sprint(i), message.HeaderDeliver, "request")
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(2 * time.Minute)
		healthy := c.arrivals("ORDERS")
		for _, a := range healthy {
			if !a.At.Equal(a.Due) {
				t.Errorf("%s came %s after it was due", a.Body, a.At.Sub(a.Due))
			}
		}
		ends := map[string]int{"ORDERS": len(healthy), "FULL": len(c.arrivals("FULL"))}
		ids := make(map[string]bool)
		for _, a := range append(healthy, c.arrivals("FULL")...) {
			ids[a.ID] = true
		}
		for code, letters := range c.dead() {
			for _, a := range letters {
				ids[a.ID] = true
				ends[a.Subject]++
				if got := a.Header.Get(message.HeaderAttempts); code != string(message.Undelivered) ||
					got != fmt.Sprint(attempts) {
					t.Errorf("a dead letter %s after %s attempts, want %s after %d", code, got, message.Undelivered,
						attempts)
				}
			}
		}
		want := map[string]int{"ORDERS": count, "FULL": room, "delaydead.undelivered.full.x": count - room,
			"delaydead.undelivered.nobody.x": count, "delaydead.undelivered.silent.x": count,
			"delaydead.undelivered.mute.x": count}
		if !maps.Equal(ends, want) || len(ids) != 5*count {
			t.Errorf("%d messages ended as %v, want %d as %v", len(ids), ends, 5*count, want)
		}
		if got := c.inLanes(); got != 0 {
			t.Errorf("the lanes still hold %d messages", got)
		}
	})
}

// TestCrashRepeatsLittle: one message that cannot be delivered is in front of many that can. The commit cannot pass it,
// yet a crash repeats only the deliveries of the last seconds.
func TestCrashRepeatsLittle(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b := startBroker(t, s, broker.Config{})
		c := newClient(t, s)
		c.silent("silent.x")
		in := c.subscribe("orders.>")
		c.publish("delayin.100ms.silent.x", "stuck", message.HeaderDeliver, "stream")
		for i := range 140 {
			c.publish("delayin.10ms.orders.x", fmt.Sprint(i))
			time.Sleep(100 * time.Millisecond)
		}
		b.crash()
		before := len(in.all())
		startBroker(t, s, broker.Config{})
		time.Sleep(time.Second)
		if again, most := len(in.all())-before, 52; before != 140 || again > most {
			t.Errorf("of %d messages in 14s, %d came again after the crash; want at most the %d of the last 5s",
				before, again, most)
		}
	})
}

// TestStuckHeadUnderLoad is TestCrashRepeatsLittle at a thousand messages a second.
func TestStuckHeadUnderLoad(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const rate, seconds = 1000, 14 // for as long as the head is stuck
		b := startBroker(t, s, broker.Config{})
		c := newClient(t, s)
		c.silent("silent.x")
		in := c.subscribe("orders.>")
		c.publish("delayin.100ms.silent.x", "stuck", message.HeaderDeliver, "stream")
		for range seconds * 10 {
			c.many("delayin.10ms.orders.x", rate/10)
			time.Sleep(100 * time.Millisecond)
		}
		b.crash()
		before := len(in.all())
		startBroker(t, s, broker.Config{})
		time.Sleep(time.Second)
		if again, most := len(in.all())-before, 6*rate; before != rate*seconds || again > most {
			t.Errorf("of %d, %d came again after the crash; want at most %d", before, again, most)
		}
	})
}

// TestCleanStopAfterReconnect restarts the server, and thus replaces a lane's consumer, while the owner holds as many
// messages as it may and reads nothing. Deliveries are still committed, and a clean stop repeats none.
func TestCleanStopAfterReconnect(t *testing.T) { // not in parallel: see natstest.DropTimers
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b := startBroker(t, s, broker.Config{})
		c := newClient(t, s)
		in := c.subscribe("orders.>")
		start := time.Now()
		c.many("delay.1h.orders.a", 300)
		time.Sleep(30 * time.Minute)
		c.many("delay.1h.orders.b", 700)
		time.Sleep(time.Minute)
		s.Restart(time.Second)
		time.Sleep(time.Until(start.Add(time.Hour + 10*time.Minute)))
		level := c.stream("DELAY_1h")
		if got := level.CachedInfo().State.Msgs; got != 700 {
			t.Errorf("ten minutes after 300 were delivered the level holds %d, want 700", got)
		}
		b.stop()
		startBroker(t, s, broker.Config{})
		time.Sleep(time.Hour)
		if got := len(in.all()); got != 1000 {
			t.Errorf("%d messages were seen, want 1000", got)
		}
		c.checkEmpty()
	})
}

// TestLateAcknowledgement: a level stores messages but does not acknowledge. The broker repeats the hop into the same
// level, which recognises the copy. Another level could not.
func TestLateAcknowledgement(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, broker.Config{Ladder: ladder(t, "1s 20s 30s")})
		c := newClient(t, s)
		in := c.subscribe("orders.>")
		ctx := context.Background()
		level := c.stream("DELAY_30s")
		cfg := level.CachedInfo().Config
		for _, mute := range []bool{true, false} {
			cfg.NoAck = mute
			if _, err := c.js.UpdateStream(ctx, cfg); err != nil {
				t.Fatal(err)
			}
			if mute {
				c.publish("delayin.34s.orders.x", "x")
				time.Sleep(3 * time.Second)
			}
		}
		time.Sleep(time.Hour)
		if got := len(in.all()); got != 1 {
			t.Errorf("delivered %d times, want once", got)
		}
		c.checkNoDead()
	})
}

// TestDeadLettersFull: the stream of dead letters is full. The log stays short, nothing is lost, and the letters are
// stored when there is room.
func TestDeadLettersFull(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		log := newCountingLog()
		startBroker(t, s, broker.Config{Log: slog.New(log)})
		c := newClient(t, s)
		ctx := context.Background()
		st := c.stream("DELAY_DEAD")
		cfg := st.CachedInfo().Config
		cfg.MaxMsgs = 1
		if _, err := c.js.UpdateStream(ctx, cfg); err != nil {
			t.Fatal(err)
		}
		const bad = 500
		c.many("delayin.soon.orders.x", bad)
		time.Sleep(time.Minute)
		if got := log.of(""); got > 100 {
			t.Errorf("%d lines in a minute, want few", got)
		}
		cfg.MaxMsgs = -1
		if _, err := c.js.UpdateStream(ctx, cfg); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := len(c.dead()[string(message.BadTime)]); got != bad {
			t.Errorf("%d dead letters, want %d", got, bad)
		}
	})
}

// TestUnknownKind: a newer broker created a stream for a purpose that this version does not know. The broker does not
// touch it.
func TestUnknownKind(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c := newClient(t, s)
		c.create(jetstream.StreamConfig{Name: "DELAY_ROUNDS", Subjects: []string{"delayround.*.>"},
			Metadata: map[string]string{"delaybroker.kind": "rounds", "delaybroker.prefix": "delay",
				"delaybroker.format": "1"}})
		c.publish("delayround.k.orders.x", "round", message.HeaderFor, "1h")
		startBroker(t, s, broker.Config{})
		time.Sleep(2 * time.Hour)
		c.checkNoDead()
		if got := len(c.arrivals("DELAY_ROUNDS")); got != 1 {
			t.Errorf("%d messages are left in it, want 1", got)
		}
	})
}

// countingLog counts log lines by message.
type countingLog struct {
	mu    sync.Mutex
	count map[string]int
}

func newCountingLog() *countingLog { return &countingLog{count: make(map[string]int)} }

func (l *countingLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *countingLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *countingLog) WithGroup(string) slog.Handler            { return l }
func (l *countingLog) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count[r.Message]++
	return nil
}

// of is the number of log lines with this prefix.
func (l *countingLog) of(prefix string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for msg, count := range l.count {
		if len(msg) >= len(prefix) && msg[:len(prefix)] == prefix {
			n += count
		}
	}
	return n
}
