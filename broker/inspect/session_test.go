package inspect

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/test/natstest"
)

// TestRefusalEndsTheWaiting: a refused request has no answer, and its caller does not wait for one.
func TestRefusalEndsTheWaiting(t *testing.T) {
	bubble(t, natstest.Denied("$JS.API.STREAM.LIST"), func(t *testing.T, s *natstest.Server) {
		i := open(t, s, with(t, "delay", "1s 5s"), tried)
		began := time.Now()
		_, err := i.Lanes(t.Context(), Handover)
		if !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), "$JS.API.STREAM.LIST") {
			t.Errorf("got %v, want the subject that was refused", err)
		}
		wantTook(t, began, 0)
		if got, want := i.Refusals(), []string{"Publish to $JS.API.STREAM.LIST"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestLookIsWholeOrNothing: if the request for one lane is refused, Lanes fails. Half a table would mislead.
func TestLookIsWholeOrNothing(t *testing.T) {
	bubble(t, natstest.Denied("$JS.API.STREAM.MSG.GET.DELAY_5s"), func(t *testing.T, s *natstest.Server) {
		cfg := with(t, "delay", "1s 5s")
		provision(t, s, cfg)
		publish(t, open(t, s, cfg, ""), "delay.5s.x")
		_, err := open(t, s, cfg, tried).Lanes(t.Context(), 0)
		if err == nil || !strings.Contains(err.Error(), "$JS.API.STREAM.MSG.GET.DELAY_5s") {
			t.Errorf("got %v, want the subject that was refused", err)
		}
	})
}

// TestRefusalBehindAnInnerQuestion: a refusal ends the outer request only if the inner request has already ended.
func TestRefusalBehindAnInnerQuestion(t *testing.T) {
	bubble(t, natstest.Denied("not.ours"), func(t *testing.T, s *natstest.Server) {
		i := open(t, s, with(t, "delay", "1s 5s"), tried)
		around, cancelAround := i.Allowed(t.Context())
		defer cancelAround()
		inner, cancelInner := i.Allowed(around)
		refuse := func() {
			if err := errors.Join(i.Conn.Publish("not.ours", nil), i.Conn.Flush()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		refuse()
		if Forbidden(inner) == nil || around.Err() != nil {
			t.Errorf("the inner question ended with %v, the one around it with %v; want the refusal, and nothing",
				context.Cause(inner), context.Cause(around))
		}
		cancelInner()
		refuse()
		if Forbidden(around) == nil {
			t.Error("behind an inner question, a refusal is not heard")
		}
	})
}

// TestQuestionHasAnEnd: a request that is neither answered nor refused ends after jsapi.Timeout.
func TestQuestionHasAnEnd(t *testing.T) {
	bubble(t, server.Permissions{}, func(t *testing.T, s *natstest.Server) {
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
		wantTook(t, began, jsapi.Timeout)
	})
}

// TestNoJetStreamInWords: the errors of a missing JetStream have one cause, which a person can correct.
func TestNoJetStreamInWords(t *testing.T) {
	for _, err := range []error{
		nats.ErrNoResponders,
		jetstream.ErrJetStreamNotEnabled,
		jetstream.ErrJetStreamNotEnabledForAccount,
	} {
		if got := Cause(t.Context(), err); !errors.Is(got, ErrNoJetStream) || !errors.Is(got, err) {
			t.Errorf("got %v, want that JetStream is off, and %v", got, err)
		}
	}
	if got := Cause(t.Context(), nats.ErrTimeout); errors.Is(got, ErrNoJetStream) {
		t.Errorf("got %v of a timeout", got)
	}
}
