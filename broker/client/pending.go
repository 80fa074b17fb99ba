package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/entry"
	"delaybroker/levels"
)

// Cancelable makes a message of In or At a named timer with a generated key. Until the timer fires, [Receipt.Cancel]
// can cancel it. After ErrUnanswered the message may be stored under an unknown key. So a program that repeats a
// publish must choose the key: see [Key].
func Cancelable() Option {
	return func(o *options) { o.timer.cancelable = true }
}

// Cancel cancels a message that was published with Cancelable or Key, and reports whether the cancel was in time. True
// means that the message will never be delivered. False means that the timer has fired, was replaced, or was cancelled
// before. Cancel needs no running broker. If the cancel is not acknowledged, Cancel needs the permissions of
// [Client.CancelPending]: it reads the timer and publishes again, until the outcome is certain or ctx ends. After
// ErrUnanswered the outcome is unknown: call Cancel again.
func (r Receipt) Cancel(ctx context.Context) (cancelled bool, err error) {
	if r.client == nil {
		return false, fmt.Errorf("%w: no key: only a message with Cancelable or Key can be cancelled", ErrBadOption)
	}
	return r.client.changeTimer(ctx, change.Change{
		Call: timer.Call{Verb: timer.Cancel, Generation: r.Sequence}, Key: r.Key, Target: r.target,
	})
}

// CancelPending cancels the timer of the key and the target, with any generation, if it is pending or paused. It
// reports whether the cancel was in time. True means that the pending timer will never be delivered. False means that
// no timer was pending: it has fired, was cancelled, or was never set.
//
// CancelPending needs no running broker. It needs the permission of [Client.Timer], and permission to publish to
// $JS.API.STREAM.INFO.<the stream of timers>, because a deposed leader may not have the timer. It repeats the read and
// the publish until the outcome is certain or ctx ends. After ErrUnanswered the outcome is unknown: call CancelPending
// again.
func (c *Client) CancelPending(ctx context.Context, key, target string) (cancelled bool, err error) {
	return c.changeTimer(ctx, change.Change{Call: timer.Call{Verb: timer.Cancel}, Key: key, Target: target})
}

// MovePending makes the pending timer of the key and the target due after a delay from now. It reports whether the move
// was in time. The timer keeps its body and its options. MovePending needs no running broker. For its permissions and
// errors see CancelPending. For a series it returns ErrBadOption: to move its next round, use [Client.Postpone].
func (c *Client) MovePending(ctx context.Context, key, target string, delay time.Duration) (moved bool, err error) {
	return c.changeTimer(ctx, change.Change{
		Call: timer.Call{Verb: timer.Move}, Key: key, Target: target, For: levels.FormatDuration(delay),
	})
}

// changeTimer changes a timer as a broker does (package change), and reports whether this call has made the change.
func (c *Client) changeTimer(ctx context.Context, w change.Change) (changed bool, err error) {
	if err := c.checkName(w.Key, w.Target); err != nil {
		return false, err
	}
	ctx, cancel := c.withTimeout(ctx)
	defer cancel()
	var refused, inDoubt error // the errors of publishes: a refusal, and the last one that may be stored
	publish := func(ctx context.Context, m *nats.Msg) jsapi.Reply {
		r, err := c.sendEntry(ctx, m)
		switch {
		case err == nil:
			return jsapi.Reply{Ack: jsapi.Ack{Stream: r.Stream, Sequence: r.Sequence}}
		case errors.Is(err, ErrConflict): // if the leader is deposed, its successor may have stored the publish
			inDoubt = fmt.Errorf("%w: %v", ErrUnanswered, err)
			return jsapi.Reply{Ack: jsapi.Ack{Code: jsapi.CodeWrongLast, Description: err.Error()}}
		case errors.Is(err, ErrUnanswered):
			inDoubt = err
		default:
			refused = err
			cancel()
		}
		return jsapi.Reply{Err: err}
	}
	timers := change.Timers{Policy: c.policy, Reader: c.store.Reader(c.policy.Names.TimersStream()), Publish: publish}
	answer, err := timers.Do(ctx, w)
	subject := c.policy.Names.Timer(w.Key, w.Target)
	switch refusal, ok := errors.AsType[*change.Error](err); {
	case refused != nil:
		return false, errors.Join(inDoubt, refused)
	case errors.Is(err, change.ErrSecret):
		return false, fmt.Errorf("%w: the timer %s of %s recurs: use Postpone", ErrBadOption, w.Key, w.Target)
	case ok && refusal.Problem != nil:
		return false, problemError(refusal.Problem)
	case ok:
		return false, refusalError("change the timer on "+subject, refusal.Code, refusal.Sentence)
	case err != nil:
		return false, failure("change the timer on "+subject, err, nil)
	case answer.Outcome == timer.Unknown && (answer.InDoubt || w.Generation > 0):
		return false, errors.Join(inDoubt,
			fmt.Errorf("change the timer on %s: %w: %s", subject, ErrUnanswered, answer.Why))
	}
	return answer.Changed, nil
}

// sendEntry publishes an entry of a timer.
func (c *Client) sendEntry(ctx context.Context, m *nats.Msg) (Receipt, error) {
	if err := c.checkSize(m); err != nil {
		return Receipt{}, err
	}
	return c.send(ctx, &draft{msg: m, timer: timerOptions{isTimer: true}})
}

func (c *Client) checkName(key, target string) error {
	if problem := cmp.Or(entry.CheckKey(key), c.policy.CheckTarget(target)); problem != nil {
		return problemError(problem)
	}
	return nil
}
