package promises

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/deadletter"
	"delaybroker/broker/inspect"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// busy is JetStream's refusal of a request that a client may repeat.
const busy = `{"type":"io.nats.jetstream.api.v1.%s_response","error":{"code":503,"err_code":10008,` +
	`"description":"JetStream system temporarily unavailable"}}`

// TestResendInTrouble: JetStream refuses one kind of an operator's requests, or does not answer them, with or without
// carrying them out. When JetStream answers again, the operator resends the remaining letters. Each message arrives
// once.
func TestResendInTrouble(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	for _, request := range []string{"STREAM.INFO.DELAY_DEAD", "CONSUMER.MSG.NEXT.DELAY_DEAD",
		"STREAM.MSG.GET.DELAY_DEAD", "STREAM.MSG.DELETE.DELAY_DEAD"} {
		for _, how := range []string{"lost", "done", "refused"} {
			natstest.Subtest(t, request+" is "+how, func(t *testing.T, s *natstest.Server) {
				resendInTrouble(t, s, request, how)
			})
		}
	}
}

func resendInTrouble(t *testing.T, s *natstest.Server, request, how string) {
	t.Helper()
	c := harness.StartBroker(t, s, impatient(t)).NewClient()
	const letters = 5
	for i := range letters {
		c.Publish("delayin.0s.orders.x", fmt.Sprint(i))
	}
	time.Sleep(time.Minute)
	in := c.Subscribe("orders.>")
	c.Target("ORDERS", "orders.>")
	pass := s.Connect(nats.Name("pass"))
	var cfg broker.Config
	on := harness.Intercept(t, s, &cfg, request, func(m *nats.Msg) {
		question := strings.TrimPrefix(m.Subject, natstest.ProxyAPI+".")
		switch how {
		case "done":
			natstest.Forward(pass, question, &nats.Msg{Data: m.Data, Header: m.Header})
		case "refused":
			kind := strings.ToLower(strings.ReplaceAll(question[:strings.LastIndexByte(question, '.')], ".", "_"))
			_ = m.Respond(fmt.Appendf(nil, busy, kind))
		}
	})
	i, err := inspect.Open(s.Connect(), cfg)
	natstest.NoError(t, err)
	on.Store(true)
	if first, err := resendAll(i); err == nil {
		t.Errorf("while requests fail, the resend succeeded: %+v", first)
	}
	on.Store(false)
	time.Sleep(time.Second)
	if outcomes, err := resendAll(i); err != nil {
		t.Errorf("the resend after the trouble: %+v, %v", outcomes, err)
	}
	time.Sleep(time.Minute)
	harness.CheckBodies(t, in.Arrivals(), "0 1 2 3 4")
	c.CheckEmpty()
}

// resendAll resends all letters as an operator does.
func resendAll(i *inspect.Inspector) ([]inspect.Outcome, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	letters, err := i.Letters(ctx)
	if err != nil {
		return nil, err
	}
	return letters.Work(ctx, ctx, letters.ResendWork(deadletter.Filter{}, deadletter.Resend{}, false))
}

// TestResentByTwo: two operators resend the same letters at the same time, while the broker is killed. The target's
// stream stores each message once. Both operators' commands end without an error.
func TestResentByTwo(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b, c := harness.Start(t, s, impatient(t))
		const letters = 50
		for range letters {
			c.Publish("delayin.0s.orders.x", "x")
		}
		time.Sleep(time.Minute)
		c.Target("ORDERS", "orders.>")
		var working sync.WaitGroup
		for range 2 {
			working.Go(func() {
				if outcomes, err := resendAll(harness.Operator(t, s)); err != nil {
					t.Errorf("%+v, %v", outcomes, err)
				}
			})
		}
		time.Sleep(time.Millisecond)
		b.Crash()
		working.Wait()
		harness.StartBroker(t, s, impatient(t))
		time.Sleep(time.Minute)
		harness.CheckBodies(t, c.Arrivals("ORDERS"), fmt.Sprintf("x×%d", letters))
		c.CheckEmpty()
	})
}
