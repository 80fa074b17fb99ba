package operate

import (
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/journal"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

func journalConfig(c *harness.Client) jetstream.StreamConfig {
	c.T.Helper()
	return c.Stream(journalStream).CachedInfo().Config
}

// TestJournalRetention: a broker applies a changed DELAY_JOURNAL to the stream. If the journal is switched off, its
// stream stays, and the log and the reports mention that. The server removes records after the retention time.
func TestJournalRetention(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		log := harness.NewCountingLog()
		c := harness.NewClient(t, s)
		c.Target("ORDERS", "orders.>")
		start := func(kept time.Duration, bytes int64) *harness.Instance {
			return harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 5s"), Journal: kept,
				JournalBytes: bytes,
				Log:          slog.New(log)})
		}
		start(time.Hour, 0).Stop()
		if cfg := journalConfig(c); cfg.MaxAge != time.Hour || cfg.MaxBytes != 1<<30 ||
			cfg.Discard != jetstream.DiscardOld {
			t.Errorf("the stream was created with %+v", cfg)
		}
		start(time.Minute, 1<<20).Stop()
		if cfg := journalConfig(c); cfg.MaxAge != time.Minute || cfg.MaxBytes != 1<<20 {
			t.Errorf("the stream was changed to %+v", cfg)
		}
		i := start(2*time.Hour, 1<<20)
		if got := log.CountPrefix("the configuration of a stream differs"); got != 0 {
			t.Errorf("%d drifts were logged, want none", got)
		}
		c.Publish("delay.1s.orders.a", "x")
		time.Sleep(2 * time.Second)
		i.Stop()
		start(0, 0)
		if cfg := journalConfig(c); cfg.MaxAge != 2*time.Hour {
			t.Errorf("without a journal, the stream was changed to %+v", cfg)
		}
		if got := log.CountPrefix("the configuration of a stream differs"); got != 1 {
			t.Errorf("the remaining journal was logged %d times, want once", got)
		}
		c.Publish("delay.1s.orders.b", "x")
		time.Sleep(time.Hour)
		if found, report := journaled(c, journal.Query{}); len(found) != 1 {
			t.Errorf("found %+v, %+v, want the first delivery", found, report)
		}
		time.Sleep(time.Hour)
		if found, report := journaled(c, journal.Query{}); len(found) != 0 || !report.OldestBatch.IsZero() {
			t.Errorf("after the retention time: found %+v, %+v, want an empty journal", found, report)
		}
	})
}

// TestWithoutAJournal: the journal's stream cannot be created, since another stream has its name, or there is no room
// for it. The broker logs this once, and delivers the messages.
func TestWithoutAJournal(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		maxStore int64  // the storage limit of the server, in bytes
		other    string // stream of another program
	}{
		"name in use": {1 << 40, journalStream},
		"no room":     {1 << 29, "ANOTHER"},
	} {
		natstest.SubtestWith(t, name, server.Options{JetStreamMaxStore: tt.maxStore}, func(t *testing.T, s *natstest.Server) {
			c := harness.NewClient(t, s)
			c.Target(tt.other, "mine.>")
			log := harness.NewCountingLog()
			harness.StartBroker(
				t,
				s,
				broker.Config{Ladder: harness.Ladder(t, "1s 5s"), Journal: time.Hour, Leaser: harness.Together,
					Log: slog.New(log)},
			)
			if got := log.CountPrefix("the journal's stream cannot be created or used"); got != 1 {
				t.Errorf("the missing journal was logged %d times, want once", got)
			}
			in := c.Subscribe("orders.>")
			c.Target("ORDERS", "orders.>")
			c.Publish("delay.1s.orders.a", "x")
			harness.CheckExactly(t, in, time.Now().Add(time.Second), 0)
		})
	}
}

// TestJournalDelaysNoStart: a broker does not wait for a journal's stream without a leader. If the server does not
// answer the request to create the stream, the broker gives up at the first attempt later than 15 s after the start.
// Each further request takes 5 s.
func TestJournalDelaysNoStart(t *testing.T) {
	for name, tt := range map[string]struct {
		silent string // the request without an answer; if empty, the stream is listed by name only
		ready  time.Duration
	}{
		"no leader":   {ready: 0},
		"not created": {silent: "STREAM.CREATE." + journalStream, ready: 28 * time.Second}, // five times 5 s, and pauses
	} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				api := s.Connect(nats.Name("list"))
				hidden := false
				natstest.Proxy(t, s, func(request string, m *nats.Msg) bool {
					if request != "STREAM.LIST" || !hidden {
						return request == tt.silent
					}
					go func() { _ = m.Respond(harness.LeaderlessList(t, api, m.Data, journalStream)) }()
					return true
				})
				cfg := broker.Config{Ladder: harness.Ladder(t, "1s 5s"), APIPrefix: natstest.ProxyAPI}
				if tt.silent == "" {
					cfg.Journal = time.Hour
				}
				harness.StartBroker(t, s, cfg).Stop()
				hidden, cfg.Journal = tt.silent == "", time.Hour
				began := time.Now()
				i := harness.StartBroker(t, s, cfg)
				if took := time.Since(began); took != tt.ready {
					t.Errorf("ready after %s, want %s", took, tt.ready)
				}
				c := harness.NewClient(t, s)
				in := c.Subscribe("orders.>")
				c.Target("ORDERS", "orders.>")
				c.Publish("delay.1s.orders.a", "x")
				harness.CheckExactly(t, in, time.Now().Add(time.Second), 0)
				time.Sleep(time.Second)
				if kept := i.Broker.Status().Journal; (kept.Stored == 1) != (tt.silent == "") || !kept.Kept {
					t.Errorf("the journal has %+v", kept)
				}
			})
		})
	}
}
