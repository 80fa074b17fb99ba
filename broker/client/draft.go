package client

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
	"delaybroker/levels"
)

// An address is a request's target and time, with the subjects that express them.
type address struct {
	target        string
	subject       string
	fallback      string // the subject of the intake with the same meaning; empty if there is none
	stableSubject string // the subject for a message with an ID, which depends only on the delay; it has no fallback
	token         string // the guessed level in subject; empty if the level was not guessed
	delay         string // the delay as a header value; empty if the field when is set
	when          time.Time
	byLevel       bool // the caller named the level; with Until, the message waits in that level first
	schedule      bool // the due time follows from the timetable of a series
	err           error
}

// in returns the address for a delay. If a level may have that delay, the subject is the level's subject, which saves
// the hop through the intake.
func (c *Client) in(target string, delay time.Duration) address {
	names, written := c.policy.Names, levels.FormatDuration(delay)
	a := address{target: target, subject: names.In(written, target), delay: written}
	a.stableSubject = a.subject
	rounded, err := levels.ParseDuration(written)
	if err != nil {
		return a // the delay is too long, and check returns the error
	}
	if token, ok := plainNames()[rounded]; ok {
		a.stableSubject = names.Level(token, target)
	}
	if token, ok := c.levels.token(rounded, c.store.Now()); ok {
		a.subject, a.fallback, a.token = names.Level(token, target), a.subject, token
	}
	return a
}

// at returns the address for a time. A level with Delay-Until would save a hop, but the message may become a dead
// letter: see the package comment.
func (c *Client) at(target string, at time.Time) address {
	a := address{target: target, subject: c.policy.Names.At(message.TimeToken(at), target), when: at}
	a.stableSubject = a.subject
	if at.IsZero() {
		a.err = fmt.Errorf("%w: the time is zero: set it", ErrBadTime)
	}
	return a
}

func (c *Client) level(target, level string) address {
	names := c.policy.Names
	a := address{target: target, subject: names.Level(level, target), fallback: names.In(level, target), byLevel: true}
	a.stableSubject = a.subject
	if strings.Contains(level, ".") { // the part after the dot would become part of the target
		a.err = fmt.Errorf("%w: the level %q: want no dot", ErrBadTime, level)
	}
	return a
}

// A draft is a request that the client has checked with the broker's parser.
type draft struct {
	msg      *nats.Msg
	fallback *nats.Msg // the request for the intake, for the case that no stream listens for msg; nil if there is none
	token    string    // see address
	due      time.Time // estimated by the client's clock

	timer    bool    // the request is for a named timer
	key      string  // the timer's key; empty for a cancel
	target   string  // the timer's target; empty for a cancel
	expected *uint64 // the sequence that the subject's last entry must have; nil for an unconditional publish
}

// draft returns a request to an address. It checks the request with the broker's parser.
func (c *Client) draft(a address, body []byte, opts []Option) (*draft, error) {
	if a.err != nil {
		return nil, a.err
	}
	r := options{brokerHeader: nats.Header{}}
	for _, o := range opts {
		o(&r)
	}
	if !a.byLevel && !r.until.IsZero() {
		r.refuse("Until is only for Level")
	}
	a = c.timer(a, &r)
	if r.err != nil {
		return nil, r.err
	}
	if !r.timer.isTimer && r.brokerHeader.Get(nats.MsgIdHdr) != "" {
		a.subject, a.fallback, a.token = a.stableSubject, "", ""
	}
	d := &draft{
		token: a.token, timer: r.timer.isTimer, key: r.timer.key, target: a.target, expected: r.timer.expected,
	}
	d.msg = &nats.Msg{Subject: a.subject, Header: r.header(), Data: body}
	request, err := c.check(d.msg, a.target, r)
	if err != nil {
		return nil, err
	}
	if d.timer {
		if err := c.checkSize(d.msg); err != nil {
			return nil, err
		}
	}
	if d.due = request.Due; request.Recurs != nil {
		d.due = request.Recurs.Planned // without jitter, which depends on the sequence that the message will get
	}
	if a.fallback == "" {
		return d, nil
	}
	d.fallback = &nats.Msg{Subject: a.fallback, Header: r.header(), Data: body}
	if !r.until.IsZero() { // only levels allow this header
		d.fallback.Subject = c.policy.Names.At(message.TimeToken(r.until), a.target)
		d.fallback.Header.Del(message.HeaderUntil)
	}
	if _, err := c.check(d.fallback, a.target, r); err != nil {
		d.fallback = nil // the intake refuses a target that begins with a duration, such as 5s.x
	}
	return d, nil
}

// check parses a request as the broker does. It returns an error if the request would become a dead letter.
func (c *Client) check(m *nats.Msg, target string, r options) (entry.Pending, error) {
	request, problem := entry.ParseAny(c.policy, message.Incoming{
		Stream: c.policy.Names.IntakeStream(), Sequence: 1, At: c.store.Now(), Subject: m.Subject,
		Header: message.Header(m.Header), Data: m.Data,
	})
	switch {
	case problem != nil && problem.Code == message.BadTimer && (r.timer.recurs || r.timer.debounced) &&
		entry.ParseKey(r.timer.key) == nil:
		return request, fmt.Errorf("%w: %s", ErrBadOption, problem.Sentence)
	case problem != nil:
		return request, problemError(problem)
	case request.Target != target:
		return request, fmt.Errorf("%w: %q would be delivered to %q", ErrBadTarget, target, request.Target)
	}
	for name := range r.userHeader {
		if _, passed := request.User[name]; !passed {
			return request, fmt.Errorf("%w: %q is reserved and would not reach the target: use the option for it, or "+
				"remove the header", ErrBadHeaders, name)
		}
	}
	return request, nil
}

// problemError converts a problem to an error of this package.
func problemError(p *message.Problem) error {
	err := ErrBadOption
	switch p.Code {
	case message.BadTarget:
		err = ErrBadTarget
	case message.BadTime, message.UntilEarly:
		err = ErrBadTime
	case message.TooFar:
		err = ErrTooFar
	case message.BadHeaders:
		err = ErrBadHeaders
	case message.BadTimer:
		err = ErrBadKey
	}
	return fmt.Errorf("%w: %s", err, fieldNames.Replace(p.Sentence))
}

// fieldNames replaces the names of the broker's settings, in the text of a problem, by fields of Config.
var fieldNames = strings.NewReplacer(
	"DELAY_MAX_DELAY", "client.Config.MaxDelay", "DELAY_ATTEMPTS", "client.Config.Attempts",
	"DELAY_TARGETS", "client.Config.Targets",
)

// retries returns the retry options of a publish. If there is a fallback, nats.go must not retry a publish on whose
// subject no stream listens.
func (d *draft) retries() []jetstream.PublishOpt {
	if d.fallback == nil {
		return nil
	}
	return []jetstream.PublishOpt{jetstream.WithRetryAttempts(0)}
}

// fallsBack reports whether no stream listens on the request's subject and there is a fallback. The request is then
// certainly not stored: the server itself reports that no stream listens.
func (d *draft) fallsBack(err error) bool {
	return d.fallback != nil && errors.Is(err, jetstream.ErrNoStreamResponse)
}

// answeredBy reports whether an acknowledgement can be the answer to this draft. A client that knows the inbox can have
// other acknowledgements delivered there. An entry has a higher sequence than the entry that it replaces.
func (d *draft) answeredBy(ack *jetstream.PubAck) bool {
	return !ack.Duplicate && (d.expected == nil || ack.Sequence > *d.expected)
}
