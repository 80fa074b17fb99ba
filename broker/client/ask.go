package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"delaybroker/broker/timer/entry"
)

// The headers of a NATS service's error reply. Package micro defines them too, but importing it would add dependencies.
const (
	headerError     = "Nats-Service-Error"
	headerErrorCode = "Nats-Service-Error-Code"
)

// The calls in this file send a request to a broker, on delayctl. A client cannot change a series by itself: the entry
// that replaces a round needs a broker's seal.

// Pause pauses a series: no round is due until the series is resumed. A round that has already fired is still
// delivered. Pause sends a request to a broker, so a broker must run. It needs permission to publish to
// delayctl.timer.pause.<key>.<target>. It returns ErrConflict if there is no series. After ErrUnanswered the outcome is
// unknown: call Pause again.
func (c *Client) Pause(ctx context.Context, key, target string) error {
	return c.ask(ctx, "pause", key, target, "paused")
}

// Resume continues a paused series. MissedRounds, given when the series was set, decides about the rounds missed
// meanwhile. For permissions and errors see Pause.
func (c *Client) Resume(ctx context.Context, key, target string) error {
	return c.ask(ctx, "resume", key, target, "pending")
}

// Fire makes a timer due immediately. For a series it adds one delivery, and the pending round stays as it is. For
// permissions and errors see Pause.
func (c *Client) Fire(ctx context.Context, key, target string) error {
	return c.ask(ctx, "fire", key, target, "fired")
}

// ask sends a broker a request with the given verb. It returns nil if the reply has the outcome want.
func (c *Client) ask(ctx context.Context, verb, key, target, want string) error {
	if problem := entry.ParseKey(key); problem != nil {
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

// judgeAnswer returns nil if the reply has the outcome want.
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
