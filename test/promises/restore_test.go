package promises

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestRestoredWhileReaderPauses restores a level from a backup while the owner reads nothing, because it holds 256
// messages that are not due soon. So the owner does not notice the restore. New messages get the sequences of old
// messages. In the backup of an older server, even the creation time of the stream is the same. When the owner removes
// delivered messages, it must not remove the new messages.
func TestRestoredWhileReaderPauses(t *testing.T) {
	t.Parallel()
	forEachBackup(t, func(t *testing.T, s *natstest.Server, c *harness.Client, backUp backupKind) {
		start := time.Now()
		c.PublishMany("delay.1h.orders.before", 50)
		time.Sleep(time.Second)
		backup := backUp(s, c, "DELAY_1h")
		c.PublishMany("delay.1h.orders.forgotten", 50)
		time.Sleep(30 * time.Minute)
		c.PublishMany("delay.1h.orders.forgotten", 900) // more messages than the owner reads half an hour ahead
		time.Sleep(time.Minute)
		c.Remove("DELAY_1h")
		natstest.Restore(t, c.NC, backup)
		const later = 1000
		c.PublishMany("delay.1h.orders.new", later)
		time.Sleep(time.Until(start.Add(100 * time.Minute)))
		count := make(map[string]int)
		for _, a := range c.Arrivals("ORDERS") {
			count[strings.TrimPrefix(a.Subject, "orders.")]++
		}
		if count["new"] != later || count["before"] != 50 {
			t.Errorf("%d of %d new messages arrived, and %d of 50 older messages; want each once", count["new"],
				later, count["before"])
		}
		c.CheckEmpty()
	})
}

// A backupKind makes a backup of a stream.
type backupKind func(s *natstest.Server, c *harness.Client, stream string) natstest.Backup

// backupKinds are the formats of backups: of current servers, and of servers before 2.15.
var backupKinds = map[string]backupKind{
	"backup": func(_ *natstest.Server, c *harness.Client, stream string) natstest.Backup {
		return natstest.SaveStream(c.T, c.NC, stream)
	},
	"backup before 2.15": func(s *natstest.Server, c *harness.Client, stream string) natstest.Backup {
		return s.SaveFiles(c.NC, stream)
	},
}

// forEachBackup runs f as a subtest for each format of backups, with a broker and a stream as the target orders.>.
func forEachBackup(t *testing.T, f func(t *testing.T, s *natstest.Server, c *harness.Client, backUp backupKind)) {
	t.Helper()
	for name, backUp := range backupKinds {
		natstest.Subtest(t, name, func(t *testing.T, s *natstest.Server) {
			c := harness.StartBroker(t, s, broker.Config{}).NewClient()
			c.Target("ORDERS", "orders.>")
			f(t, s, c, backUp)
		})
	}
}

// TestRestoredElsewhere restores the streams on another server. Pending messages arrive there at their due times, under
// the same ids.
func TestRestoredElsewhere(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	for name, backUp := range backupKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := natstest.Dir(t)
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				cfg := broker.Config{Ladder: harness.Ladder(t, "1s 10s 1m 10m 1h 2h")}
				b, c := harness.Start(t, s, cfg)
				start := time.Now()
				due := make(map[string]time.Duration)
				for _, delay := range []string{"1h", "90m", "3h"} {
					due[delay], _ = time.ParseDuration(delay)
					c.Publish("delay."+delay+".orders.x", delay)
				}
				ack := c.Publish("delay.2h.orders.x", "2h")
				due["2h"] = 2 * time.Hour
				id := fmt.Sprintf("%s-%d-%d", ack.Stream, ack.Sequence, start.UnixNano())
				time.Sleep(time.Minute) // some messages have hopped
				b.Stop()
				var all []natstest.Backup
				for name := range c.JS.StreamNames(context.Background()).Name() {
					all = append(all, backUp(s, c, name))
				}
				s.Stop()

				elsewhere := natstest.Run(t, dir)
				c = harness.NewClient(t, elsewhere)
				c.Target("ORDERS", "orders.>")
				for _, backup := range all {
					natstest.Restore(t, c.NC, backup)
				}
				harness.StartBroker(t, elsewhere, cfg)
				time.Sleep(time.Until(start.Add(3*time.Hour + time.Minute)))
				got := c.Arrivals("ORDERS")
				if len(got) != len(due) {
					t.Errorf("arrived %q, want all %d once", harness.Bodies(got), len(due))
				}
				for _, a := range got {
					if want := start.Add(due[a.Body]); !a.At.Equal(want) || !a.Due.Equal(want) {
						t.Errorf("%s arrived at %s with the due time %s, want %s", a.Body, a.At, a.Due, want)
					}
					if a.Body == "2h" && a.ID != id {
						t.Errorf("the id is %q, want the original id %q", a.ID, id)
					}
				}
				c.CheckEmpty()
			})
		})
	}
}

// TestRestoredOverLiveHistory restores a level under a running broker. Messages that were delivered since the backup
// are delivered again, immediately and under the same ids. Later messages arrive on time.
func TestRestoredOverLiveHistory(t *testing.T) {
	t.Parallel()
	forEachBackup(t, func(t *testing.T, s *natstest.Server, c *harness.Client, backUp backupKind) {
		c.Publish("delay.1m.orders.x", "before")
		time.Sleep(time.Second)
		backup := backUp(s, c, "DELAY_1m")
		c.Publish("delay.1m.orders.x", "since")
		time.Sleep(10 * time.Minute)
		c.Remove("DELAY_1m")
		natstest.Restore(t, c.NC, backup)
		restored := time.Now()
		c.Publish("delay.1m.orders.x", "after")
		time.Sleep(10 * time.Minute)
		got := c.Arrivals("ORDERS")
		if got, want := harness.Bodies(got), "after before×2 since"; got != want {
			t.Fatalf("arrived %q, want %q", got, want)
		}
		if got[0].ID != got[2].ID || got[2].Body != "before" || got[2].At.Sub(restored) > 5*time.Second {
			t.Errorf("the third arrival is %s with id %s, %s after the restore; want the first message immediately, with id %s",
				got[2].Body, got[2].ID, got[2].At.Sub(restored), got[0].ID)
		}
		if want := restored.Add(time.Minute); !got[3].At.Equal(want) {
			t.Errorf("%s arrived at %s, want %s", got[3].Body, got[3].At, want)
		}
		c.CheckEmpty()
	})
}
