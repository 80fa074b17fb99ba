package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"delaybroker/broker/message"
)

// The headers of an answer that refuses, as of NATS services. Package micro has them, and dependencies.
const (
	headerError     = "Nats-Service-Error"
	headerErrorCode = "Nats-Service-Error-Code"
)

// This file asks a broker to do something about a series, on delayctl. A client cannot do it by itself: the entry that
// takes the place of a round needs a broker's seal.

// Pause stops a series: no round is due until it is resumed. One that is on its way to the target arrives. It asks a
// broker, which has to run, and takes the right to publish to delayctl.timer.pause.<key>.<target>. ErrConflict means
// that nothing recurs there; after ErrUnanswered nothing is known: call it again.
func (c *Client) Pause(ctx context.Context, key, target string) error {
	return c.ask(ctx, "pause", key, target, "paused")
}

// Resume goes on with a series that was paused, as MissedRounds said when it was set. See Pause.
func (c *Client) Resume(ctx context.Context, key, target string) error {
	return c.ask(ctx, "resume", key, target, "pending")
}

// Fire makes a timer due at once. Of a series it is one delivery besides: the pending round stays as it is. See Pause.
func (c *Client) Fire(ctx context.Context, key, target string) error {
	return c.ask(ctx, "fire", key, target, "fired")
}

// ask has a broker carry out a verb, and wants an outcome.
func (c *Client) ask(ctx context.Context, verb, key, target, want string) error {
	if problem := message.ParseKey(key); problem != nil {
		return refused(problem)
	}
	if problem := c.policy.CheckTarget(target); problem != nil {
		return refused(problem)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	subject := c.policy.Names.TimerCall(verb) + key + "." + target
	body, err := json.Marshal(map[string]string{"word": nuid.Next()})
	if err != nil {
		return fmt.Errorf("bug: encode a request: %w", err)
	}
	m, err := c.store.Ask(ctx, subject, body)
	if err != nil {
		return failure("ask on "+subject, err, c.store.Refusal(subject))
	}
	return judgeAnswer(m, subject, want)
}

// judgeAnswer is nil where the answer is the outcome that was wanted.
func judgeAnswer(m *nats.Msg, subject, want string) error {
	if sentence := m.Header.Get(headerError); sentence != "" { // nothing was done
		code := m.Header.Get(headerErrorCode)
		kind := map[string]error{"400": ErrBadOption, "404": ErrNoBroker, "413": ErrTooLarge, "507": ErrFull}[code]
		if kind == nil {
			return fmt.Errorf("ask on %s: %s", subject, sentence)
		}
		return fmt.Errorf("ask on %s: %w: %s", subject, kind, sentence)
	}
	var answer struct{ Outcome, Why string }
	if err := json.Unmarshal(m.Data, &answer); err != nil || answer.Outcome == "" {
		return fmt.Errorf("ask on %s: %w: %.100q", subject, ErrForeign, m.Data)
	}
	switch answer.Outcome {
	case want:
		return nil
	case "unknown":
		return fmt.Errorf("ask on %s: %w: %s", subject, ErrUnanswered, answer.Why)
	}
	return fmt.Errorf("ask on %s: %w: %w", subject, ErrConflict, errors.New(answer.Outcome+" "+answer.Why))
}
