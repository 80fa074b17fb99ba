package harness

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/message"
)

// SchedulesOn returns the configuration of a broker that serves schedules for orders and mail.
func SchedulesOn(t testing.TB) broker.Config {
	cfg := TimersOn(t)
	cfg.Schedules = message.ParseScheduleRules("schedules.orders.>=orders.>,schedules.mail.>=mail.>", nil)
	return cfg
}

// Schedule requests a schedule, and returns the sequence or the error code of the answer. Both are zero without an
// answer.
func (c *Client) Schedule(
	subject, target, when, body string, headers ...string,
) (seq uint64, code jetstream.ErrorCode) {
	c.T.Helper()
	m := NewMsg(subject, body, append([]string{"Nats-Schedule", when, "Nats-Schedule-Target", target}, headers...)...)
	return c.Plan(m)
}

// Plan is like Schedule, but takes a message.
func (c *Client) Plan(m *nats.Msg) (seq uint64, code jetstream.ErrorCode) {
	c.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	ack, err := c.JS.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
	switch api := (*jetstream.APIError)(nil); {
	case errors.As(err, &api):
		return 0, api.ErrorCode
	case errors.Is(err, context.DeadlineExceeded):
		return 0, 0
	case err != nil:
		c.T.Fatalf("ask on %s: %v", m.Subject, err)
	}
	if ack.Stream != "DELAY_TIMERS" {
		c.T.Errorf("acknowledged by %s", ack.Stream)
	}
	return ack.Sequence, 0
}

// At returns the header value of a schedule that is due at a time.
func At(due time.Time) string { return "@at " + due.Format(time.RFC3339Nano) }
