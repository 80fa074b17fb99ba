package schedules

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/schedules"
	"delaybroker/test/natstest"
)

// handover has a stream of the server with schedules, and a broker that takes them over.
type handover struct {
	*scene
	inspect *inspect.Inspector
}

const handoverRules = "schedules.>=orders.>"

// newHandover returns a handover. The stream no longer has the schedules' subjects; its stored schedules still fire.
func newHandover(t *testing.T, s *natstest.Server, schedule func(*scene)) handover {
	t.Helper()
	st := besideServer(t, s, jetstream.FileStorage)
	nc := s.Connect(nats.Name("client"))
	time.Sleep(time.Until(time.Now().Add(time.Second).Truncate(time.Second)))
	sc := &scene{stage: st, t: t, name: "r", nc: nc, js: s.JetStream(nc), start: time.Now()}
	schedule(sc)
	natstest.Reconfigure(t, sc.js, "PLAN", func(cfg *jetstream.StreamConfig) { cfg.Subjects = []string{"orders.>"} })
	t.Cleanup(st.startBroker(t))
	i, err := inspect.Open(s.Connect(nats.Name("operator")),
		broker.Config{Timers: true, Schedules: message.ParseScheduleRules(handoverRules, nil)})
	natstest.NoError(t, err)
	natstest.NoError(t, i.ReadKeys(context.Background()))
	return handover{sc, i}
}

// take takes the schedules over, and returns their fates by subject.
func (h handover) take(change func(*schedules.TakeOver)) map[string]schedules.Result {
	h.t.Helper()
	o := h.inspect.TakeOver(false)
	if change != nil {
		change(&o)
	}
	all := make(map[string]schedules.Result)
	natstest.NoError(h.t, o.MoveAll(context.Background(), "PLAN", func(took schedules.Result) error {
		all[strings.TrimPrefix(took.Subject, "schedules.r.")] = took
		return nil
	}))
	return all
}

// came returns the times since the start at which messages came for a target.
func (h handover) came(target string) (times []string) {
	h.t.Helper()
	for _, m := range h.stored("PLAN", h.own(target)) {
		times = append(times, h.after(m.Time))
	}
	return times
}

func (s *scene) plan(name, when, target string, headers ...string) {
	s.t.Helper()
	if said := s.answer(s.message("schedules."+name, name,
		append([]string{"Nats-Schedule", when, "Nats-Schedule-Target", target}, headers...)...)); said != "ok" {
		s.t.Fatalf("%s: %s", name, said)
	}
}

// TestTakenOverFireOnce: each occurrence of a schedule that is taken over comes once, at its time: from the server
// before, and from the broker afterwards.
func TestTakenOverFireOnce(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		h := newHandover(t, s, func(sc *scene) {
			sc.plan("once", sc.at(10*time.Minute), "orders.once", "Order", "42", "Nats-Msg-Id", "1", "Nats-Expected-Stream",
				"PLAN")
			sc.plan("soon", sc.at(2*time.Minute+3*time.Second), "orders.soon")
			sc.plan("every", "@every 50s", "orders.every")
			sc.plan("cron", "0 */3 * * * *", "orders.cron")
			sc.plan("fast", "@every 4s", "orders.fast")
			sc.plan("other", sc.at(10*time.Minute), "orders.source", "Nats-Schedule-Source", "orders.once")
		})
		h.wait(2 * time.Minute)
		dry := h.inspect.TakeOver(true)
		natstest.NoError(t, dry.MoveAll(context.Background(), "PLAN", func(schedules.Result) error { return nil }))
		took := h.take(nil)
		for name, want := range map[string]schedules.Outcome{
			"once": schedules.Taken, "soon": schedules.Kept, "every": schedules.Taken, "cron": schedules.Taken,
			"fast":  schedules.Taken,
			"other": schedules.Kept,
		} {
			if took[name].Outcome != want || (want == schedules.Kept) != (took[name].Why != "") {
				t.Errorf("%s: %+v, want %s", name, took[name], want)
			}
		}
		if want := h.start.Add(150 * time.Second); !took["every"].Due.Equal(want) {
			t.Errorf("the schedule fires next at %s, want %s", took["every"].Due, want)
		}
		h.wait(11 * time.Minute)
		for target, want := range map[string]string{
			"orders.once": "10m0s", "orders.soon": "2m3s",
			"orders.every": "50s 1m40s 2m30s 3m20s 4m10s 5m0s 5m50s 6m40s 7m30s " +
				"8m20s 9m10s 10m0s 10m50s",
			"orders.cron": "2m59s 5m59s 8m59s",
		} {
			if got := strings.ReplaceAll(strings.Join(h.came(target), " "), "after ", ""); got != want {
				t.Errorf("%s arrived at %s\nwant %s", target, got, want)
			}
		}
		fast := h.came("orders.fast")
		if n := len(fast); n < 11*15-2 || n > 11*15 {
			t.Errorf("every four seconds arrived %d times in eleven minutes, want all but those of five seconds", n)
		}
		for i, at := range fast {
			if i > 0 && at == fast[i-1] {
				t.Errorf("the round %s arrived twice", at)
			}
		}
		if m := h.stored("PLAN",
			h.own("orders.once")); len(m) != 1 || m[0].Header.Get("Order") != "42" || m[0].Header.Get("Delay-Msg-Id") == "" {
			t.Errorf("the schedule arrived as %+v", m)
		}
	})
}

// TestTakeOverInTrouble: an import that fails in the middle leaves a schedule in both places, and says so. After it is
// repeated, the schedule is in one place. A schedule that was replaced on the server meanwhile is not kept in the
// broker.
func TestTakeOverInTrouble(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		h := newHandover(t, s, func(sc *scene) {
			sc.plan("a", sc.at(10*time.Minute), "orders.a")
			sc.plan("b", sc.at(10*time.Minute), "orders.b")
		})
		var meddle atomic.Pointer[func(question string) (pass bool)]
		meddleBy := func(pass func(question string) bool) { meddle.Store(&pass) }
		natstest.Proxy(t, s, func(question string, _ *nats.Msg) bool { return !(*meddle.Load())(question) })
		through := func(o *schedules.TakeOver) { o.Store.API.API = natstest.ProxyAPI }
		// The import is interrupted before the deletion.
		meddleBy(func(question string) bool { return !strings.HasPrefix(question, "STREAM.MSG.DELETE.") })
		for name, took := range h.take(through) {
			if took.Outcome != schedules.Doubled {
				t.Errorf("%s: %+v, want both", name, took)
			}
		}
		// The import is repeated. Meanwhile a client replaces b on the server.
		replaced := false
		meddleBy(func(question string) bool {
			if strings.HasPrefix(question, "STREAM.MSG.DELETE.") && !replaced {
				plan := h.stream("PLAN")
				_, err := plan.GetLastMsgForSubject(context.Background(), "schedules.r.a")
				if errors.Is(err, jetstream.ErrMsgNotFound) { // a is taken over
					replaced = true
					err = plan.Purge(context.Background(), jetstream.WithPurgeSubject("schedules.r.b"))
				}
				if err != nil {
					t.Error(err)
				}
			}
			return true
		})
		took := h.take(through)
		if !replaced {
			t.Error("nothing was replaced meanwhile")
		}
		if took["a"].Outcome != schedules.Taken || took["b"].Outcome != schedules.Kept {
			t.Errorf("again: %+v", took)
		}
		h.wait(11 * time.Minute)
		if a, b := h.came("orders.a"), h.came("orders.b"); len(a) != 1 || a[0] != "after 10m0s" || len(b) != 0 {
			t.Errorf("a arrived %v and b %v, want a once", a, b)
		}
	})
}

// TestTakeOverOfExistingSchedule: a schedule that the broker already has is not replaced.
func TestTakeOverOfExistingSchedule(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		h := newHandover(t, s, func(sc *scene) { sc.plan("a", sc.at(10*time.Minute), "orders.a") })
		h.home = "DELAY_TIMERS"
		h.plan("a", h.at(20*time.Minute), "orders.a")
		if took := h.take(nil)["a"]; took.Outcome != schedules.Kept || !strings.Contains(took.Why,
			"has a schedule of this subject") {
			t.Errorf("%+v", took)
		}
		h.wait(21 * time.Minute)
		if got := strings.Join(h.came("orders.a"), " "); got != "after 10m0s after 20m0s" {
			t.Errorf("%s arrived, want each", got)
		}
	})
}
