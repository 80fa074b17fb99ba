package snippets

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrLook is returned when the last entry of the timer is not the expected one: the timer exists already, has fired, or
// was changed or cancelled. Then read the state of the timer.
var ErrLook = errors.New("the timer has changed or fired meanwhile")

// Timer sets, moves and cancels named timers. A timer has a key and a target. Its generation is the sequence in the
// acknowledgement.
func Timer(ctx context.Context, js jetstream.JetStream) error {
	set := func(subject, body, delay string, expect ...jetstream.PublishOpt) (uint64, error) {
		m := &nats.Msg{Subject: subject, Data: []byte(body), Header: nats.Header{"Delay-For": {delay}}}
		return publish(ctx, js, m, expect...)
	}
	// sets the timer only if there is none
	g, err := set("delaytimer.order-42.orders.expire", `{"id":42}`, "30m", jetstream.WithExpectLastSequencePerSubject(0))
	if err != nil {
		return err
	}
	// moves the timer, with its body, only if its generation is still g
	_, err = set("delaytimer.order-42.orders.expire", `{"id":42}`, "2s", jetstream.WithExpectLastSequencePerSubject(g))
	if err != nil {
		return err
	}
	// another timer, for the cancel
	if g, err = set("delaytimer.order-43.orders.expire", `{"id":43}`, "2s"); err != nil {
		return err
	}
	// cancels the other timer; after the acknowledgement, it will never be delivered
	cancel := &nats.Msg{Subject: "delaytimer.order-43.orders.expire", Header: nats.Header{"Delay-Cancel": {"paid"}}}
	if _, err = publish(ctx, js, cancel, jetstream.WithExpectLastSequencePerSubject(g)); err != nil {
		return err
	}
	// the timer is cancelled already
	again := &nats.Msg{Subject: "delaytimer.order-43.orders.expire", Header: nats.Header{"Delay-Cancel": {"paid"}}}
	if _, err = publish(ctx, js, again, jetstream.WithExpectLastSequencePerSubject(g)); !errors.Is(err, ErrLook) {
		return fmt.Errorf("cancelled twice: %w", err)
	}
	return nil
}

// publish returns the sequence of the stored entry. After any other error than ErrLook, the entry may have been stored:
// publish again, with the same expectation. If that returns ErrLook, the first publish may have been stored.
func publish(ctx context.Context, js jetstream.JetStream, m *nats.Msg, expect ...jetstream.PublishOpt) (uint64, error) {
	ack, err := js.PublishMsg(ctx, m, expect...)
	if api := (*jetstream.APIError)(nil); errors.As(err, &api) && api.ErrorCode == 10071 {
		return 0, ErrLook
	}
	if err != nil {
		return 0, err
	}
	if ack.Duplicate { // not stored
		return 0, ErrLook
	}
	return ack.Sequence, nil
}
