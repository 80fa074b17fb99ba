package client_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/client"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/change"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestFakeChangesLikeTheBroker runs one scenario with Cancelable, CancelPending, MovePending and Postpone on a real
// broker and on the fake. All outcomes, states and arrivals are equal.
func TestFakeChangesLikeTheBroker(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	checkFake(t, timersOn(t), changeScenario, (*diary).recordFiring, 25, 5)
}

func changeScenario(t *testing.T, c *client.Client, d *diary, pass func(time.Duration)) {
	t.Helper()
	k := newTimerWriter(t, c, d, pass)
	ctx := context.Background()
	cancel := func(key string) {
		done, err := c.CancelPending(ctx, key, "shop."+key)
		k.note(fmt.Sprint("cancel ", done), key, client.Receipt{}, err)
	}
	move := func(key string, delay time.Duration) {
		done, err := c.MovePending(ctx, key, "shop."+key, delay)
		k.note(fmt.Sprint("move ", done), key, client.Receipt{}, err)
	}
	postpone := func(key string, by time.Duration, token string) {
		due, err := c.Postpone(ctx, key, "shop."+key, by, token)
		k.note(fmt.Sprint("postpone ", due), key, client.Receipt{}, err)
	}
	for _, key := range []string{"a", "b", "c", "e"} {
		k.publishIn(key, 10*time.Minute, client.Header("X-Mine", key), client.Expires(time.Hour))
	}
	series := []client.Option{client.Key("s"), client.Every(time.Hour), client.Rounds(3)}
	if _, err := c.Schedule(ctx, "shop.s", []byte("s"), series...); err != nil {
		t.Error(err)
	}
	for _, key := range []string{"a", "a", "never", "a.b", "s*"} {
		cancel(key)
	}
	move("b", 20*time.Minute)
	move("s", time.Minute)
	move("b", 500*24*time.Hour)
	move("never", time.Minute)
	postpone("c", 5*time.Minute, "")
	postpone("c", -10*time.Minute, "x")
	postpone("c", -10*time.Minute, "x") // a repeated request, which changes nothing
	postpone("s", time.Minute, "y")
	postpone("s", time.Minute, "y")
	postpone("never", time.Minute, "")
	postpone("c", 500*24*time.Hour, "")
	postpone("a.b", time.Minute, "")
	pass(5*time.Minute + 30*time.Second)
	cancel("c")
	move("c", time.Hour)
	postpone("c", time.Hour, "")
	done, err := c.MovePending(ctx, "e", "shop.e", 0)
	pass(2 * time.Second)
	k.note(fmt.Sprint("moved ", done), "e", client.Receipt{}, err)
	pass(80 * time.Minute)
	cancel("s")
	pass(3 * time.Hour)

	r, err := c.In(ctx, "shop.x", time.Minute, []byte("x"), client.Cancelable())
	if err != nil || r.Key == "" {
		t.Errorf("cancelable: %+v, %v, want a key", r, err)
	}
	for range 2 {
		done, err := r.Cancel(ctx)
		d.receipt(fmt.Sprint("cancelled ", done), client.Receipt{}, err)
	}
	late, err := c.In(ctx, "shop.y", time.Minute, []byte("y"), client.Cancelable())
	d.receipt("late", client.Receipt{Due: late.Due}, err)
	pass(2 * time.Minute)
	done, err = late.Cancel(ctx)
	d.receipt(fmt.Sprint("cancelled ", done), client.Receipt{}, err)
}

// TestCancelables cancels half of the messages, with and without a running broker. Only the other messages arrive.
func TestCancelables(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		stop := harness.StartBroker(t, s, timersOn(t)).Stop
		c, nc := newClient(t, s, client.Config{})
		snapshot := recordArrivals(t, nc)
		p := c.Publisher(0)
		keep := make(map[string]bool)
		for i := range 20 {
			pending, err := p.In(t.Context(), "shop.x", time.Minute, nil, client.Cancelable())
			if err != nil {
				t.Fatal(err)
			}
			r, err := pending.Wait(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if i == 10 {
				stop()
			}
			if i%2 == 0 {
				keep[fmt.Sprint("DELAY_TIMERS-", r.Sequence)] = true
				continue
			}
			if done, err := r.Cancel(t.Context()); !done || err != nil {
				t.Errorf("cancelled %t, %v, want it in time", done, err)
			}
		}
		harness.StartBroker(t, s, timersOn(t))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		for _, a := range snapshot() {
			id := a.ID[:strings.LastIndex(a.ID, "-")]
			if !keep[id] {
				t.Errorf("%s arrived although it was cancelled, or arrived twice", a.ID)
			}
			delete(keep, id)
		}
		if len(keep) > 0 {
			t.Errorf("%v did not arrive", keep)
		}
	})
}

// TestCancelableMistakes: a call with Cancelable that cannot work returns an error with advice.
func TestCancelableMistakes(t *testing.T) {
	t.Parallel()
	c, fake := onFake(t)
	for words, opts := range map[string][]client.Option{
		"use In or At":        nil, // on a level
		"whose key is":        {client.Cancelable(), client.ID("k")},
		"use Key, and end it": {client.Cancelable(), client.Every(time.Hour)},
		"want the sequence":   {client.Cancelable(), client.IfGeneration(0)},
		"client.Config.MaxDe": {client.Cancelable(), client.Expires(time.Hour)},
	} {
		var err error
		switch {
		case opts == nil:
			_, err = c.Level(t.Context(), "shop.x", "1h", nil, client.Cancelable())
		case words == "client.Config.MaxDe":
			_, err = c.In(t.Context(), "shop.x", 1000*24*time.Hour, nil, opts...)
			wantError(t, err, client.ErrTooFar)
		default:
			_, err = c.In(t.Context(), "shop.x", time.Hour, nil, opts...)
		}
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("got %v, want an error with %q", err, words)
		}
	}
	r, err := c.In(t.Context(), "shop.x", time.Hour, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Cancel(t.Context())
	wantError(t, err, client.ErrBadOption)
	err = c.Cancel(t.Context(), "none", "shop.x", 7)
	wantError(t, err, client.ErrConflict)
	want := "publish to delaytimer.none.shop.x: conflict: no timer with this generation: " +
		"it has fired, was replaced or cancelled, or was never set"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if n := len(fake.Pending()); n != 1 {
		t.Errorf("%d messages are pending, want one", n)
	}
}

// TestLostAnswers loses the acknowledgements of changes. The client recognizes its own stored entry, even if another
// entry has replaced it.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, timersOn(t))
		plain, nc := newClient(t, s, client.Config{})
		l := &lossyStore{}
		c := newClientOn(t, s.JetStream(nc), func(store client.Store) client.Store { l.Store = store; return l })
		snapshot := recordArrivals(t, nc)
		for _, change := range []func(key string, r client.Receipt) (bool, error){
			func(key string, _ client.Receipt) (bool, error) { return c.CancelPending(t.Context(), key, "shop.x") },
			func(_ string, r client.Receipt) (bool, error) { return r.Cancel(t.Context()) },
			func(key string, _ client.Receipt) (bool, error) {
				return c.MovePending(t.Context(), key, "shop.x", time.Hour)
			},
		} {
			for _, stored := range []bool{true, false} {
				r, err := c.In(t.Context(), "shop.x", time.Minute, nil, client.Cancelable())
				if err != nil {
					t.Fatal(err)
				}
				l.lossCount.Store(1)
				l.skipsPublish = !stored
				if done, err := change(r.Key, r); !done || err != nil {
					t.Errorf("got %t, %v, want true", done, err)
				}
			}
		}
		time.Sleep(2 * time.Minute)
		if n := len(snapshot()); n > 0 {
			t.Errorf("%d messages arrived, want none", n)
		}
		r, err := c.In(t.Context(), "shop.x", time.Hour, nil, client.Cancelable())
		if err != nil {
			t.Fatal(err)
		}
		l.lossCount.Store(1)
		l.skipsPublish = false
		l.onLoss = func() {
			_, err = plain.In(t.Context(), "shop.x", 2*time.Hour, nil, client.Key(r.Key))
			if err != nil {
				t.Error(err)
			}
		}
		if done, err := r.Cancel(t.Context()); !done || err != nil {
			t.Errorf("cancelled %t, %v, want true: the cancel directly follows the set", done, err)
		}
	})
}

type lossyStore struct {
	client.Store
	lossCount    atomic.Int32 // number of acknowledgements to lose
	skipsPublish bool         // the store does not publish a message whose acknowledgement is lost
	onLoss       func()       // called after each lost acknowledgement
	failure      error        // the result of a publish without acknowledgement; nats.ErrTimeout by default
}

func (l *lossyStore) PublishMsg(
	ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt,
) (*jetstream.PubAck, error) {
	if l.lossCount.Add(-1) < 0 {
		return l.Store.PublishMsg(ctx, m, opts...)
	}
	if !l.skipsPublish {
		if _, err := l.Store.PublishMsg(ctx, m, opts...); err != nil {
			return nil, err
		}
	}
	if l.onLoss != nil {
		l.onLoss()
	}
	return nil, cmp.Or(l.failure, nats.ErrTimeout)
}

// TestRefusedCancelEnds: after a refused publish, a cancel returns the error, and publishes nothing more. So the error
// is true: nothing is stored. A deadline of the context makes no difference.
func TestRefusedCancelEnds(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, timersOn(t)).Stop()
		_, nc := newClient(t, s, client.Config{})
		l := &lossyStore{skipsPublish: true, failure: jetstream.ErrNoStreamResponse}
		c := newClientOn(t, s.JetStream(nc), func(store client.Store) client.Store { l.Store = store; return l })
		limited, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for name, ctx := range map[string]context.Context{"no deadline": t.Context(), "a deadline": limited} {
			r, err := c.In(t.Context(), "shop.x", time.Hour, nil, client.Cancelable())
			natstest.NoError(t, err)
			for verb, cancel := range map[string]func() (bool, error){
				"Cancel":        func() (bool, error) { return r.Cancel(ctx) },
				"CancelPending": func() (bool, error) { return c.CancelPending(ctx, r.Key, "shop.x") },
			} {
				l.lossCount.Store(1)
				done, err := cancel()
				wantError(t, err, client.ErrNoBroker)
				now, timerErr := c.Timer(t.Context(), r.Key, "shop.x")
				if done || now.State != client.StatePending || timerErr != nil {
					t.Errorf("%s, %s: cancelled %t, then the timer is %s, %v", name, verb, done, now.State, timerErr)
				}
			}
		}
	})
}

// TestRefusedAfterDeposedLeader: a deposed leader refuses a cancel that its successor has stored, and the timer still
// looks pending. If nobody listens to the next publish, the error says that the outcome is unknown.
func TestRefusedAfterDeposedLeader(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, timersOn(t)).Stop() // a broker would remove the set that the deposed leader still shows
		plain, nc := newClient(t, s, client.Config{})
		for key, cancel := range map[string]func(*client.Client, client.Receipt) (bool, error){
			"receipt": func(_ *client.Client, r client.Receipt) (bool, error) { return r.Cancel(t.Context()) },
			"pending": func(c *client.Client, r client.Receipt) (bool, error) {
				return c.CancelPending(t.Context(), r.Key, "shop.x")
			},
		} {
			d := &deposedStore{}
			c := newClientOn(t, s.JetStream(nc), func(store client.Store) client.Store { d.Store = store; return d })
			r, err := c.In(t.Context(), "shop.x", time.Hour, nil, client.Key(key))
			natstest.NoError(t, err)
			d.deposed = true
			done, err := cancel(c, r)
			if wantError(t, err, client.ErrUnanswered); done {
				t.Errorf("%s: cancelled, want no verdict", key)
			}
			if now, err := plain.Timer(t.Context(), key, "shop.x"); now.State != client.StateCancelled || err != nil {
				t.Errorf("%s is %s, %v, want cancelled", key, now.State, err)
			}
		}
	})
}

// deposedStore is the store of a client that reaches a deposed leader. That leader refuses a publish which the next
// leader stores, and does not know it. Later publishes reach nobody.
type deposedStore struct {
	client.Store
	deposed, refused bool
}

func (d *deposedStore) PublishMsg(
	ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt,
) (*jetstream.PubAck, error) {
	if !d.deposed {
		return d.Store.PublishMsg(ctx, m, opts...)
	}
	if d.refused {
		return nil, jetstream.ErrNoStreamResponse
	}
	d.refused = true
	if _, err := d.Store.PublishMsg(ctx, m, opts...); err != nil {
		return nil, err
	}
	return nil, &jetstream.APIError{Code: 400, ErrorCode: jetstream.ErrorCode(jsapi.CodeWrongLast)}
}

func (d *deposedStore) Reader(stream string) change.Reader {
	return deposedReader{d.Store.Reader(stream)}
}

// deposedReader does not know the last entry of a subject, and returns the one before it.
type deposedReader struct{ change.Reader }

func (d deposedReader) Last(ctx context.Context, subject string) (message.Incoming, error) {
	return d.Next(ctx, subject, 1)
}
