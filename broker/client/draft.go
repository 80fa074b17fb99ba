package client

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/levels"
)

// An ask says to whom and when: the subject of a request, and another one that means the same.
type ask struct {
	target  string
	subject string
	spare   string // that the intake takes; empty where there is no other
	steady  string // the one for a message with an ID: the same for every client, at any time, and without a spare
	token   string // of the level in subject that was guessed; empty where it was not
	delay   string // as a header would say it; empty where when is given
	when    time.Time
	leg     bool // the caller named the level, which may be a first leg: see Until
	table   bool // it is due by the table of a series
	err     error
}

// in asks for a delay. Where a level is as long, its subject saves the hop through the intake.
func (c *Client) in(target string, delay time.Duration) ask {
	names, written := c.policy.Names, levels.FormatDuration(delay)
	a := ask{target: target, subject: names.In(written, target), delay: written}
	a.steady = a.subject
	asked, err := levels.ParseDuration(written) // which is rounded
	if err != nil {
		return a // too long to be a level, and the parser says so
	}
	if token, ok := plain()[asked]; ok {
		a.steady = names.Level(token, target)
	}
	if token, ok := c.levels.token(asked, c.store.Now()); ok {
		a.subject, a.spare, a.token = names.Level(token, target), a.subject, token
	}
	return a
}

// at asks for a time. A level with Delay-Until would save a hop, and is not exact: see the package comment.
func (c *Client) at(target string, at time.Time) ask {
	a := ask{target: target, subject: c.policy.Names.At(message.TimeToken(at), target), when: at}
	a.steady = a.subject
	if at.IsZero() {
		a.err = fmt.Errorf("%w: the zero time, which somebody forgot to set", ErrBadTime)
	}
	return a
}

func (c *Client) level(target, level string) ask {
	names := c.policy.Names
	a := ask{target: target, subject: names.Level(level, target), spare: names.In(level, target), leg: true}
	a.steady = a.subject
	if strings.Contains(level, ".") { // or a part of it would become a part of the target
		a.err = fmt.Errorf("%w: the level %q: a dot splits a subject", ErrBadTime, level)
	}
	return a
}

// A draft is a request that a broker would grant.
type draft struct {
	msg   *nats.Msg
	spare *nats.Msg // asks for the same, where no stream takes msg; nil if there is none
	token string    // see ask
	due   time.Time // if it were stored now

	timer    bool    // it is about a named timer
	expected *uint64 // the generation that it expects to be the last; nil if it expects nothing
}

// draft makes a request of an ask, and reads it as the broker will.
func (c *Client) draft(a ask, body []byte, opts []Option) (*draft, error) {
	if a.err != nil {
		return nil, a.err
	}
	r := options{protocol: nats.Header{}}
	for _, o := range opts {
		o(&r)
	}
	if !a.leg && !r.until.IsZero() {
		r.refuse("Until goes with Level, not with another time")
	}
	a = c.timer(a, &r)
	if r.err != nil {
		return nil, r.err
	}
	if !r.timer.named && r.protocol.Get(nats.MsgIdHdr) != "" {
		a.subject, a.spare, a.token = a.steady, "", ""
	}
	d := &draft{token: a.token, timer: r.timer.named, expected: r.timer.expected}
	d.msg = &nats.Msg{Subject: a.subject, Header: r.header(), Data: body}
	request, err := c.check(d.msg, a.target, r)
	if err != nil {
		return nil, err
	}
	if d.timer {
		if err := c.fits(d.msg); err != nil {
			return nil, err
		}
	}
	if d.due = request.Due; request.Recurs != nil {
		d.due = request.Recurs.Planned // the jitter is another for each series
	}
	if a.spare == "" {
		return d, nil
	}
	d.spare = &nats.Msg{Subject: a.spare, Header: r.header(), Data: body}
	if !r.until.IsZero() { // a header of levels only
		d.spare.Subject = c.policy.Names.At(message.TimeToken(r.until), a.target)
		d.spare.Header.Del(message.HeaderUntil)
	}
	if _, err := c.check(d.spare, a.target, r); err != nil {
		d.spare = nil // a target such as 5s.x may follow a level, and no other time
	}
	return d, nil
}

// check returns the error that would be a dead letter.
func (c *Client) check(m *nats.Msg, target string, r options) (message.Request, error) {
	request, problem := c.policy.Parse(message.Incoming{
		Stream: c.policy.Names.IntakeStream(), Sequence: 1, At: c.store.Now(), Subject: m.Subject,
		Header: message.Header(m.Header), Data: m.Data,
	})
	switch {
	case problem != nil && problem.Code == message.BadTimer && r.timer.recurs && message.ParseKey(r.timer.key) == nil:
		return request, fmt.Errorf("%w: %s", ErrBadOption, problem.Sentence)
	case problem != nil:
		return request, refused(problem)
	case request.Target != target:
		return request, fmt.Errorf("%w: %q would be delivered to %q", ErrBadTarget, target, request.Target)
	}
	for name := range r.own {
		if _, passed := request.User[name]; !passed {
			return request, fmt.Errorf("%w: %q is reserved, and does not reach the target: take the option for it, or leave "+
				"it out", ErrBadHeaders, name)
		}
	}
	return request, nil
}

// refused is the error for a problem.
func refused(p *message.Problem) error {
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
	return fmt.Errorf("%w: %s", err, p.Sentence)
}

// retries leaves it to the client library to repeat a publish that no stream took, where there is no spare.
func (d *draft) retries() []jetstream.PublishOpt {
	if d.spare == nil {
		return nil
	}
	return []jetstream.PublishOpt{jetstream.WithRetryAttempts(0)}
}

// spared reports whether no stream took the request, and there is a spare for it. Then it is certainly not stored: the
// server says so itself, when nobody listens.
func (d *draft) spared(err error) bool {
	return d.spare != nil && errors.Is(err, jetstream.ErrNoStreamResponse)
}

// decided reports whether an acknowledgement says that the entry of a timer was stored as expected. Anybody who knows
// an inbox can have another one put there; the sequence of an entry is above what it replaces.
func (d *draft) decided(ack *jetstream.PubAck) bool {
	return !ack.Duplicate && (d.expected == nil || ack.Sequence > *d.expected)
}
