package harness

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
)

// Arrival is a message in a target stream.
type Arrival struct {
	At      time.Time // when the target's server stored it
	Due     time.Time
	ID      string
	Body    string
	Subject string
	Header  nats.Header
}

// Arrivals returns all messages of a stream.
func (c *Client) Arrivals(stream string) []Arrival {
	c.T.Helper()
	s := c.Stream(stream)
	var all []Arrival
	state := s.CachedInfo().State
	for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
		m, err := s.GetMsg(context.Background(), seq)
		if err != nil {
			continue // deleted
		}
		due, _ := time.Parse(time.RFC3339Nano, m.Header.Get(message.HeaderDue))
		all = append(all, Arrival{At: m.Time, Due: due, ID: m.Header.Get(message.HeaderID), Body: string(m.Data),
			Subject: m.Subject, Header: m.Header})
	}
	return all
}

// Dead returns the dead letters by code.
func (c *Client) Dead() map[string][]Arrival {
	c.T.Helper()
	byCode := make(map[string][]Arrival)
	for _, a := range c.Arrivals("DELAY_DEAD") {
		code := a.Header.Get(message.HeaderErrorCode)
		byCode[code] = append(byCode[code], a)
	}
	return byCode
}

// CheckNoDead fails the test for every dead letter.
func (c *Client) CheckNoDead() {
	c.T.Helper()
	for code, letters := range c.Dead() {
		c.T.Errorf("%d dead letters %s, the first: %s", len(letters), code, letters[0].Header.Get(message.HeaderError))
	}
}

// CheckEmpty fails the test for every stream of the broker that still holds messages.
func (c *Client) CheckEmpty() { c.CheckEmptyBut("") }

// CheckEmptyBut is like CheckEmpty, but ignores one stream.
func (c *Client) CheckEmptyBut(stream string) {
	c.T.Helper()
	list := c.JS.ListStreams(context.Background())
	for info := range list.Info() {
		kind := info.Config.Metadata["delaybroker.kind"]
		if n := c.Waiting(info); kind != "" && kind != "owners" && n > 0 && info.Config.Name != stream {
			c.T.Errorf("%s still holds %d messages", info.Config.Name, n)
		}
	}
}

// Waiting returns the number of messages that wait in a stream. In the stream of paused messages, it counts only the
// messages that a broker stored.
func (c *Client) Waiting(info *jetstream.StreamInfo) (n uint64) {
	c.T.Helper()
	if info.Config.Metadata["delaybroker.kind"] != "paused" {
		return info.State.Msgs
	}
	for _, a := range c.Arrivals(info.Config.Name) {
		if a.Header.Get(message.HeaderSeal) != "" && !strings.HasSuffix(a.Subject, "sys.pauses") { // the list of pauses
			n++
		}
	}
	return n
}

// Bodies returns the sorted bodies of messages, separated by spaces. A body that came more than once has its count.
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

// CheckBodies expects the bodies of all arrivals, in the notation of Bodies.
func CheckBodies(t *testing.T, in *Inbox, want string) {
	t.Helper()
	if got := Bodies(in.All()); got != want {
		t.Errorf("%q arrived, want %q", got, want)
	}
}

// CheckInOrder expects a number of arrivals, whose bodies are the numbers from zero, in order.
func CheckInOrder(t *testing.T, got []Arrival, count int) {
	t.Helper()
	if len(got) != count {
		t.Fatalf("%d arrived, want %d", len(got), count)
	}
	for i, m := range got {
		if want := fmt.Sprintf("%06d", i); m.Body != want {
			t.Fatalf("number %d is %s", i, m.Body)
		}
	}
}

// CheckArrive waits until the time given, and expects exactly these bodies in the stream.
func (c *Client) CheckArrive(stream string, at time.Time, want ...string) {
	c.T.Helper()
	time.Sleep(time.Until(at))
	synctest.Wait()
	slices.Sort(want)
	if got := Bodies(c.Arrivals(stream)); got != strings.Join(want, " ") {
		c.T.Errorf("at %s: arrived %q, want %q", at, got, want)
	}
}
