package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
)

// CheckRounds expects one message for each round of a series, in order, with the headers of the round. Round i+1 must
// arrive want[i] after since.
func (in *Inbox) CheckRounds(t *testing.T, series uint64, since time.Time, want ...time.Duration) {
	t.Helper()
	synctest.Wait()
	got := in.Arrivals()
	if len(got) != len(want) {
		for _, a := range got {
			t.Logf("after %s round %s, due %s: %s", a.At.Sub(since), a.Header.Get("Delay-Round"), a.Due.Sub(since), a.ID)
		}
		t.Fatalf("%d rounds have arrived, want %d", len(got), len(want))
	}
	ids := make(map[string]bool)
	for i, a := range got {
		if a.At.Sub(since) != want[i] || a.Header.Get("Delay-Round") != strconv.Itoa(i+1) ||
			a.Header.Get("Delay-Series") != fmt.Sprint(series) {
			t.Errorf("round %[2]s of series %[3]s, due after %[4]s, arrived after %[1]s; want round %[5]d after %[6]s",
				a.At.Sub(since), a.Header.Get("Delay-Round"), a.Header.Get("Delay-Series"), a.Due.Sub(since), i+1, want[i])
		}
		if ids[a.ID] {
			t.Errorf("round %d has the id of an earlier round: %s", i+1, a.ID)
		}
		ids[a.ID] = true
	}
}

// RoundTimes returns n durations: first, first+every, first+2*every, and so on.
func RoundTimes(first, every time.Duration, n int) (all []time.Duration) {
	for i := range n {
		all = append(all, first+time.Duration(i)*every)
	}
	return all
}

// Fire stores the firing of the timer whose set is the last entry of a subject, as an instance does before it delivers.
func (c *Client) Fire(subject, instance string) {
	c.T.Helper()
	c.ReplaceEntry(subject, func(r entry.Pending, generation uint64) message.Header {
		return r.FiredHeader(generation, instance)
	})
}

// ReplaceEntry stores an entry after the last entry of a timer's subject, with the seal of a broker. The new entry has
// the body of the last entry, and the header that the function returns.
func (c *Client) ReplaceEntry(subject string, header func(r entry.Pending, generation uint64) message.Header) {
	c.T.Helper()
	policy, m := c.Policy("delay"), c.LastEntry(subject)
	for _, name := range []string{"Nats-Stream", "Nats-Sequence", "Nats-Time-Stamp", "Nats-Subject"} { // of the answer
		delete(m.Header, name)
	}
	e := entry.Parse(policy, message.Incoming{
		Stream: "DELAY_TIMERS", Sequence: m.Sequence, At: m.Time, Subject: subject, Header: message.Header(m.Header),
		Data: m.Data,
	})
	h := header(e.Pending, m.Sequence)
	policy.Keys.SealMessage(subject, h, m.Data)
	c.Store(&nats.Msg{Subject: subject, Header: nats.Header(h), Data: m.Data})
}

// WrittenHeaders returns the headers of an entry without the headers of the server.
func WrittenHeaders(h nats.Header) nats.Header {
	written := make(nats.Header, len(h))
	for name, values := range h {
		if !strings.HasPrefix(name, "Nats-") {
			written[name] = slices.Clone(values)
		}
	}
	return written
}

// TimerConfig returns the configuration of a broker with named timers. The broker stores no outcomes of timers.
func TimerConfig(t testing.TB) broker.Config {
	return broker.Config{Ladder: Ladder(t, "1s 5s 10s 1m 10m 1h"), Timers: true, TimerHistory: -1}
}

// PublishIf publishes on a timer's subject if the last entry has this generation. It returns the sequence of the new
// entry, or zero if the last entry has another sequence.
func (c *Client) PublishIf(generation uint64, subject, body string, headers ...string) uint64 {
	c.T.Helper()
	m := NewMsg(subject, body, headers...)
	m.Header.Set("Nats-Expected-Last-Subject-Sequence", strconv.FormatUint(generation, 10))
	return c.StoreIf(m)
}

// StoreIf stores a message, which may expect a last sequence of its subject. It returns the sequence of the message, or
// zero if the subject has another last sequence.
func (c *Client) StoreIf(m *nats.Msg) uint64 {
	c.T.Helper()
	ack, err := c.JS.PublishMsg(context.Background(), m, jetstream.WithRetryAttempts(0))
	if api := (*jetstream.APIError)(nil); errors.As(err, &api) && api.ErrorCode == 10071 {
		return 0
	}
	if err != nil {
		c.T.Errorf("publish on %s: %v", m.Subject, err)
		return 0
	}
	return ack.Sequence
}

// LastEntry returns the last entry of a timer's subject, or nil if there is none.
func (c *Client) LastEntry(subject string) *jetstream.RawStreamMsg {
	c.T.Helper()
	m, err := c.Stream("DELAY_TIMERS").GetLastMsgForSubject(context.Background(), subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	if err != nil {
		c.T.Fatal(err)
	}
	return m
}

// CheckNoTimers expects only the cursor in the stream of timers, and no message in the other streams of the broker.
func (c *Client) CheckNoTimers() {
	c.T.Helper()
	c.CheckNoTimersBut("")
}

// CheckNoTimersBut is like CheckNoTimers, but ignores some streams.
func (c *Client) CheckNoTimersBut(streams ...string) {
	c.T.Helper()
	for _, a := range c.Arrivals("DELAY_TIMERS") {
		if a.Subject != "delaysys.armed" {
			c.T.Errorf("%s still has an entry: %q %v", a.Subject, a.Body, a.Header)
		}
	}
	c.CheckEmptyBut(append(streams, "DELAY_TIMERS")...)
}

// ScheduleConfig returns the configuration of a broker that serves schedules with targets below orders and mail.
func ScheduleConfig(t testing.TB) broker.Config {
	cfg := TimerConfig(t)
	cfg.Schedules = message.ParseScheduleRules("schedules.orders.>=orders.>,schedules.mail.>=mail.>", nil)
	return cfg
}

// Schedule requests a schedule, and returns the sequence or the error code of the answer. Both are zero without an
// answer.
func (c *Client) Schedule(
	subject, target, when, body string, headers ...string,
) (seq uint64, code jetstream.ErrorCode) {
	c.T.Helper()
	m := NewMsg(subject, body, append([]string{"Nats-Schedule", when, "Nats-Schedule-Target", target}, headers...)...)
	return c.TrySchedule(m)
}

// TrySchedule is like Schedule, but takes the message of the request.
func (c *Client) TrySchedule(m *nats.Msg) (seq uint64, code jetstream.ErrorCode) {
	c.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	ack, err := c.JS.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
	switch api := (*jetstream.APIError)(nil); {
	case errors.As(err, &api):
		return 0, api.ErrorCode
	case errors.Is(err, context.DeadlineExceeded):
		return 0, 0
	case err != nil:
		c.T.Fatalf("ask on %s: %v", m.Subject, err)
	}
	if ack.Stream != "DELAY_TIMERS" {
		c.T.Errorf("acknowledged by %s", ack.Stream)
	}
	return ack.Sequence, 0
}

// AtExpression returns the value of Nats-Schedule for a schedule that is due once, at a time.
func AtExpression(due time.Time) string { return "@at " + due.Format(time.RFC3339Nano) }
