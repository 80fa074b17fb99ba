package inspect

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/test/natstest"
)

// TestRefusalEndsTheWaiting: the server does not answer a refused request, and Lanes does not wait for the answer.
func TestRefusalEndsTheWaiting(t *testing.T) {
	natstest.BubbleAs(t, natstest.DenyPublish("$JS.API.STREAM.LIST"), func(t *testing.T, s *natstest.Server) {
		i := open(t, s, configOf(t, "delay", "1s 5s"), natstest.LimitedUser)
		began := time.Now()
		_, err := i.Lanes(t.Context(), MaxHandover)
		if !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), "$JS.API.STREAM.LIST") {
			t.Errorf("got %v, want the refused subject", err)
		}
		natstest.CheckElapsed(t, began, 0)
		if got, want := i.Refusals(), []string{"Publish to $JS.API.STREAM.LIST"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestLanesAreComplete: if the request for one lane is refused, Lanes fails. An incomplete table would mislead.
func TestLanesAreComplete(t *testing.T) {
	natstest.BubbleAs(t, natstest.DenyPublish("$JS.API.STREAM.MSG.GET.DELAY_5s"), func(t *testing.T, s *natstest.Server) {
		cfg := configOf(t, "delay", "1s 5s")
		createStreams(t, s, cfg)
		publish(t, open(t, s, cfg, ""), "delay.5s.x")
		_, err := open(t, s, cfg, natstest.LimitedUser).Lanes(t.Context(), 0)
		if err == nil || !strings.Contains(err.Error(), "$JS.API.STREAM.MSG.GET.DELAY_5s") {
			t.Errorf("got %v, want the refused subject", err)
		}
	})
}

// TestRefusalEndsInnermostRequest: a refusal ends the outer request only if the inner request has already ended.
func TestRefusalEndsInnermostRequest(t *testing.T) {
	natstest.BubbleAs(t, natstest.DenyPublish("not.ours"), func(t *testing.T, s *natstest.Server) {
		i := open(t, s, configOf(t, "delay", "1s 5s"), natstest.LimitedUser)
		outer, cancelOuter := i.WithRefusal(t.Context())
		defer cancelOuter()
		inner, cancelInner := i.WithRefusal(outer)
		refuse := func() {
			if err := i.Conn.Publish("not.ours", nil); err != nil {
				t.Fatal(err)
			}
			natstest.Flush(t, i.Conn)
			synctest.Wait()
		}
		refuse()
		if RefusalOf(inner) == nil || outer.Err() != nil {
			t.Errorf("the inner request ended with %v and the outer request with %v; want the refusal and nil",
				context.Cause(inner), context.Cause(outer))
		}
		cancelInner()
		refuse()
		if RefusalOf(outer) == nil {
			t.Error("after the inner request has ended, a refusal does not end the outer request")
		}
	})
}

// TestRequestTimeout: a request that is neither answered nor refused ends after jsapi.Timeout.
func TestRequestTimeout(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		session, err := NewSession(s.Connect(), "$JS.API")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err = session.request(t.Context(), jsapi.Timeout, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		natstest.CheckElapsed(t, began, jsapi.Timeout)
	})
}

// TestNoJetStream: each error that shows a missing JetStream becomes errNoJetStream.
func TestNoJetStream(t *testing.T) {
	for _, err := range []error{
		nats.ErrNoResponders,
		jetstream.ErrJetStreamNotEnabled,
		jetstream.ErrJetStreamNotEnabledForAccount,
	} {
		if got := Cause(t.Context(), err); !errors.Is(got, errNoJetStream) || !errors.Is(got, err) {
			t.Errorf("got %v, want both %v and %v", got, errNoJetStream, err)
		}
	}
	if got := Cause(t.Context(), nats.ErrTimeout); errors.Is(got, errNoJetStream) {
		t.Errorf("a timeout: got %v, want no %v", got, errNoJetStream)
	}
}
