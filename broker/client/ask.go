package client

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/timer/change"
	"delaybroker/levels"
)

// The headers of a NATS service's error reply, as in package micro.
const (
	headerError     = "Nats-Service-Error"
	headerErrorCode = "Nats-Service-Error-Code"
)

// The functions in this file send a request to a broker. Only a broker has the secret for the seal of a message that
// pauses, resumes or moves a round.

// Pause pauses a series: no round is due until the series is resumed. A round that has already fired is still
// delivered. Pause needs a running broker, and permission to publish to delayctl.timer.pause.<key>.<target>. It returns
// ErrConflict if no timer is pending or paused, and ErrBadOption if the timer fires once. After ErrUnanswered the
// outcome is unknown: call Pause again.
func (c *Client) Pause(ctx context.Context, key, target string) error {
	_, err := c.request(ctx, "pause", key, target, "paused", nil)
	return err
}

// Resume continues a paused series. The option [MissedRounds] of the series decides about the rounds missed during the
// pause. Resume needs a running broker, and permission to publish to delayctl.timer.resume.<key>.<target>. For errors
// see Pause.
func (c *Client) Resume(ctx context.Context, key, target string) error {
	_, err := c.request(ctx, "resume", key, target, "pending", nil)
	return err
}

// Fire makes a timer due immediately. For a pending or paused series, Fire adds one delivery, and does not change the
// pending round. Fire needs a running broker, and permission to publish to delayctl.timer.fire.<key>.<target>. It
// returns ErrConflict if no timer is pending or paused.
//
// The token identifies the request: printable ASCII without spaces, at most 128 bytes. After ErrUnanswered, call Fire
// again with the same token: within five minutes, that adds no second delivery. Without a token (an empty string), a
// repetition is another request.
func (c *Client) Fire(ctx context.Context, key, target, token string) error {
	_, err := c.request(ctx, "fire", key, target, "fired", map[string]string{"word": token})
	return err
}

// Postpone adds a duration to the due time of a timer, or of the pending round of a series, and returns the new due
// time. A negative duration makes the timer due earlier. The timer keeps its body. Unlike [Client.MovePending],
// Postpone needs a running broker. It needs permission to publish to delayctl.timer.move.<key>.<target>. It returns
// ErrConflict if no timer is pending, and ErrBadOption for a paused series. After ErrUnanswered, call Postpone again
// with the same token (see [Client.Fire]): the broker does not add the duration twice, unless the timer was changed in
// between.
func (c *Client) Postpone(
	ctx context.Context, key, target string, shift time.Duration, token string,
) (due time.Time, err error) {
	sign := ""
	if shift < 0 {
		sign, shift = "-", -shift
	}
	a, err := c.request(ctx, "move", key, target, "moved",
		map[string]string{"by": sign + levels.FormatDuration(shift), "word": token})
	return a.Due, err
}

type reply struct {
	Outcome, Why string
	Due          time.Time
}

func (c *Client) request(
	ctx context.Context, verb, key, target, want string, body map[string]string,
) (reply, error) {
	if err := c.checkName(key, target); err != nil {
		return reply{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	subject := c.policy.Names.TimerCall(verb) + key + "." + target
	data, _ := json.Marshal(body) // cannot fail for a map of strings
	m, err := c.store.Ask(ctx, subject, data)
	if err != nil {
		return reply{}, failure("ask on "+subject, err, c.store.Refusal(subject))
	}
	return parseReply(m, subject, want)
}

// refusalError returns the error for a refusal with an HTTP status.
func refusalError(action string, code int, sentence string) error {
	kind := map[int]error{
		change.CodeBadRequest: ErrBadOption, change.CodeNotFound: ErrNoBroker, change.CodeTooLarge: ErrTooLarge,
		change.CodeBusy: ErrBusy, change.CodeUnavailable: ErrBusy, change.CodeNoRoom: ErrFull,
	}[code]
	if kind == nil {
		return fmt.Errorf("%s: %s", action, sentence)
	}
	return fmt.Errorf("%s: %w: %s", action, kind, sentence)
}

// parseReply parses a reply. The error is nil if the reply has the outcome want.
func parseReply(m *nats.Msg, subject, want string) (reply, error) {
	if sentence := m.Header.Get(headerError); sentence != "" { // the broker refused the request
		code, _ := strconv.Atoi(m.Header.Get(headerErrorCode)) // zero if it is no number
		return reply{}, refusalError("ask on "+subject, code, sentence)
	}
	var answer reply
	if err := json.Unmarshal(m.Data, &answer); err != nil || answer.Outcome == "" {
		return reply{}, fmt.Errorf("ask on %s: %w: %.100q", subject, ErrForeign, m.Data)
	}
	switch answer.Outcome {
	case want:
		return answer, nil
	case "unknown":
		return reply{}, fmt.Errorf("ask on %s: %w: %s", subject, ErrUnanswered, answer.Why)
	}
	return reply{}, fmt.Errorf("ask on %s: %w: no timer is pending (%s)", subject, ErrConflict, answer.Outcome)
}
