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

// newHandover returns a handover whose stream no longer has the schedules' subjects. Its stored schedules still fire.
func newHandover(t *testing.T, s *natstest.Server, schedule func(*scene)) handover {
	t.Helper()
	st := serverStage(t, s, jetstream.FileStorage)
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

// takeOver takes the schedules over, and returns the result for each schedule by name.
func (h handover) takeOver(change func(*schedules.TakeOver)) map[string]schedules.Result {
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

// arrivalTimes returns the times since the start at which messages for a target arrived.
func (h handover) arrivalTimes(target string) (times []string) {
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

// TestTakenOverFireOnce: each occurrence of a schedule arrives once, at its time. Before the take-over the server fires
// the schedule, and afterwards the broker. Only a schedule with a short interval loses occurrences, those within five
// seconds after the take-over.
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
		took := h.takeOver(nil)
		for name, want := range map[string]schedules.Outcome{
			"once": schedules.Taken, "soon": schedules.Kept, "every": schedules.Taken, "cron": schedules.Taken,
			"fast": schedules.Taken, "other": schedules.Kept,
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
			if got := strings.ReplaceAll(strings.Join(h.arrivalTimes(target), " "), "after ", ""); got != want {
				t.Errorf("%s arrived at %s\nwant %s", target, got, want)
			}
		}
		fast := h.arrivalTimes("orders.fast")
		if n := len(fast); n < 11*15-2 || n > 11*15 {
			t.Errorf("@every 4s arrived %d times in eleven minutes, want 163 to 165", n)
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

// TestTakeOverInTrouble: an import that fails between its steps leaves a schedule on the server and in the broker, and
// reports that. After a second import, only the broker has the schedule. If a client removes a schedule from the server
// during the import, the broker does not keep the schedule.
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
		// This import fails before the deletion.
		meddleBy(func(question string) bool { return !strings.HasPrefix(question, "STREAM.MSG.DELETE.") })
		for name, took := range h.takeOver(through) {
			if took.Outcome != schedules.Doubled {
				t.Errorf("%s: %+v, want both", name, took)
			}
		}
		// During the second import, a client removes b from the server.
		removed := false
		meddleBy(func(question string) bool {
			if strings.HasPrefix(question, "STREAM.MSG.DELETE.") && !removed {
				plan := h.stream("PLAN")
				_, err := plan.GetLastMsgForSubject(context.Background(), "schedules.r.a")
				if errors.Is(err, jetstream.ErrMsgNotFound) { // a is taken over
					removed = true
					err = plan.Purge(context.Background(), jetstream.WithPurgeSubject("schedules.r.b"))
				}
				if err != nil {
					t.Error(err)
				}
			}
			return true
		})
		took := h.takeOver(through)
		if !removed {
			t.Error("the client did not remove b during the import")
		}
		if took["a"].Outcome != schedules.Taken || took["b"].Outcome != schedules.Kept {
			t.Errorf("again: %+v", took)
		}
		h.wait(11 * time.Minute)
		if a, b := h.arrivalTimes("orders.a"), h.arrivalTimes("orders.b"); len(a) != 1 || a[0] != "after 10m0s" ||
			len(b) != 0 {
			t.Errorf("a arrived %v and b %v, want a once", a, b)
		}
	})
}

// TestTakeOverOfExistingSchedule: an import does not replace a schedule that the broker already has.
func TestTakeOverOfExistingSchedule(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		h := newHandover(t, s, func(sc *scene) { sc.plan("a", sc.at(10*time.Minute), "orders.a") })
		h.home = "DELAY_TIMERS"
		h.plan("a", h.at(20*time.Minute), "orders.a")
		for _, dry := range []bool{true, false} {
			took := h.takeOver(func(o *schedules.TakeOver) { o.DryRun = dry })["a"]
			if took.Outcome != schedules.Kept || !strings.Contains(took.Why, "has a schedule of this subject") {
				t.Errorf("dry run %t: %+v, want a schedule that the server keeps", dry, took)
			}
		}
		h.wait(21 * time.Minute)
		if got := strings.Join(h.arrivalTimes("orders.a"), " "); got != "after 10m0s after 20m0s" {
			t.Errorf("the schedules arrived %s, want both", got)
		}
	})
}
