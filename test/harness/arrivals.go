package harness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// Arrival is a message in a stream, or one that a core subscriber received.
type Arrival struct {
	At      time.Time // the time when the stream stored the message, or when the subscriber received it
	Due     time.Time
	ID      string
	Body    string
	Subject string
	Header  nats.Header
}

func newArrival(at time.Time, subject string, h nats.Header, body []byte) Arrival {
	due, _ := time.Parse(time.RFC3339Nano, h.Get(message.HeaderDue)) // zero for a message without a due time
	return Arrival{At: at, Due: due, ID: h.Get(message.HeaderID), Body: string(body), Subject: subject, Header: h}
}

// Arrivals returns all messages of a stream.
func (c *Client) Arrivals(stream string) []Arrival {
	c.T.Helper()
	s := c.Stream(stream)
	var all []Arrival
	state := s.CachedInfo().State
	for seq := max(state.FirstSeq, 1); seq <= state.LastSeq; seq++ { // an empty stream may have zero for both
		m, err := s.GetMsg(context.Background(), seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // deleted
		}
		natstest.NoError(c.T, err)
		all = append(all, newArrival(m.Time, m.Subject, m.Header, m.Data))
	}
	return all
}

// DeadLetters returns the dead letters by code.
func (c *Client) DeadLetters() map[string][]Arrival {
	c.T.Helper()
	return c.deadLetters("DELAY_DEAD")
}

func (c *Client) deadLetters(stream string) map[string][]Arrival {
	c.T.Helper()
	byCode := make(map[string][]Arrival)
	for _, a := range c.Arrivals(stream) {
		code := a.Header.Get(message.HeaderErrorCode)
		byCode[code] = append(byCode[code], a)
	}
	return byCode
}

// CheckNoDead fails the test if there are dead letters.
func (c *Client) CheckNoDead() {
	c.T.Helper()
	c.checkNoDead("DELAY_DEAD")
}

func (c *Client) checkNoDead(stream string) {
	c.T.Helper()
	for code, letters := range c.deadLetters(stream) {
		c.T.Errorf("%d dead letters %s, the first: %s", len(letters), code, letters[0].Header.Get(message.HeaderError))
	}
}

// CheckEmpty fails the test if there are dead letters, and for every other stream of the broker in which messages wait,
// except that of the owners. See Waiting.
func (c *Client) CheckEmpty() {
	c.T.Helper()
	c.CheckEmptyBut()
}

// CheckEmptyBut is like CheckEmpty, but ignores some streams.
func (c *Client) CheckEmptyBut(streams ...string) {
	c.T.Helper()
	list := c.JS.ListStreams(context.Background())
	for info := range list.Info() {
		name, kind := info.Config.Name, info.Config.Metadata["delaybroker.kind"]
		if kind == "" || kind == "owners" || slices.Contains(streams, name) {
			continue
		}
		switch n := c.Waiting(info); {
		case n == 0:
		case kind == "dead":
			c.checkNoDead(name)
		default:
			c.T.Errorf("%s still holds %d messages", name, n)
		}
	}
	natstest.NoError(c.T, list.Err())
}

// Waiting returns the number of messages that wait in a stream. In the stream of paused messages, it counts neither the
// list of pauses nor messages without a seal.
func (c *Client) Waiting(info *jetstream.StreamInfo) (n uint64) {
	c.T.Helper()
	if info.Config.Metadata["delaybroker.kind"] != "paused" {
		return info.State.Msgs
	}
	for _, a := range c.Arrivals(info.Config.Name) {
		if a.Header.Get(message.HeaderSeal) != "" && !strings.HasSuffix(a.Subject, "sys.pauses") {
			n++
		}
	}
	return n
}

// Bodies returns the sorted bodies of messages, separated by spaces. A body that arrived more than once is followed by
// its count.
func Bodies(all []Arrival) string {
	count := make(map[string]int)
	for _, a := range all {
		count[a.Body]++
	}
	var words []string
	for _, body := range slices.Sorted(maps.Keys(count)) {
		if n := count[body]; n > 1 {
			body = fmt.Sprintf("%s×%d", body, n)
		}
		words = append(words, body)
	}
	return strings.Join(words, " ")
}

func CheckBodies(t testing.TB, all []Arrival, want string) {
	t.Helper()
	if got := Bodies(all); got != want {
		t.Errorf("arrived %q, want %q", got, want)
	}
}

// CheckCount fails the test unless the slice has this length.
func CheckCount[T any](t testing.TB, all []T, want int) {
	t.Helper()
	if len(all) != want {
		t.Fatalf("got %d elements, want %d", len(all), want)
	}
}

// CheckOnTime expects this number of messages, each at exactly its due time.
func CheckOnTime(t testing.TB, all []Arrival, count int) {
	t.Helper()
	CheckCount(t, all, count)
	for _, a := range all {
		if !a.At.Equal(a.Due) {
			t.Fatalf("%s on %s arrived %s after it was due", a.Body, a.Subject, a.At.Sub(a.Due))
		}
	}
}

// CheckSpread expects at least minInterval between message i and message i+places, for each i.
func CheckSpread(t testing.TB, all []Arrival, places int, minInterval time.Duration) {
	t.Helper()
	for i := places; i < len(all); i++ {
		if took := all[i].At.Sub(all[i-places].At); took < minInterval {
			t.Fatalf("the %d messages up to number %d arrived within %s, want at least %s", places+1, i, took, minInterval)
		}
	}
}

// CheckInOrder expects this number of messages in order. The bodies are the numbers from zero, with six digits.
func CheckInOrder(t *testing.T, got []Arrival, count int) {
	t.Helper()
	CheckCount(t, got, count)
	for i, m := range got {
		if want := fmt.Sprintf("%06d", i); m.Body != want {
			t.Fatalf("message %d has the body %s, want %s", i, m.Body, want)
		}
	}
}

// CheckArrivals waits until a time, and expects exactly these bodies in the stream.
func (c *Client) CheckArrivals(stream string, at time.Time, want ...string) {
	c.T.Helper()
	time.Sleep(time.Until(at))
	synctest.Wait()
	slices.Sort(want)
	CheckBodies(c.T, c.Arrivals(stream), strings.Join(want, " "))
}

// Inbox holds the messages that a core subscriber received, with their times.
type Inbox struct {
	Mu   sync.Mutex
	Msgs []Arrival
}

// Subscribe collects the messages that core NATS delivers on a subject.
func (c *Client) Subscribe(subject string) *Inbox {
	c.T.Helper()
	in := &Inbox{}
	natstest.Handle(c.T, c.NC, subject, func(m *nats.Msg) {
		in.Mu.Lock()
		defer in.Mu.Unlock()
		in.Msgs = append(in.Msgs, newArrival(time.Now(), m.Subject, m.Header, m.Data))
	})
	natstest.Flush(c.T, c.NC)
	return in
}

func (in *Inbox) Arrivals() []Arrival {
	in.Mu.Lock()
	defer in.Mu.Unlock()
	return slices.Clone(in.Msgs)
}

// Await waits until this number of messages has arrived, for at most natstest.Timeout.
func (in *Inbox) Await(count int) {
	for end := time.Now().Add(natstest.Timeout); len(in.Arrivals()) < count && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
	}
}

// CheckExactly expects count messages one nanosecond before due, and one more message at due.
func CheckExactly(t *testing.T, in *Inbox, due time.Time, count int) {
	t.Helper()
	time.Sleep(time.Until(due) - 1)
	synctest.Wait()
	if got := len(in.Arrivals()); got != count {
		t.Fatalf("1ns before due: %d messages, want %d", got, count)
	}
	time.Sleep(time.Nanosecond)
	synctest.Wait()
	got := in.Arrivals()
	if len(got) != count+1 {
		t.Fatalf("when due: %d messages, want %d", len(got), count+1)
	}
	if last := got[count]; !last.At.Equal(due) || !last.Due.Equal(due) {
		t.Errorf("arrived at %s with due time %s, want %s for both", last.At, last.Due, due)
	}
}

// A Tally counts the deliveries of each message on a subject, by Delay-Id.
type Tally struct {
	t    testing.TB
	mu   sync.Mutex // guards seen
	seen map[string]int
}

func (c *Client) Tally(subject string) *Tally {
	c.T.Helper()
	l := &Tally{t: c.T, seen: make(map[string]int)}
	sub, err := c.NC.Subscribe(subject, func(m *nats.Msg) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.seen[m.Header.Get(message.HeaderID)]++
	})
	natstest.NoError(c.T, err)
	natstest.NoError(c.T, sub.SetPendingLimits(-1, -1))
	return l
}

// Count returns the number of messages, and the number of all their deliveries.
func (l *Tally) Count() (messages, deliveries int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.seen {
		deliveries += n
	}
	return len(l.seen), deliveries
}

// Await waits until this number of messages has arrived. It fails the test after the timeout.
func (l *Tally) Await(count int, timeout time.Duration) {
	l.t.Helper()
	for end := time.Now().Add(timeout); ; time.Sleep(100 * time.Millisecond) {
		if n, _ := l.Count(); n >= count {
			return
		} else if time.Now().After(end) {
			l.t.Fatalf("%d of %d messages arrived within %s", n, count, timeout)
		}
	}
}
