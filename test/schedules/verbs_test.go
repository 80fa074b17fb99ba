package schedules

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// This file tests schedules in the server's format as operators see them: as timers with the name _schedule.<subject>.

// doVerb sends a request about the schedule of a subject to the control service.
func doVerb(c *harness.Client, verb, schedule, body string) (a change.Answer) {
	c.T.Helper()
	if code := c.CallService(&a, "delayctl.timer."+verb+"._schedule."+schedule, body); code != "" {
		c.T.Errorf("%s %s is refused: %s", verb, schedule, code)
	}
	return a
}

// checkVerb is like doVerb, and expects this outcome and this target in the answer.
func checkVerb(c *harness.Client, want timer.Outcome, target, verb, schedule, body string) change.Answer {
	c.T.Helper()
	a := doVerb(c, verb, schedule, body)
	if a.Outcome != want || a.Key != "_schedule."+schedule || a.Target != target {
		c.T.Errorf("%s %s is answered %+v, want %s, to %s", verb, schedule, a, want, target)
	}
	return a
}

// expectHeader returns the header of a request that replaces only a schedule with this sequence.
func expectHeader(sequence uint64) []string {
	return []string{"Nats-Expected-Last-Subject-Sequence", fmt.Sprint(sequence)}
}

// TestVerbsOnSchedules: a schedule that fires once can be read, moved, fired and cancelled by its name. Afterwards the
// schedule's client gets the answers that the server gives after another client has replaced or ended a schedule.
func TestVerbsOnSchedules(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	harness.Bubble(t, harness.ScheduleConfig(t), func(t *testing.T, c *harness.Client) {
		in := c.Subscribe("orders.>")
		start := time.Now()
		ask := func(name string, wait time.Duration, headers ...string) (uint64, jetstream.ErrorCode) {
			return c.Schedule("schedules.orders."+name, "orders."+name, harness.AtExpression(start.Add(wait)), name, headers...)
		}
		moved, _ := ask("moved", time.Hour, "Order", "42", "Nats-Schedule-TTL", "1h", "Nats-Msg-Id", "1")
		ask("fired", time.Hour)
		gone, _ := ask("gone", time.Hour)
		if a := checkVerb(c, timer.Pending, "orders.moved", "get", "schedules.orders.moved", ""); a.Generation != moved ||
			!a.Due.Equal(start.Add(time.Hour)) {
			t.Errorf("get is answered %+v", a)
		}
		a := checkVerb(c, timer.Moved, "orders.moved", "move", "schedules.orders.moved", `{"in":"10m","word":"w"}`)
		again := checkVerb(c, timer.Moved, "orders.moved", "move", "schedules.orders.moved", `{"in":"10m","word":"w"}`)
		if !a.Due.Equal(start.Add(10*time.Minute)) || again.Generation != a.Generation {
			t.Errorf("the move by ten minutes returns %+v, and the repeated move %+v", a, again)
		}
		checkVerb(c, timer.Fired, "orders.fired", "fire", "schedules.orders.fired", "")
		if a := checkVerb(c, timer.Cancelled, "orders.gone", "cancel", "schedules.orders.gone",
			fmt.Sprintf(`{"generation":%d}`, gone)); a.Generation != gone {
			t.Errorf("the answer to cancel is %+v, want generation %d", a, gone)
		}
		checkVerb(c, timer.NotFound, "", "cancel", "schedules.orders.none", "")
		if _, code := ask("moved", 2*time.Hour, expectHeader(moved)...); code != 10071 {
			t.Errorf("the answer to a request that expects the moved schedule is %d, want 10071", code)
		}
		if _, code := ask("gone", 2*time.Hour, expectHeader(gone)...); code != 10071 {
			t.Errorf("the answer to a request that expects the cancelled schedule is %d, want 10071", code)
		}
		if seq, code := ask("gone", 20*time.Minute, expectHeader(0)...); seq <= gone {
			t.Errorf("after the cancel, the answer to a request that expects no schedule is %d, %d", seq, code)
		}
		synctest.Wait()
		harness.CheckBodies(t, in.Arrivals(), "fired")
		harness.CheckExactly(t, in, start.Add(10*time.Minute), 1)
		got := in.Arrivals()[1]
		for name, want := range map[string]string{
			"Order": "42", "Nats-TTL": "3600", "Delay-Scheduler": "schedules.orders.moved", "Delay-Schedule-Next": "purge",
			"Delay-Msg-Id": "1",
		} {
			if is := got.Header.Get(name); is != want {
				t.Errorf("the moved schedule has %s %q, want %q", name, is, want)
			}
		}
		harness.CheckExactly(t, in, start.Add(20*time.Minute), 2)
		time.Sleep(2 * time.Hour)
		harness.CheckBodies(t, in.Arrivals(), "fired gone moved")
		c.CheckNoDead()
		c.CheckNoTimers()
	})
}

// TestMovedScheduleIsNotItsID: after an operator has moved a schedule, a client's request with the first request's id
// is not a duplicate.
func TestMovedScheduleIsNotItsID(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	harness.Bubble(t, harness.ScheduleConfig(t), func(t *testing.T, c *harness.Client) {
		in := c.Subscribe("orders.>")
		start := time.Now()
		ask := func(wait time.Duration, body string) uint64 {
			seq, _ := c.Schedule("schedules.orders.x", "orders.x", harness.AtExpression(start.Add(wait)), body, "Nats-Msg-Id",
				"1")
			return seq
		}
		ask(time.Hour, "first")
		time.Sleep(20 * time.Minute) // longer than the duplicate window of an id
		a := checkVerb(c, timer.Moved, "orders.x", "move", "schedules.orders.x", `{"by":"10m"}`)
		time.Sleep(time.Minute)
		if seq := ask(30*time.Minute, "second"); seq <= a.Generation {
			t.Errorf("the answer is %d, want a sequence above %d", seq, a.Generation)
		}
		time.Sleep(time.Hour)
		harness.CheckBodies(t, in.Arrivals(), "second")
	})
}

// TestVerbsOnRepeatingSchedules: requests with the name of a repeating schedule pause, resume, move and fire the
// schedule, and change its interval. The message of the extra firing has the headers of an occurrence. A client that
// has only the sequence of its acknowledgement can still replace the paused schedule.
func TestVerbsOnRepeatingSchedules(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	harness.Bubble(t, harness.ScheduleConfig(t), func(t *testing.T, c *harness.Client) {
		c.Create(jetstream.StreamConfig{Name: "MAIL", Subjects: []string{"mail.>"}, AllowRollup: true})
		in := c.Subscribe("mail.>")
		start := time.Now()
		g, _ := c.Schedule("schedules.mail.a", "mail.a", "@every 1h", "a", "Nats-Schedule-Rollup", "sub")
		const name = "schedules.mail.a"
		if a := checkVerb(c, timer.Pending, "mail.a", "get", name, ""); a.Recurring == nil || a.Recurring.Series != g {
			t.Errorf("get is answered %+v", a)
		}
		checkVerb(c, timer.Fired, "mail.a", "fire", name, "")
		synctest.Wait()
		harness.CheckBodies(t, in.Arrivals(), "a")
		first := in.Arrivals()[0].Header
		for header, want := range map[string]string{
			"Nats-Rollup": "sub", "Delay-Scheduler": name,
			"Delay-Schedule-Next": start.Add(time.Hour).UTC().Format(time.RFC3339Nano),
		} {
			if is := first.Get(header); is != want {
				t.Errorf("the extra delivery has %s %q, want %q", header, is, want)
			}
		}
		harness.CheckExactly(t, in, start.Add(time.Hour), 1)
		checkVerb(c, timer.Moved, "mail.a", "move", name, `{"by":"10m"}`)
		harness.CheckExactly(t, in, start.Add(2*time.Hour+10*time.Minute), 2)
		harness.CheckExactly(t, in, start.Add(3*time.Hour), 3) // the move affected only one round
		checkVerb(c, timer.Paused, "mail.a", "pause", name, "")
		time.Sleep(150 * time.Minute) // until 5h30m
		checkVerb(c, timer.Paused, "mail.a", "get", name, "")
		checkVerb(c, timer.Moved, "mail.a", "retime", name, `{"every":"30m"}`)
		checkVerb(c, timer.Pending, "mail.a", "resume", name, fmt.Sprintf(`{"series":%d}`, g))
		harness.CheckExactly(t, in, start.Add(6*time.Hour), 4)
		checkVerb(c, timer.Paused, "mail.a", "pause", name, "")
		if _, code := c.Schedule(name, "mail.b", "@every 1h", "b", expectHeader(g+100)...); code != 10071 {
			t.Errorf("the answer to a request that expects another sequence is %d", code)
		}
		if seq, code := c.Schedule(name, "mail.b", "@every 1h", "b", expectHeader(g)...); seq <= g {
			t.Errorf("the answer to a request that expects the right sequence is %d, %d", seq, code)
		}
		harness.CheckExactly(t, in, start.Add(7*time.Hour), 5)
		checkVerb(c, timer.Cancelled, "mail.b", "cancel", name, "")
		time.Sleep(2 * time.Hour)
		harness.CheckBodies(t, in.Arrivals(), "a×5 b")
		c.CheckNoDead()
		c.CheckNoTimers()
	})
}

// TestScheduleWithAnotherTarget: a request with a target does not change a schedule that has another target. A set
// under the name of a schedule is refused.
func TestScheduleWithAnotherTarget(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c := startScene(t, s)
		for _, verb := range []timer.Verb{timer.Get, timer.Cancel, timer.Fire} {
			w := change.Change{Call: timer.Call{Verb: verb}, Key: "_schedule.schedules.orders.a", Target: "orders.other"}
			if a := c.Check(w, timer.Conflict, 0); a.Why != "the schedule's target is orders.expire" {
				t.Errorf("%s is answered %+v", verb, a)
			}
		}
		w := harness.NewChange(timer.Set, "_schedule.schedules.orders.a", 0)
		w.Target = "orders.expire"
		if _, err := c.Timers.Do(t.Context(), w); err == nil {
			t.Error("a set under the name of a schedule was not refused")
		}
	})
}

// TestForgedDelivery: the broker does not believe headers of a schedule's delivery on a client's own timer, since they
// have no seal.
func TestForgedDelivery(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, harness.ScheduleConfig(t), func(t *testing.T, c *harness.Client) {
		in := c.Subscribe("orders.>")
		c.Publish("delaytimer.fire-1.orders.x", "x", "Delay-For", "1s", "Delay-Scheduler", "schedules.orders.x",
			"Delay-Rollup", "sub")
		time.Sleep(2 * time.Second)
		got := in.Arrivals()
		if len(got) != 1 || got[0].Header.Get("Delay-Scheduler") != "" || got[0].Header.Get("Nats-Rollup") != "" {
			t.Errorf("%+v arrived, want the message without the headers of the broker", got)
		}
	})
}

// TestScheduleThatItsTargetRefuses: the broker refuses a TTL or a rollup that the target's stream does not allow, like
// the server. If the account has no stream for the target, the broker stores the schedule.
func TestScheduleThatItsTargetRefuses(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, harness.ScheduleConfig(t), func(t *testing.T, c *harness.Client) {
		c.Create(jetstream.StreamConfig{Name: "PLAIN", Subjects: []string{"orders.plain.>"}})
		c.Create(jetstream.StreamConfig{
			Name: "FULL", Subjects: []string{"orders.full.>"}, AllowMsgTTL: true, AllowRollup: true,
		})
		for _, tt := range []struct {
			target, header, value string
			want                  jetstream.ErrorCode
		}{
			{"orders.plain.x", "Nats-Schedule-TTL", "1h", 10166},
			{"orders.plain.x", "Nats-Schedule-TTL", "never", 10166},
			{"orders.plain.x", "Nats-Schedule-Rollup", "sub", 10192},
			{"orders.plain.x", "Order", "42", 0},
			{"orders.full.x", "Nats-Schedule-TTL", "1h", 0},
			{"orders.full.x", "Nats-Schedule-Rollup", "sub", 0},
			{"orders.nobody", "Nats-Schedule-TTL", "1h", 0},
		} {
			seq, code := c.Schedule("schedules.orders.x", tt.target, harness.AtExpression(time.Now().Add(time.Hour)), "x",
				tt.header, tt.value)
			if code != tt.want || seq == 0 && tt.want == 0 {
				t.Errorf("%s: %s to %s is answered %d, want %d", tt.header, tt.value, tt.target, code, tt.want)
			}
		}
	})
}
