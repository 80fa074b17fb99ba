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

// Rounds checks that the rounds of a series have arrived at these times after a moment: each once, in order, as what it
// is.
func (in *Inbox) Rounds(t *testing.T, series uint64, since time.Time, want ...time.Duration) {
	t.Helper()
	synctest.Wait()
	got := in.All()
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
			t.Errorf("after %s came round %s of series %s, due after %s; want round %d after %s", a.At.Sub(since),
				a.Header.Get("Delay-Round"), a.Header.Get("Delay-Series"), a.Due.Sub(since), i+1, want[i])
		}
		if ids[a.ID] {
			t.Errorf("round %d has the id of another: %s", i+1, a.ID)
		}
		ids[a.ID] = true
	}
}

func Times(first, every time.Duration, n int) (all []time.Duration) {
	for i := range n {
		all = append(all, first+time.Duration(i)*every)
	}
	return all
}

// Fire stores that an instance has fired the timer that is the last entry of a subject, as that instance would before
// it delivers.
func (c *Client) Fire(subject, instance string) {
	c.T.Helper()
	c.Decide(subject, func(r entry.Pending, generation uint64) message.Header {
		return r.FiredHeader(generation, instance)
	})
}

// Decide stores, in place of the last entry of a timer's subject, what an instance makes of it.
func (c *Client) Decide(subject string, header func(r entry.Pending, generation uint64) message.Header) {
	c.T.Helper()
	policy, m := c.Policy("delay"), c.Last(subject)
	for _, name := range []string{"Nats-Stream", "Nats-Sequence", "Nats-Time-Stamp", "Nats-Subject"} { // of the answer
		delete(m.Header, name)
	}
	e := entry.Parse(policy, message.Incoming{
		Stream: "DELAY_TIMERS", Sequence: m.Sequence, At: m.Time, Subject: subject, Header: message.Header(m.Header),
		Data: m.Data,
	})
	h := header(e.Pending, m.Sequence)
	policy.Keys.SealMessage(subject, h, m.Data, time.Now())
	c.Store(&nats.Msg{Subject: subject, Header: nats.Header(h), Data: m.Data})
}

// AsWritten are the headers of an entry without those that the server acts on, or adds to an answer.
func AsWritten(h nats.Header) nats.Header {
	written := make(nats.Header, len(h))
	for name, values := range h {
		if !strings.HasPrefix(name, "Nats-") {
			written[name] = slices.Clone(values)
		}
	}
	return written
}

// TimersOn is the configuration of a broker with named timers, of which nothing is told once they are over.
func TimersOn(t testing.TB) broker.Config {
	return broker.Config{Ladder: Ladder(t, "1s 5s 10s 1m 10m 1h"), Timers: true, TimerHistory: -1}
}

// Expect publishes on a timer's subject, expecting a generation. It returns the new entry's sequence, or zero if that
// generation is no longer the last entry.
func (c *Client) Expect(generation uint64, subject, body string, headers ...string) uint64 {
	c.T.Helper()
	m := NewMsg(subject, body, headers...)
	m.Header.Set("Nats-Expected-Last-Subject-Sequence", strconv.FormatUint(generation, 10))
	return c.Ask(m)
}

// Ask publishes a message that may expect something. It returns its sequence, or zero if what it expects is not so.
func (c *Client) Ask(m *nats.Msg) uint64 {
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

// Last is the last entry of a timer's subject, nil if there is none.
func (c *Client) Last(subject string) *jetstream.RawStreamMsg {
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

// CheckNoTimers expects the timers' stream to hold its cursor and nothing else.
func (c *Client) CheckNoTimers() {
	c.T.Helper()
	c.CheckNoTimersBut("")
}

func (c *Client) CheckNoTimersBut(stream string) {
	c.T.Helper()
	for _, a := range c.Arrivals("DELAY_TIMERS") {
		if a.Subject != "delaysys.armed" {
			c.T.Errorf("on %s there still is %q %v", a.Subject, a.Body, a.Header)
		}
	}
	for info := range c.JS.ListStreams(context.Background()).Info() {
		name := info.Config.Name
		if name == PausedStream {
			info.State.Msgs -= min(info.State.Msgs, 1) // the list of pauses
		}
		if strings.HasPrefix(name, "DELAY_") && name != "DELAY_TIMERS" && name != "DELAY_OWNERS" && name != stream &&
			info.State.Msgs > 0 {
			c.T.Errorf("%s still holds %d messages", name, info.State.Msgs)
		}
	}
}
