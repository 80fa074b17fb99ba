package test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/config"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// lineLog keeps the lines of a log that hold a text, each with the time since its beginning.
type lineLog struct {
	part  string
	start time.Time

	mu    sync.Mutex // guards lines
	lines []string
}

func newLineLog(part string) *lineLog { return &lineLog{part: part, start: time.Now()} }

func (l *lineLog) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.TimeKey:
			a.Value = slog.StringValue(time.Since(l.start).String())
		case slog.LevelKey:
			return slog.Attr{}
		}
		return a
	}}))
}

func (l *lineLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes.Contains(line, []byte(l.part)) {
		l.lines = append(l.lines, strings.TrimSpace(string(line)))
	}
	return len(line), nil
}

// all are the lines so far.
func (l *lineLog) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

func (l *lineLog) check(t *testing.T, want ...string) {
	t.Helper()
	if got, want := strings.Join(l.all(), "\n"), strings.Join(want, "\n"); got != want {
		t.Errorf("the log says\n%s\nwant\n%s", got, want)
	}
}

// TestRefusalsAreLogged: the first refusal of a target is said at once, with the reason, the others once a minute with
// how many there were, whatever lanes they come from, and one target takes nothing from what is said of another.
func TestRefusalsAreLogged(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		log := newLineLog("target refuses")
		startBroker(t, s, broker.Config{Log: log.logger()})
		c := newClient(t, s)
		c.service("shop.mail", func(int) *nats.Msg { return fails("no stock") })
		c.service("shop.sms", func(n int) *nats.Msg { return fails(fmt.Sprint("try ", n)) })
		log.start = time.Now()
		for range 3 {
			c.publish("delay.5s.shop.mail", "x", message.HeaderDeliver, "request")
		}
		c.publish("delay.7s.shop.sms", "x", message.HeaderDeliver, "request")
		time.Sleep(2 * time.Minute)
		log.check(t, // attempts at 5s, 6s, 11s, 41s, 71s, 101s; and two seconds later
			`time=5s msg="target refuses" target=shop.mail reason="the service says 500 no stock" attempt=1 of=20`,
			`time=7s msg="target refuses" target=shop.sms reason="the service says 500 try 1" attempt=1 of=20`,
			`time=1m11s msg="target refuses" target=shop.mail reason="the service says 500 no stock" attempt=5 of=20 more=11`,
			`time=1m13s msg="target refuses" target=shop.sms reason="the service says 500 try 5" attempt=5 of=20 more=3`,
		)
	})
}

// TestRefusalsOfManyTargets: subjects with ids in them fill no log, and what is not said is counted.
func TestRefusalsOfManyTargets(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		log := newLineLog("target refuses")
		startBroker(t, s, broker.Config{RetryLadder: ladder(t, "1m"), Log: log.logger()})
		c := newClient(t, s)
		const targets = 300
		for n := range targets { // nobody listens
			c.publish(fmt.Sprint("delay.5s.orders.", n), "x", message.HeaderDeliver, "core")
		}
		time.Sleep(30 * time.Second)
		const most = 65 // in a minute
		if got := len(log.all()); got != most {
			t.Fatalf("%d lines, want %d", got, most)
		}
		time.Sleep(time.Minute)
		more := log.all()[most:]
		if got := len(more); got > most {
			t.Errorf("%d lines in another minute, want %d at most", got, most)
		}
		if want := fmt.Sprint("others=", targets-most); !strings.Contains(strings.Join(more, "\n"), want) {
			t.Errorf("got no %q in\n%s", want, strings.Join(more, "\n"))
		}
	})
}

// TestDeadLettersAreLogged: the line names the target.
func TestDeadLettersAreLogged(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		log := newLineLog("dead letter")
		startBroker(t, s, broker.Config{Attempts: 1, Log: log.logger()})
		c := newClient(t, s)
		log.start = time.Now()
		c.publish("delay.5s.shop.mail", "x", message.HeaderDeliver, "core")
		time.Sleep(time.Minute)
		l := c.dead()["undelivered"][0]
		log.check(t, `time=5s msg="dead letter" stream=DELAY_5s code=undelivered target=shop.mail id=`+l.ID+
			` reason="the target refused all of 1 attempts, lastly: nobody listens on the subject (503)"`)
	})
}

// TestLastReasonTravels: between lanes a message says why it was refused last; at its target it does not.
func TestLastReasonTravels(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, broker.Config{Attempts: 5})
		c := newClient(t, s)
		in := c.service("svc", func(n int) *nats.Msg {
			if n > 2 {
				return &nats.Msg{}
			}
			return fails(fmt.Sprint("try ", n))
		})
		c.publish("delay.5s.svc", "x", message.HeaderDeliver, "request")
		for n, stream := range []string{"DELAY_RETRY_1s", "DELAY_RETRY_5s"} {
			time.Sleep(5500*time.Millisecond - time.Duration(n)*4*time.Second)
			all := c.arrivals(stream)
			if len(all) != 1 {
				t.Fatalf("%s holds %d messages, want one", stream, len(all))
			}
			for name, want := range map[string]string{
				message.HeaderLastError: fmt.Sprint("the service says 500 try ", n+1), message.HeaderAttempts: fmt.Sprint(n + 1),
				message.HeaderAllowed: "5", message.HeaderDeferred: "",
			} {
				if got := all[0].Header.Get(name); got != want {
					t.Errorf("in %s, %s is %q, want %q", stream, name, got, want)
				}
			}
		}
		time.Sleep(time.Minute)
		if got := len(in.all()); got != 3 {
			t.Errorf("%d deliveries, want 3", got)
		}
		for _, a := range in.all() {
			for _, name := range []string{message.HeaderLastError, message.HeaderDeferred, message.HeaderAllowed} {
				if a.Header.Get(name) != "" {
					t.Errorf("at its target it has %s", name)
				}
			}
		}
		c.checkNoDead()
		c.checkEmpty()
	})
}

// TestRetriesWithJitter: of messages that a target has refused together, each comes again at a time of its own. None
// comes before its wait is over, and none later than the jitter says. The part beyond the retry lane may be longer than
// any message is held in memory.
func TestRetriesWithJitter(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const count = 40
		startBroker(t, s, broker.Config{
			RetryLadder: ladder(t, "1m"), RetryJitter: config.RetryJitter{{Pattern: "svc", Value: 20}},
		})
		c := newClient(t, s)
		in := c.service("svc", func(n int) *nats.Msg {
			if n <= count {
				return fails("not yet")
			}
			return &nats.Msg{}
		})
		due := time.Now().Add(5 * time.Second)
		for i := range count {
			c.publish(fmt.Sprintf("delayat.%d.svc", due.UnixMilli()), strconv.Itoa(i), message.HeaderDeliver, "request")
		}
		time.Sleep(10 * time.Minute)
		all := in.all()
		if len(all) != 2*count {
			t.Fatalf("%d attempts, want two for each of %d", len(all), count)
		}
		times := make(map[time.Duration]int)
		for _, a := range all[count:] {
			after := a.At.Sub(due)
			if after < time.Minute || after >= 72*time.Second || after%time.Millisecond != 0 {
				t.Errorf("%s came again after %s, want a whole millisecond from 1m0s to 1m12s", a.Body, after)
			}
			times[after.Truncate(time.Second)]++
		}
		for after, n := range times {
			if n > count/3 {
				t.Errorf("%d of %d came again after %s", n, count, after)
			}
		}
		c.checkNoDead()
		c.checkEmpty()
	})
}
