package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
	"delaybroker/levels"
)

const (
	// tryTimeout is how long one publish of a repeated change may take.
	tryTimeout = time.Second
	// retryInterval is the time between two tries of a change.
	retryInterval = 50 * time.Millisecond
)

// Cancelable makes a message of In or At a named timer with a generated key, so that [Receipt.Cancel] can cancel it
// until it fires. After ErrUnanswered the message may be stored under a key that nobody knows. A program that has to
// publish such a message again chooses the key itself: see [Key].
func Cancelable() Option {
	return func(o *options) { o.timer.cancelable = true }
}

// Cancel cancels a message that was published with Cancelable or Key, and reports whether that was in time. True means
// that the message will never be delivered. False means that it has fired, was replaced, or was cancelled by an earlier
// call. Cancel needs no running broker. It publishes again while there is no answer, until ctx ends; after
// ErrUnanswered the outcome is unknown: call Cancel again.
func (r Receipt) Cancel(ctx context.Context) (cancelled bool, err error) {
	if r.client == nil {
		return false, fmt.Errorf("%w: no key: only a message with Cancelable or Key can be cancelled", ErrBadOption)
	}
	return r.client.tryUntilCertain(ctx, r.Key, r.target, r.Sequence, r.client.cancelEntry)
}

// CancelPending cancels the timer of the key and the target if it is pending or paused, whatever its generation, and
// reports whether that was in time. True means that what was pending will never be delivered. False means that nothing
// was pending: the timer has fired, was cancelled, or was never set.
//
// CancelPending needs no running broker. It needs the permission to read that [Client.Timer] needs. It reads and
// publishes again until the outcome is certain or ctx ends; after ErrUnanswered the outcome is unknown: call it again.
func (c *Client) CancelPending(ctx context.Context, key, target string) (cancelled bool, err error) {
	return c.tryUntilCertain(ctx, key, target, 0, c.cancelEntry)
}

// MovePending makes the timer of the key and the target due after another delay, from now, if it is pending, and
// reports whether that was in time. The timer keeps its body and its options. MovePending needs no running broker. For
// its result, permissions and errors see CancelPending. It refuses a series with ErrBadOption: to move a round, use
// [Client.Postpone].
func (c *Client) MovePending(ctx context.Context, key, target string, delay time.Duration) (moved bool, err error) {
	value := levels.FormatDuration(delay)
	return c.tryUntilCertain(ctx, key, target, 0, func(s standing, word string) (*nats.Msg, error) {
		if s.entry.Recurs != nil {
			return nil, fmt.Errorf("%w: the timer %s of %s recurs: use Postpone", ErrBadOption, key, target)
		}
		m := &nats.Msg{
			Subject: s.in.Subject, Data: s.in.Data,
			Header: nats.Header(entry.MoveHeader(s.in.Header, message.HeaderFor, value, s.in.Sequence, word)),
		}
		if _, err := c.check(m, target, options{}); err != nil {
			return nil, err
		}
		return m, c.fits(m)
	})
}

// standing is the last entry of a timer's subject.
type standing struct {
	in    message.Incoming
	entry entry.Entry
}

// pending reports whether the entry can still be cancelled.
func (s standing) pending() bool { return s.entry.Stands() }

func (c *Client) cancelEntry(s standing, word string) (*nats.Msg, error) {
	return &nats.Msg{Subject: s.in.Subject, Header: nats.Header(entry.CancelHeader(s.in.Sequence, word))}, nil
}

// tryUntilCertain publishes a change of a timer until its outcome is certain, and reports whether the change was made.
// It changes only the given generation, or whatever is pending if that is zero. Each call has a word, which stands in
// the entry that it publishes: so it recognizes its entry after the answer was lost, and after a leader that was
// deposed has refused what the next one stored.
func (c *Client) tryUntilCertain(
	ctx context.Context, key, target string, generation uint64,
	entry func(s standing, word string) (*nats.Msg, error),
) (changed bool, err error) {
	if err := c.checkName(key, target); err != nil {
		return false, err
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	word, subject := nuid.Next(), c.policy.Names.Timer(key, target)
	stands := standing{in: message.Incoming{Subject: subject, Sequence: generation}}
	var doubt error // of a publish that may be stored
	for known := generation > 0; ; known = false {
		if !known {
			stands, err = c.last(ctx, subject)
			switch {
			case err != nil:
				return false, errors.Join(doubt, err)
			case stands.entry.Word == word:
				return true, nil
			case !stands.pending(), generation > 0 && stands.in.Sequence != generation:
				return false, doubt
			}
		}
		m, err := entry(stands, word)
		if err != nil {
			return false, errors.Join(doubt, err)
		}
		expected := stands.in.Sequence
		try, cancelTry := context.WithTimeout(ctx, tryTimeout)
		_, err = c.send(try, &draft{msg: m, expected: &expected, timer: true})
		cancelTry()
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, ErrUnanswered):
			doubt = err
		case !errors.Is(err, ErrConflict):
			return false, errors.Join(doubt, err)
		case generation > 0 && doubt == nil: // no read: who may publish a timer may have no right to read
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, errors.Join(doubt, unanswered(ctx, subject))
		case <-time.After(retryInterval):
		}
	}
}

func unanswered(ctx context.Context, subject string) error {
	return fmt.Errorf("change the timer on %s: %w: %w", subject, ErrUnanswered, ctx.Err())
}

// last reads the last entry of a timer's subject. Without one it returns an entry that is not pending.
func (c *Client) last(ctx context.Context, subject string) (standing, error) {
	in, err := c.store.Last(ctx, c.policy.Names.TimersStream(), subject)
	switch {
	case errors.Is(err, ErrGone):
		return standing{entry: entry.Entry{Kind: entry.Over}}, nil
	case err != nil:
		return standing{}, failure("read the last message of "+subject, err, nil)
	}
	return standing{in: in, entry: entry.Parse(c.policy, in)}, nil
}

// checkName refuses what cannot be the key and the target of a timer.
func (c *Client) checkName(key, target string) error {
	if problem := entry.ParseKey(key); problem != nil {
		return refused(problem)
	}
	if problem := c.policy.CheckTarget(target); problem != nil {
		return refused(problem)
	}
	return nil
}
