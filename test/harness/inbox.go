package harness

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/test/natstest"
)

// Inbox holds the messages that a core subscriber received, with their times.
type Inbox struct {
	Mu   sync.Mutex
	Msgs []Arrival
}

// Subscribe collects the messages that core NATS delivers on a subject.
func (c *Client) Subscribe(subject string) *Inbox {
	c.T.Helper()
	in := &Inbox{}
	if _, err := c.NC.Subscribe(subject, func(m *nats.Msg) {
		in.Mu.Lock()
		defer in.Mu.Unlock()
		in.Msgs = append(in.Msgs, newArrival(time.Now(), m.Subject, m.Header, m.Data))
	}); err != nil {
		c.T.Fatalf("subscribe %s: %v", subject, err)
	}
	natstest.Flush(c.T, c.NC)
	return in
}

// All returns the messages received so far.
func (in *Inbox) All() []Arrival {
	in.Mu.Lock()
	defer in.Mu.Unlock()
	return slices.Clone(in.Msgs)
}

// Await waits until this many messages have arrived, for at most natstest.Timeout.
func (in *Inbox) Await(count int) {
	for end := time.Now().Add(natstest.Timeout); len(in.All()) < count && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
	}
}

// CheckExactly expects count messages one nanosecond before due, and one more when it is due.
func CheckExactly(t *testing.T, in *Inbox, due time.Time, count int) {
	t.Helper()
	time.Sleep(time.Until(due) - 1)
	synctest.Wait()
	if got := len(in.All()); got != count {
		t.Fatalf("1ns before due: %d messages, want %d", got, count)
	}
	time.Sleep(time.Nanosecond)
	synctest.Wait()
	got := in.All()
	if len(got) != count+1 {
		t.Fatalf("when due: %d messages, want %d", len(got), count+1)
	}
	if last := got[count]; !last.At.Equal(due) || !last.Due.Equal(due) {
		t.Errorf("came at %s saying it was due %s, want %s", last.At, last.Due, due)
	}
}
