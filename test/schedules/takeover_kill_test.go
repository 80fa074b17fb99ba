package schedules

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/timer/schedules"
	"delaybroker/test/natstest"
)

// errKilled is the error of each request of an import after the import was killed. An import is a call of
// schedules.TakeOver.MoveAll.
var errKilled = errors.New("killed")

// kill is the moment of an import's crash: at a publish or a deletion, which the server carries out or not.
type kill struct {
	at   int  // the number of the publish or deletion, from 1
	done bool // the server carries it out
}

// importUntil runs an import until the kill. It returns false if the import ended before the kill.
func (h handover) importUntil(k kill) bool {
	h.t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	n := 0
	step := func() (through bool) {
		if n++; n < k.at {
			return true
		}
		defer cancel(errKilled)
		return n == k.at && k.done
	}
	o := h.inspect.TakeOver(false)
	publish := o.Store.Publish
	o.Store.Publish = func(ctx context.Context, m *nats.Msg) jsapi.Reply {
		if step() {
			reply := publish(context.WithoutCancel(ctx), m)
			if n < k.at || reply.Err != nil {
				return reply
			}
		}
		return jsapi.Reply{Err: errKilled}
	}
	pass := h.server.Connect(nats.Name("pass"))
	defer pass.Close()
	api := fmt.Sprintf("KILL%d", time.Now().UnixNano())
	sub, err := pass.Subscribe(api+".>", func(m *nats.Msg) {
		question := strings.TrimPrefix(m.Subject, api+".")
		if !strings.HasPrefix(question, "STREAM.MSG.DELETE.") || step() {
			natstest.Forward(pass, question, m)
		}
	})
	natstest.NoError(h.t, err)
	defer func() { _ = sub.Unsubscribe() }()
	natstest.Flush(h.t, pass)
	o.Store.API.API = api
	err = o.MoveAll(ctx, "PLAN", func(schedules.Result) error { return context.Cause(ctx) })
	time.Sleep(10 * time.Millisecond) // requests that were sent reach the server
	return err != nil || ctx.Err() != nil
}

// TestImportKilled kills an import at each of its publishes and deletions, with and without their effect. After a
// complete import, each occurrence arrives once, at its time.
func TestImportKilled(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	for at := 1; at <= 6; at++ {
		for _, done := range []bool{false, true} {
			natstest.Subtest(t, fmt.Sprintf("step %d, done %t", at, done), func(t *testing.T, s *natstest.Server) {
				importKilled(t, s, kill{at, done}, func(h handover) {
					if at < 6 { // kill a second import too, before the complete one
						h.importUntil(kill{2, !done})
					}
				})
			})
		}
	}
}

// TestImportKilledWithTheServer is TestImportKilled with a restart of the server after the kill. Its bubbles run one
// after the other: see natstest.DropTimers.
func TestImportKilledWithTheServer(t *testing.T) {
	natstest.SkipShort(t)
	for _, k := range []kill{{1, true}, {2, false}, {2, true}} {
		t.Run(fmt.Sprintf("step %d, done %t", k.at, k.done), func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				importKilled(t, s, k, func(h handover) {
					h.server.Restart(time.Second)
					time.Sleep(5 * time.Second) // until all clients are connected
				})
			})
		})
	}
}

func importKilled(t *testing.T, s *natstest.Server, k kill, then func(h handover)) {
	t.Helper()
	h := newHandover(t, s, func(sc *scene) {
		sc.plan("once", sc.at(5*time.Minute), "orders.once")
		sc.plan("every", "@every 50s", "orders.every")
		sc.plan("cron", "0 */2 * * * *", "orders.cron")
	})
	h.wait(70 * time.Second)
	if !h.importUntil(k) {
		t.Fatal("the import ended before the kill")
	}
	then(h)
	for name, took := range h.takeOver(nil) {
		if took.Outcome != schedules.Taken {
			t.Errorf("the complete import of %s returned %+v, want it taken", name, took)
		}
	}
	h.checkOnce(5*time.Minute + 30*time.Second)
}

// checkOnce expects each occurrence until a time once.
func (h handover) checkOnce(until time.Duration) {
	h.t.Helper()
	h.wait(until)
	for target, want := range map[string]string{
		"orders.once": "5m0s", "orders.every": "50s 1m40s 2m30s 3m20s 4m10s 5m0s", "orders.cron": "1m59s 3m59s",
	} {
		if got := strings.ReplaceAll(strings.Join(h.arrivalTimes(target), " "), "after ", ""); got != want {
			h.t.Errorf("%s arrived at %s\nwant %s", target, got, want)
		}
	}
	for _, m := range h.stored("PLAN", "schedules.>") {
		h.t.Errorf("the server still has %s", m.Subject)
	}
}

// TestImportKilledAndFired: after a killed import, a schedule that the server and the broker have fires in both. After
// a second import, only the broker's schedule fires.
func TestImportKilledAndFired(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		h := newHandover(t, s, func(sc *scene) {
			sc.plan("every", "@every 50s", "orders.every")
		})
		h.wait(70 * time.Second)
		if !h.importUntil(kill{2, false}) {
			t.Fatal("the import ended before the kill")
		}
		h.wait(3 * time.Minute) // both schedules fire at 100 s and at 150 s
		for name, took := range h.takeOver(nil) {
			if took.Outcome != schedules.Taken {
				t.Errorf("the second import of %s returned %+v, want it taken", name, took)
			}
		}
		h.wait(5*time.Minute + time.Second)
		want := "50s 1m40s 1m40s 2m30s 2m30s 3m20s 4m10s 5m0s"
		if got := strings.ReplaceAll(strings.Join(h.arrivalTimes("orders.every"), " "), "after ", ""); got != want {
			t.Errorf("the schedule arrived at %s\nwant %s", got, want)
		}
	})
}

// TestImportOfCancelled: a client cancels a schedule by a request to the broker while the server still has the
// schedule: before the import, or after a killed import. No import restores the schedule.
func TestImportOfCancelled(t *testing.T) {
	t.Parallel()
	for _, at := range []int{0, 2} {
		natstest.Subtest(t, fmt.Sprint("killed at step ", at), func(t *testing.T, s *natstest.Server) {
			h := newHandover(t, s, func(sc *scene) {
				sc.plan("once", sc.at(5*time.Minute), "orders.once")
				sc.plan("every", "@every 2m", "orders.every")
			})
			h.wait(10 * time.Second)
			if at > 0 && !h.importUntil(kill{at, false}) {
				t.Fatal("the import ended before the kill")
			}
			h.home = "DELAY_TIMERS"
			for _, name := range []string{"once", "every"} {
				if said := h.answer(h.message("schedules."+name, "")); said != "ok" {
					t.Errorf("the cancel of %s: %s", name, said)
				}
			}
			for name, took := range h.takeOver(nil) {
				if took.Outcome != schedules.Ended {
					t.Errorf("the import of %s returned %+v, want it ended", name, took)
				}
			}
			h.wait(10 * time.Minute)
			if once, every := h.arrivalTimes("orders.once"), h.arrivalTimes("orders.every"); len(once)+len(every) > 0 {
				t.Errorf("cancelled schedules arrived at %s and %s", once, every)
			}
		})
	}
}
