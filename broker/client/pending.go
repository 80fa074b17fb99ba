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
	// attemptTimeout is the timeout of each publish of changeTimer.
	attemptTimeout = time.Second
	// retryInterval is the time between two attempts of changeTimer.
	retryInterval = 50 * time.Millisecond
)

// Cancelable makes a message of In or At a named timer with a generated key. Until the timer fires, [Receipt.Cancel]
// can cancel it. After ErrUnanswered the message may be stored under an unknown key. So a program that repeats a
// publish must choose the key: see [Key].
func Cancelable() Option {
	return func(o *options) { o.timer.cancelable = true }
}

// Cancel cancels a message that was published with Cancelable or Key, and reports whether the cancel was in time. True
// means that the message will never be delivered. False means that the timer has fired, was replaced, or was cancelled
// before. If the leader of the stream changes during Cancel, false may be wrong: [Client.Timer] shows the state. Cancel
// needs no running broker. Without an answer, Cancel reads the timer and publishes again, until ctx ends. After
// ErrUnanswered the outcome is unknown: call Cancel again.
func (r Receipt) Cancel(ctx context.Context) (cancelled bool, err error) {
	if r.client == nil {
		return false, fmt.Errorf("%w: no key: only a message with Cancelable or Key can be cancelled", ErrBadOption)
	}
	return r.client.changeTimer(ctx, r.Key, r.target, r.Sequence, r.client.cancelEntry)
}

// CancelPending cancels the timer of the key and the target, with any generation, if it is pending or paused. It
// reports whether the cancel was in time. True means that the pending timer will never be delivered. False means that
// no timer was pending: it has fired, was cancelled, or was never set.
//
// CancelPending needs the permission of [Client.Timer], but no running broker. It repeats the read and the publish
// until the outcome is certain or ctx ends. After ErrUnanswered the outcome is unknown: call CancelPending again.
func (c *Client) CancelPending(ctx context.Context, key, target string) (cancelled bool, err error) {
	return c.changeTimer(ctx, key, target, 0, c.cancelEntry)
}

// MovePending makes the pending timer of the key and the target due after a delay from now. It reports whether the move
// was in time. The timer keeps its body and its options. MovePending needs no running broker. For its permissions and
// errors see CancelPending. For a series it returns ErrBadOption: to move its next round, use [Client.Postpone].
func (c *Client) MovePending(ctx context.Context, key, target string, delay time.Duration) (moved bool, err error) {
	value := levels.FormatDuration(delay)
	return c.changeTimer(ctx, key, target, 0, func(e lastEntry, token string) (*nats.Msg, error) {
		if e.entry.Series != nil {
			return nil, fmt.Errorf("%w: the timer %s of %s recurs: use Postpone", ErrBadOption, key, target)
		}
		m := &nats.Msg{
			Subject: e.in.Subject, Data: e.in.Data,
			Header: nats.Header(entry.MoveHeader(e.in.Header, message.HeaderFor, value, e.in.Sequence, token)),
		}
		if _, err := c.check(m, target, options{}); err != nil {
			return nil, err
		}
		return m, c.checkSize(m)
	})
}

type lastEntry struct {
	in    message.Incoming
	entry entry.Entry
}

func (c *Client) cancelEntry(e lastEntry, token string) (*nats.Msg, error) {
	return &nats.Msg{Subject: e.in.Subject, Header: nats.Header(entry.CancelHeader(e.in.Sequence, token))}, nil
}

// changeTimer publishes a change of a timer until its outcome is certain, and reports whether the change was made. It
// changes only the given generation or, if generation is zero, any pending generation. A generation is the sequence of
// the entry that set the timer. Each call puts a random token into its entry. After a lost answer, the call finds its
// entry by the token. If generation is zero, it also finds an entry that a deposed leader of the stream refused, and
// the next leader stored.
func (c *Client) changeTimer(
	ctx context.Context, key, target string, generation uint64,
	change func(e lastEntry, token string) (*nats.Msg, error),
) (changed bool, err error) {
	if err := c.checkName(key, target); err != nil {
		return false, err
	}
	ctx, cancel := c.withTimeout(ctx)
	defer cancel()
	token, subject := nuid.Next(), c.policy.Names.Timer(key, target)
	readLast := lastEntry{in: message.Incoming{Subject: subject, Sequence: generation}}
	var unansweredErr error // the error of a publish that may be stored
	for sequenceKnown := generation > 0; ; sequenceKnown = false {
		if !sequenceKnown {
			readLast, err = c.readLast(ctx, subject)
			switch {
			case err != nil:
				return false, errors.Join(unansweredErr, err)
			case readLast.entry.Token == token:
				return true, nil
			case !readLast.entry.PendingOrPaused(), generation > 0 && readLast.in.Sequence != generation:
				return false, unansweredErr
			}
		}
		m, err := change(readLast, token)
		if err != nil {
			return false, errors.Join(unansweredErr, err)
		}
		expected := readLast.in.Sequence
		attempt, cancelAttempt := context.WithTimeout(ctx, attemptTimeout)
		_, err = c.send(attempt, &draft{msg: m, expected: &expected, timer: true})
		cancelAttempt()
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, ErrUnanswered):
			unansweredErr = err
		case !errors.Is(err, ErrConflict):
			return false, errors.Join(unansweredErr, err)
		case generation > 0 && unansweredErr == nil: // no read: the user may lack the permission
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, errors.Join(unansweredErr,
				fmt.Errorf("change the timer on %s: %w: %w", subject, ErrUnanswered, ctx.Err()))
		case <-time.After(retryInterval):
		}
	}
}

// readLast reads the last entry of a timer's subject. Without an entry, it returns an entry with the kind Over.
func (c *Client) readLast(ctx context.Context, subject string) (lastEntry, error) {
	in, err := c.store.ReadLast(ctx, c.policy.Names.TimersStream(), subject)
	switch {
	case errors.Is(err, ErrGone):
		return lastEntry{entry: entry.Entry{Kind: entry.Over}}, nil
	case err != nil:
		return lastEntry{}, failure("read the last message of "+subject, err, nil)
	}
	return lastEntry{in: in, entry: entry.Parse(c.policy, in)}, nil
}

func (c *Client) checkName(key, target string) error {
	if problem := entry.CheckKey(key); problem != nil {
		return problemError(problem)
	}
	if problem := c.policy.CheckTarget(target); problem != nil {
		return problemError(problem)
	}
	return nil
}
