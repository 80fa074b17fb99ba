package timers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestBadTimerBecomesLetter: an invalid message on the subject of a timer becomes a dead letter, which names the
// generation. Neither the message nor a timer that it has replaced is delivered.
func TestBadTimerBecomesLetter(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client) {
		in := c.Subscribe(">")
		want := make(map[string][]string) // the generations that dead letters name, by code
		for _, tt := range []struct {
			key     string
			code    message.Code
			headers []string
		}{
			{"noise", message.BadTimer, nil},
			{"both", message.TimeTwice, []string{"Delay-For", "1m", "Delay-Until", "2000-01-02T00:00:00Z"}},
			{"time", message.BadTime, []string{"Delay-For", "soon"}},
			{"_key", message.BadTimer, []string{"Delay-For", "1m"}},
			{"k*", message.BadTimer, []string{"Delay-For", "1m"}},
			{"*", message.BadTimer, []string{"Delay-For", "1m"}},
			{strings.Repeat("k", 129), message.BadTimer, []string{"Delay-For", "1m"}},
			{"fired", message.BadInternal, []string{"Delay-Fired", "1 me"}},
			{"over", message.BadInternal, []string{"Delay-Over", "1 delivered"}},
		} {
			subject := "delaytimer." + tt.key + ".orders.x"
			if tt.key[0] != '_' && !strings.Contains(tt.key, "*") && len(tt.key) < 100 {
				c.Publish(subject, "replaced", "Delay-For", "1m")
			}
			g := c.Publish(subject, "bad", tt.headers...).Sequence
			want[string(tt.code)] = append(want[string(tt.code)], fmt.Sprint("generation ", g, ";"))
		}
		time.Sleep(10 * time.Minute)
		for _, a := range in.Arrivals() {
			if strings.HasPrefix(a.Subject, "orders.") {
				t.Errorf("%[2]q arrived on %[1]s", a.Subject, a.Body)
			}
		}
		dead := c.DeadLetters()
		for code, generations := range want {
			var said []string
			for _, a := range dead[code] {
				said = append(said, a.Header.Get(message.HeaderError))
				if !strings.HasPrefix(a.Header.Get(message.HeaderSubject), "delaytimer.") || a.Body != "bad" {
					t.Errorf("a letter %s of %q: %v", code, a.Body, a.Header)
				}
			}
			for _, g := range generations {
				if !strings.Contains(strings.Join(said, "\n"), g) {
					t.Errorf("no letter %s names %q: %q", code, g, said)
				}
			}
		}
		c.CheckNoTimersBut("DELAY_DEAD")
	})
}

// TestHostileTimerSubjects: a timer whose subject has wildcards or a forbidden target becomes a dead letter, and
// affects no other timer. A timer whose subject has an empty token is not stored.
func TestHostileTimerSubjects(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client) {
		in := c.Subscribe("orders.>")
		start := time.Now()
		c.Publish("delaytimer.k.orders.x", "mine", "Delay-For", "10m")
		letters := 0
		for _, subject := range []string{
			"delaytimer.k.orders.*", "delaytimer.k.*", "delaytimer.k.>", "delaytimer.*.orders.x", "delaytimer.*.>",
			"delaytimer.k.$JS.API.STREAM.PURGE.DELAY_TIMERS", "delaytimer.k.$SYS.REQ.USER.INFO", "delaytimer.k._INBOX.x",
			"delaytimer.k.delay.1s.orders.x", "delaytimer.k.delaytimer.k.orders.x", "delaytimer.k.delaysys.armed",
			"delaytimer.k.delayctl.timer.cancel.k.orders.x",
		} {
			for _, header := range []string{"Delay-For", "Delay-Cancel"} {
				c.Publish(subject, "evil", header, "1s")
				if header == "Delay-For" {
					letters++
				}
			}
		}
		for _, subject := range []string{"delaytimer.k..x", "delaytimer..orders.x", "delaytimer.k.orders.", "delaytimer.k."} {
			m := harness.NewMsg(subject, "evil", "Delay-For", "1s")
			if answer, err := natstest.Request(c.NC, m, time.Second); err == nil {
				t.Errorf("%s is answered %s", subject, answer.Data)
			}
		}
		harness.CheckExactly(t, in, start.Add(10*time.Minute), 0)
		time.Sleep(10 * time.Minute)
		n := 0
		for code, dead := range c.DeadLetters() {
			n += len(dead)
			for _, l := range dead {
				if l.Body != "evil" {
					t.Errorf("a letter %s of %q", code, l.Body)
				}
			}
		}
		if n != letters {
			t.Errorf("%d dead letters, want %d", n, letters)
		}
		c.CheckNoTimersBut("DELAY_DEAD")
	})
}

// TestReservedHeadersOfTimers: if a client sets headers that the server or the broker writes, these headers have no
// effect on the timer, and the target gets none of the server's. A timer with an unknown Delay header becomes a dead
// letter.
func TestReservedHeadersOfTimers(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client) {
		c.Target("ORDERS", "orders.>")
		due := time.Now().Add(90 * time.Second)
		far := due.Add(100 * time.Hour).UTC().Format(time.RFC3339Nano)
		for i, headers := range [][]string{
			{"Nats-Expected-Stream", "DELAY_TIMERS"}, {"Nats-Expected-Last-Subject-Sequence", "0"},
			{"Nats-Marker-Reason", "MaxAge"}, {"Nats-Num-Pending", "7"}, {"Nats-Msg-Size", "1"}, {"Status", "503"},
			{"Nats-Expected-Last-Subject-Sequence", "0", "Nats-Required-Api-Level", "1"},
			{"Delay-Due", far, "Delay-Accepted", far}, {"Delay-Id", "DELAY_TIMERS-1-1"}, {"Delay-Attempts", "19"},
			{"Delay-Timer", "9 0 other", "Delay-State", "1 AA"},
			{"Delay-Key", "other"}, {"Delay-Late", "1h"}, // these headers do not exist
		} {
			subject := fmt.Sprintf("delaytimer.%d.orders.x", i)
			c.Publish(subject, "x", append(headers, "Delay-For", "90s")...)
		}
		time.Sleep(2 * time.Minute)
		came := c.Arrivals("ORDERS")
		if dead := len(c.DeadLetters()["bad_option"]); len(came) != 11 || dead != 2 {
			t.Errorf("%d arrived, and %d are dead letters; want 11 and 2", len(came), dead)
		}
		for _, a := range came {
			if !a.Due.Equal(due) || !a.At.Equal(due) || a.Header.Get(message.HeaderAttempts) != "" {
				t.Errorf("arrived at %s, due %s, with %v; want %s and no attempts", a.At, a.Due, a.Header, due)
			}
			for name := range a.Header {
				if strings.HasPrefix(name, "Nats-") && name != "Nats-Msg-Id" || name == "Status" {
					t.Errorf("the target gets the header %s: %s", name, a.Header.Get(name))
				}
			}
		}
		c.CheckNoTimersBut("DELAY_DEAD")
	})
}

// TestRelayedTimers: NATS checks no permission for reply subjects. Another tenant redirects messages to the subjects of
// a timer, a marker and the cursor. The broker does not act on these messages, but a timer that they replace is not
// delivered.
func TestRelayedTimers(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client) {
		in := c.Subscribe("orders.>")
		c.Create(jetstream.StreamConfig{Name: "EVIL", Subjects: []string{"evil.>"}, AllowDirect: true})
		relay := func(to, body string, headers ...string) {
			t.Helper()
			c.Publish("evil.x", body, headers...)
			m := &nats.Msg{Subject: "$JS.API.DIRECT.GET.EVIL", Reply: to, Data: []byte(`{"last_by_subj":"evil.x"}`)}
			natstest.NoError(t, c.NC.PublishMsg(m))
			time.Sleep(100 * time.Millisecond)
		}
		start := time.Now()
		c.Publish("delaytimer.mine.orders.x", "mine", "Delay-For", "10m")
		c.Publish("delaytimer.victim.orders.x", "victim", "Delay-For", "10m")
		c.Publish("delaytimer.other.orders.x", "other", "Delay-For", "10m")
		time.Sleep(2 * time.Second)
		relay("delaytimer.victim.orders.x", "evil", "Delay-For", "1s")
		relay("delaytimer.new.orders.x", "evil", "Delay-For", "1s")
		relay("delaytimer.new.orders.y", "", "Delay-Cancel", "1")
		relay("delaysys.armed", "armed 100 1")
		marker := message.Request{ID: "DELAY_TIMERS-1-1", Due: time.Unix(1, 0), Accepted: time.Unix(1, 0), Target: "orders.x"}
		relay("delaysys.hop.1s.timer", "", "Delay-Timer", "4 0 mine", "Delay-State", marker.MarkerHeader()["Delay-State"][0])
		// The server puts an acknowledgement on the subject of another tenant's timer.
		natstest.NoError(t, c.NC.PublishMsg(&nats.Msg{Subject: "evil.x", Reply: "delaytimer.other.orders.x"}))
		time.Sleep(time.Until(start.Add(11 * time.Minute)))
		harness.CheckBodies(t, in.Arrivals(), "mine")
		dead := c.DeadLetters()
		// Bad internals: victim, new x, new y and the marker. The bad timer is the acknowledgement.
		if got, noise := len(dead["bad_internal"]), len(dead["bad_timer"]); got != 4 || noise != 1 || len(dead) != 2 {
			t.Errorf("dead letters %d bad_internal, %d bad_timer, codes %d; want 4, 1 and 2", got, noise, len(dead))
		}
	})
}

// TestForgedTimers: the broker believes no message on its own subjects from a client that may publish there.
func TestForgedTimers(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client) {
		in := c.Subscribe("orders.>")
		start := time.Now()
		g := c.Publish("delaytimer.mine.orders.x", "mine", "Delay-For", "10m").Sequence
		id := message.ID{Stream: "DELAY_TIMERS", Sequence: g, At: start}.String()
		r := message.Request{ID: id, Due: start, Accepted: start, Target: "orders.x", Subject: "x"}
		marker := []string{"Delay-State", r.MarkerHeader()["Delay-State"][0], "Delay-Timer", "4 0 mine"}
		fired := []string{"Delay-State", r.HopHeader()["Delay-State"][0], "Delay-Fired", fmt.Sprint(g, " me")}
		c.Publish("delaysys.hop.1s.timer", "", marker...)
		c.Publish("delaytimer.yours.orders.x", "fired", fired...)
		k := c.Keys("delay")
		c.PublishSealed(message.NewKeys([]string{"another secret of somebody"}), "delaytimer.theirs.orders.x", "fired",
			fired...)
		time.Sleep(time.Minute)
		harness.CheckBodies(t, in.Arrivals(), "")
		// This marker has a valid seal, which a tenant cannot make. Even so, the timer fires at the time in its set, and not
		// in the marker.
		c.PublishSealed(k, "delaysys.hop.1s.timer", "", marker...)
		time.Sleep(10 * time.Second)
		if g = c.PublishIf(g, "delaytimer.mine.orders.x", "moved", "Delay-For", "20m"); g == 0 {
			t.Error("the timer fired at the time of its marker")
		}
		start = time.Now()
		harness.CheckExactly(t, in, start.Add(20*time.Minute), 0)
		time.Sleep(time.Minute)
		c.CheckNoTimersBut("DELAY_DEAD")
		harness.CheckCount(t, c.DeadLetters()["bad_internal"], 3)
	})
}

// TestLargeTimer: a set whose firing would be too large becomes a dead letter, which names the 4096 bytes that must
// stay free.
func TestLargeTimer(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client) {
		in := c.Subscribe("orders.>")
		fits := strings.Repeat("x", 1<<20-8<<10-100)
		c.Publish("delaytimer.fits.orders.x", fits, "Delay-For", "1m")
		c.Publish("delaytimer.large.orders.x", strings.Repeat("x", 1<<20-4<<10-100), "Delay-For", "10m")
		time.Sleep(time.Second)
		letters := c.DeadLetters()["too_large"]
		if len(letters) != 1 || !strings.Contains(letters[0].Header.Get(message.HeaderError), "4096") {
			t.Errorf("after a second, there are %d letters: %v", len(letters), letters)
		}
		time.Sleep(20 * time.Minute)
		if got := in.Arrivals(); len(got) != 1 || got[0].Body != fits {
			t.Errorf("%d arrived, want only the timer that fits", len(got))
		}
		c.CheckNoTimersBut("DELAY_DEAD")
	})
}
