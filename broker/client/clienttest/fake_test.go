package clienttest_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/client"
	"delaybroker/broker/client/clienttest"
)

func publish(t *testing.T, f *clienttest.Fake, target string, delay time.Duration) {
	t.Helper()
	if _, err := f.Client().In(t.Context(), target, delay, []byte(target)); err != nil {
		t.Error(err)
	}
}

func targets(msgs []*nats.Msg) string {
	var names []string
	for _, m := range msgs {
		names = append(names, m.Subject)
	}
	return strings.Join(names, " ")
}

// TestAdvanceDeliversInOrder: Advance delivers messages at their due times, exact to the nanosecond. It delivers
// messages with the same due time in the order of acceptance.
func TestAdvanceDeliversInOrder(t *testing.T) {
	t.Parallel()
	f := clienttest.New(t, client.Config{})
	for _, target := range []string{"c", "d"} {
		publish(t, f, target, time.Minute)
	}
	publish(t, f, "a", time.Second)
	publish(t, f, "e", time.Minute)
	publish(t, f, "b", 59*time.Second)
	for _, tt := range []struct {
		by   time.Duration
		want string
	}{
		{0, ""}, {time.Second - 1, ""}, {1, "a"}, {0, ""}, {59 * time.Second, "b c d e"}, {time.Hour, ""}, {-time.Hour, ""},
	} {
		start := f.Now()
		if got := targets(f.Advance(tt.by)); got != tt.want {
			t.Errorf("after %s: got %q, want %q", tt.by, got, tt.want)
		}
		if got, want := f.Now(), start.Add(max(0, tt.by)); !got.Equal(want) {
			t.Errorf("the clock is at %s, want %s", got, want)
		}
	}
}

// TestHandlersMayPublish: a handler runs with the clock at the due time. Advance also delivers the messages that a
// handler publishes, in the order of their due times.
func TestHandlersMayPublish(t *testing.T) {
	t.Parallel()
	f := clienttest.New(t, client.Config{})
	began := f.Now()
	var handled []time.Duration // the times of the calls
	f.Handle("alarm.*", func(m *nats.Msg) {
		handled = append(handled, f.Now().Sub(began))
		if a, ok := client.ParseArrival(m); !ok || !a.Due.Equal(f.Now()) {
			t.Errorf("got %+v, %t, want the due time %s", a, ok, f.Now())
		}
		if len(handled) < 4 {
			publish(t, f, "alarm.again", time.Minute<<len(handled))
		}
	})
	publish(t, f, "alarm.first", time.Minute)
	publish(t, f, "other", time.Minute)
	got := targets(f.Advance(time.Hour))
	want := []time.Duration{time.Minute, 3 * time.Minute, 7 * time.Minute, 15 * time.Minute}
	if !slices.Equal(handled, want) {
		t.Errorf("the handler was called after %v, want %v", handled, want)
	}
	if want := "alarm.first other alarm.again alarm.again alarm.again"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestRecords: Requests returns all accepted messages, and Pending returns the undelivered messages.
func TestRecords(t *testing.T) {
	t.Parallel()
	f := clienttest.New(t, client.Config{})
	publish(t, f, "b", time.Hour)
	publish(t, f, "a", time.Minute)
	requests := f.Requests()
	if len(requests) != 2 {
		t.Fatalf("got %+v, want two requests", requests)
	}
	if r := requests[0]; r.Target != "b" || r.Subject != "delay.1h.b" || r.Stream != "DELAY_1h" || r.Sequence != 1 ||
		string(r.Body) != "b" || !r.Due.Equal(f.Now().Add(time.Hour)) {
		t.Errorf("got %+v, want the request to b", r)
	}
	if next := f.Pending(); len(next) != 2 || next[0].Target != "a" || next[0].ID != requests[1].ID {
		t.Errorf("got %+v, want a before b", next)
	}
	f.Advance(time.Minute)
	if next := f.Pending(); len(next) != 1 || next[0].Target != "b" || len(f.Requests()) != 2 {
		t.Errorf("got %+v, want b", next)
	}
}

// TestFail: after Fail, a publish returns the client's error for the same error of a real server, and stores nothing.
func TestFail(t *testing.T) {
	t.Parallel()
	f := clienttest.New(t, client.Config{})
	f.Fail(nats.ErrTimeout)
	if _, err := f.Client().In(t.Context(), "a", time.Hour, nil); !errors.Is(err, client.ErrUnanswered) {
		t.Errorf("got %v, want ErrUnanswered", err)
	}
	f.Fail(nats.ErrNoResponders)
	if _, err := f.Client().In(t.Context(), "a", time.Hour, nil); !errors.Is(err, client.ErrNoBroker) {
		t.Errorf("got %v, want ErrNoBroker", err)
	}
	f.Fail(nil)
	publish(t, f, "a", 2*time.Hour)
	if n := len(f.Requests()); n != 1 {
		t.Errorf("%d requests, want one", n)
	}
}

// TestConcurrentUse: the client and the fake are safe for concurrent use.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	f := clienttest.New(t, client.Config{})
	var arriving, publishing sync.WaitGroup
	f.Handle(">", func(*nats.Msg) { arriving.Done() })
	arriving.Add(200)
	for range 4 {
		publishing.Go(func() {
			for range 50 {
				publish(t, f, "a", time.Second)
				f.Requests()
			}
		})
	}
	for range 20 {
		f.Advance(100 * time.Millisecond)
		f.Pending()
	}
	publishing.Wait()
	f.Advance(time.Second)
	arriving.Wait()
	if n := len(f.Pending()); n > 0 {
		t.Errorf("%d messages are pending, want none", n)
	}
}

// TestLookupOfReplacedTimer: the fake keeps only the last entry of a timer, also if a request has written it.
func TestLookupOfReplacedTimer(t *testing.T) {
	t.Parallel()
	f := clienttest.New(t, client.Config{})
	c := f.Client()
	lookup := func(r client.Receipt) error {
		_, err := c.Lookup(t.Context(), r)
		return err
	}
	set, err := c.In(t.Context(), "orders.x", time.Hour, nil, client.Key("k"))
	if err != nil || lookup(set) != nil {
		t.Fatalf("set: %v, lookup: %v", err, lookup(set))
	}
	if _, err := c.Postpone(t.Context(), "k", "orders.x", time.Hour, ""); err != nil {
		t.Fatal(err)
	}
	moved := set
	timer, err := c.Timer(t.Context(), "k", "orders.x")
	if moved.Sequence = timer.Generation; err != nil || lookup(moved) != nil || !errors.Is(lookup(set), client.ErrGone) {
		t.Errorf("moved: %v, lookup of the new generation: %v, of the old one: %v", err, lookup(moved), lookup(set))
	}
	err = c.Cancel(t.Context(), "k", "orders.x", moved.Sequence)
	if err != nil || !errors.Is(lookup(moved), client.ErrGone) {
		t.Errorf("cancel: %v, lookup: %v, want ErrGone", err, lookup(moved))
	}
}
