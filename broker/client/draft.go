package client

import (
	"cmp"
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
	fallback      string // an equivalent subject of the intake, or empty
	stableSubject string // for a message with an ID, if it differs: the subject depends only on the delay
	guessedLevel  string // the level in subject; empty if the level was not guessed
	delay         string // the delay as a header value; empty unless from delayAddress
	due           time.Time
	callerLevel   bool // the caller named the level
	schedule      bool // the timetable of a series determines the due time
	err           error
}

// delayAddress returns the address for a delay. If the client guesses a level with that delay, the subject is the
// level's subject, which saves the hop through the intake.
func (c *Client) delayAddress(target string, delay time.Duration) address {
	names, text := c.policy.Names, levels.FormatDuration(delay)
	a := address{target: target, subject: names.In(text, target), delay: text}
	a.stableSubject = a.subject
	rounded, err := levels.ParseDuration(text)
	if err != nil {
		return a // Client.check refuses the subject
	}
	if token, ok := plainNames()[rounded]; ok {
		a.stableSubject = names.Level(token, target)
	}
	if level, ok := c.levels.level(rounded, c.store.Now()); ok {
		a.subject, a.fallback, a.guessedLevel = names.Level(level, target), a.subject, level
	}
	return a
}

// timeAddress returns the address for a time. A level with Delay-Until would save a hop, but the message may become a
// dead letter: see the package comment.
func (c *Client) timeAddress(target string, due time.Time) address {
	a := address{target: target, subject: c.policy.Names.At(message.TimeToken(due), target), due: due}
	if due.IsZero() {
		a.err = fmt.Errorf("%w: the time is zero: set it", ErrBadTime)
	}
	return a
}

func (c *Client) levelAddress(target, level string) address {
	names := c.policy.Names
	a := address{target: target, subject: names.Level(level, target), callerLevel: true}
	a.fallback = names.In(level, target)
	if strings.Contains(level, ".") { // the part after the dot would become part of the target
		a.err = fmt.Errorf("%w: the level %q: want no dot", ErrBadTime, level)
	}
	return a
}

// A draft is a checked request.
type draft struct {
	msg          *nats.Msg
	fallback     *nats.Msg // the request for the intake if no stream listens on the subject of msg, or nil
	guessedLevel string    // see address
	due          time.Time // estimated by the client's clock

	timer  timerOptions // without a key for a cancel and for MovePending
	target string       // the target; empty for a cancel and for MovePending
}

func (c *Client) draft(a address, body []byte, opts []Option) (*draft, error) {
	if a.err != nil {
		return nil, a.err
	}
	settings := options{brokerHeader: nats.Header{}}
	for _, o := range opts {
		o(&settings)
	}
	if !a.callerLevel && !settings.until.IsZero() {
		settings.refuse("Until is only for Level")
	}
	a = c.timerAddress(a, &settings)
	if settings.err != nil {
		return nil, settings.err
	}
	if !settings.timer.isTimer && settings.brokerHeader.Get(nats.MsgIdHdr) != "" {
		a.subject, a.fallback, a.guessedLevel = cmp.Or(a.stableSubject, a.subject), "", ""
	}
	d := &draft{guessedLevel: a.guessedLevel, timer: settings.timer, target: a.target}
	d.msg = &nats.Msg{Subject: a.subject, Header: settings.header(), Data: body}
	request, err := c.check(d.msg, a.target, settings)
	if err != nil {
		return nil, err
	}
	if d.timer.isTimer {
		if err := c.checkSize(d.msg); err != nil {
			return nil, err
		}
	}
	limit := settings.brokerHeader.Get(message.HeaderSpread)
	if d.due = request.Due; request.Series != nil {
		d.due = request.Series.Planned // without jitter, which depends on the sequence of the message
	} else if limit != "" && !d.timer.isTimer && request.MsgID == "" {
		part, _ := levels.ParseDuration(limit) // checked above
		d.due = d.due.Add(-message.PartOf(part, request.ID))
	}
	if a.fallback == "" {
		return d, nil
	}
	d.fallback = &nats.Msg{Subject: a.fallback, Header: settings.header(), Data: body}
	if !settings.until.IsZero() { // the intake does not allow the header Delay-Until
		d.fallback.Subject = c.policy.Names.At(message.TimeToken(settings.until), a.target)
		d.fallback.Header.Del(message.HeaderUntil)
	}
	if _, err := c.check(d.fallback, a.target, settings); err != nil {
		d.fallback = nil // the intake refuses a target that begins with a duration, such as 5s.x
	}
	return d, nil
}

// check parses a request as the broker does. It returns an error if the request would become a dead letter, reach
// another target, or lose a header of the user.
func (c *Client) check(m *nats.Msg, target string, o options) (entry.Pending, error) {
	request, problem := entry.ParseAny(c.policy, message.Incoming{
		Stream: c.policy.Names.IntakeStream(), Sequence: 1, At: c.store.Now(), Subject: m.Subject,
		Header: message.Header(m.Header), Data: m.Data,
	})
	switch {
	case problem != nil && problem.Code == message.BadTimer && (o.recurs() || o.debounced()) &&
		entry.CheckKey(o.timer.key) == nil:
		return request, fmt.Errorf("%w: %s", ErrBadOption, problem.Sentence)
	case problem != nil:
		return request, problemError(problem)
	case request.Target != target:
		return request, fmt.Errorf("%w: %q would be delivered to %q", ErrBadTarget, target, request.Target)
	}
	for name := range o.userHeader {
		if _, passed := request.User[name]; !passed {
			return request, fmt.Errorf("%w: %q is reserved and would not reach the target: use the option for it, or "+
				"remove the header", ErrBadHeaders, name)
		}
	}
	return request, nil
}

// problemErrors has the error for a problem. All other problems are ErrBadOption.
var problemErrors = map[message.Code]error{
	message.BadTarget: ErrBadTarget, message.BadTime: ErrBadTime, message.UntilEarly: ErrBadTime,
	message.TooFar: ErrTooFar, message.BadHeaders: ErrBadHeaders, message.BadTimer: ErrBadKey,
}

func problemError(p *message.Problem) error {
	return fmt.Errorf("%w: %s", cmp.Or(problemErrors[p.Code], ErrBadOption), fieldNames.Replace(p.Sentence))
}

// fieldNames replaces the names of the broker's settings, in the text of a problem, by fields of Config.
var fieldNames = strings.NewReplacer(
	"DELAY_MAX_DELAY", "client.Config.MaxDelay", "DELAY_ATTEMPTS", "client.Config.Attempts",
	"DELAY_TARGETS", "client.Config.Targets",
)

// retries returns the retry options of a publish. If no stream listens on the subject, nats.go retries the publish,
// which would delay the fallback.
func (d *draft) retries() []jetstream.PublishOpt {
	if d.fallback == nil {
		return nil
	}
	return []jetstream.PublishOpt{jetstream.WithRetryAttempts(0)}
}

// fallsBack reports whether the request has a fallback, and the server reports that no stream listens on its subject.
// Then the request is not stored.
func (d *draft) fallsBack(err error) bool {
	return d.fallback != nil && errors.Is(err, jetstream.ErrNoStreamResponse)
}

// answeredBy reports whether an acknowledgement can be the answer to this draft of a timer. A client that knows the
// reply subject can forge an answer. The stored message has a higher sequence than the message that it replaces, and is
// no duplicate, since a timer's message has no ID.
func (d *draft) answeredBy(ack *jetstream.PubAck) bool {
	return !ack.Duplicate && (d.timer.expected == nil || ack.Sequence > *d.timer.expected)
}
