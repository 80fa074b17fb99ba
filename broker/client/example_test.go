package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/client"
	"delaybroker/broker/client/clienttest"
)

// t replaces the *testing.T of a test, which examples do not have.
var t = new(testing.T)

// This example uses a server. The other examples use the fake broker of package clienttest, with the same Client.
func Example() {
	nc, err := nats.Connect(nats.DefaultURL)
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		log.Fatal(err)
	}
	delays, err := client.New(js, client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	receipt, err := delays.In(context.Background(), "orders.expire", 30*time.Minute, []byte(`{"id":42}`),
		client.ID("order-42/expire"), client.Expires(time.Hour))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("stored in", receipt.Stream)
}

func ExampleClient_In() {
	fake := clienttest.New(t, client.Config{})
	delays, ctx := fake.Client(), context.Background()

	receipt, err := delays.In(ctx, "orders.expire", 30*time.Minute, []byte(`{"id":42}`), client.ID("order-42/expire"))
	fmt.Println(receipt.Stream, receipt.Duplicate, err)

	// The program repeats the request, as if the first answer was lost.
	receipt, err = delays.In(ctx, "orders.expire", 30*time.Minute, []byte(`{"id":42}`), client.ID("order-42/expire"))
	fmt.Println(receipt.Stream, receipt.Duplicate, err)

	fmt.Println(len(fake.Advance(30*time.Minute-1)), "arrived a nanosecond before")
	for _, m := range fake.Advance(1) {
		fmt.Printf("%s: %s\n", m.Subject, m.Data)
	}
	// Output:
	// DELAY_30m false <nil>
	// DELAY_30m true <nil>
	// 0 arrived a nanosecond before
	// orders.expire: {"id":42}
}

func ExampleClient_At() {
	fake := clienttest.NewAt(t, client.Config{}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	at := fake.Now().Add(36*time.Hour + 1500*time.Microsecond)
	receipt, err := fake.Client().At(context.Background(), "reports.run", at, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(receipt.Stream, receipt.Due.Format(time.RFC3339Nano))
	// Output: DELAY_INTAKE 2026-01-02T12:00:00.002Z
}

// A mistake is an error at the call, with the sentence that a dead letter would have.
func ExampleClient_In_mistakes() {
	delays, ctx := clienttest.New(t, client.Config{}).Client(), context.Background()
	_, err := delays.In(ctx, "orders.*", time.Hour, nil)
	fmt.Println(errors.Is(err, client.ErrBadTarget), err)
	_, err = delays.In(ctx, "orders.expire", 3*365*24*time.Hour, nil)
	fmt.Println(errors.Is(err, client.ErrTooFar))
	_, err = delays.In(ctx, "orders.expire", time.Hour, nil, client.Header("Nats-Rollup", "all"))
	fmt.Println(errors.Is(err, client.ErrBadHeaders))
	// Output:
	// true bad target: the target "orders.*" contains a wildcard: name one subject
	// true
	// true
}

func ExampleParseArrival() {
	fake := clienttest.New(t, client.Config{})
	fake.Handle("orders.>", func(m *nats.Msg) {
		a, ok := client.ParseArrival(m) // or client.ParseJetStreamArrival, for a message of a JetStream consumer
		if !ok {
			return // the message did not come from a broker
		}
		fmt.Println(a.ID, a.MsgID, a.Due.Sub(a.Accepted), a.Attempts)
	})
	_, err := fake.Client().In(context.Background(), "orders.expire", time.Hour, nil, client.ID("order-42"))
	if err != nil {
		log.Fatal(err)
	}
	fake.Advance(time.Hour)
	// Output: DELAY_1h-1-946684800000000000 order-42 1h0m0s 0
}

func ExampleKey() {
	fake := clienttest.New(t, client.Config{})
	delays, ctx := fake.Client(), context.Background()

	order, err := delays.In(ctx, "orders.expire", 30*time.Minute, nil, client.Key("order-42"), client.IfAbsent())
	if err != nil {
		log.Fatal(err)
	}
	moved, err := delays.Move(ctx, "order-42", "orders.expire", order.Sequence, time.Hour, nil)
	if err != nil {
		log.Fatal(err)
	}
	// This client has the generation from before the move.
	err = delays.Cancel(ctx, "order-42", "orders.expire", order.Sequence)
	fmt.Println(errors.Is(err, client.ErrConflict))

	fmt.Println(delays.Cancel(ctx, "order-42", "orders.expire", moved.Sequence))
	state, err := delays.Timer(ctx, "order-42", "orders.expire")
	fmt.Println(state.State, err, len(fake.Advance(24*time.Hour)))
	// Output:
	// true
	// <nil>
	// cancelled <nil> 0
}

// A publisher can cancel a message without a key that it chose.
func ExampleReceipt_Cancel() {
	fake := clienttest.New(t, client.Config{})
	ctx := context.Background()
	receipt, err := fake.Client().In(ctx, "orders.expire", 30*time.Minute, nil, client.Cancelable())
	if err != nil {
		log.Fatal(err)
	}
	cancelled, err := receipt.Cancel(ctx)
	fmt.Println(cancelled, err, len(fake.Advance(24*time.Hour)))
	// Output: true <nil> 0
}

// A client that knows the key needs neither the generation nor the body.
func ExampleClient_CancelPending() {
	fake := clienttest.New(t, client.Config{})
	delays, ctx := fake.Client(), context.Background()
	for _, key := range []string{"order-42", "order-43"} {
		if _, err := delays.In(ctx, "orders.expire", 30*time.Minute, []byte(key), client.Key(key)); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(delays.CancelPending(ctx, "order-42", "orders.expire"))
	fmt.Println(delays.MovePending(ctx, "order-43", "orders.expire", time.Hour))
	fmt.Println(delays.Postpone(ctx, "order-43", "orders.expire", 5*time.Minute, ""))
	for _, m := range fake.Advance(24 * time.Hour) {
		fmt.Printf("%s %s\n", m.Data, m.Header.Get("Delay-Due"))
	}
	fmt.Println(delays.CancelPending(ctx, "order-43", "orders.expire"))
	// Output:
	// true <nil>
	// true <nil>
	// 2000-01-01 01:05:00 +0000 UTC <nil>
	// order-43 2000-01-01T01:05:00Z
	// false <nil>
}

func ExamplePublisher() {
	fake := clienttest.New(t, client.Config{})
	ctx := context.Background()
	p := fake.Client().Publisher(0)
	for i := range 1000 {
		// Publish waits while the window is full. The program can wait for each answer, or leave them to Close.
		if _, err := p.In(ctx, "orders.expire", time.Hour, fmt.Append(nil, i)); err != nil {
			log.Fatal(err) // nothing was published
		}
	}
	if err := p.Close(ctx); err != nil {
		log.Fatal(err) // the number of messages without an acknowledgement, and the first error
	}
	fmt.Println(len(fake.Requests()), "are stored")
	// Output: 1000 are stored
}
