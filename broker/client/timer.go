package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
	"delaybroker/levels"
)

// Key turns a message of Client.In or Client.At into a named timer. The key and the target together identify the timer.
// Until the timer fires, a client can replace, move and cancel it, even if no broker runs. Receipt.Sequence is the
// timer's generation. A message with the key and the target of a pending timer replaces the timer, unless IfAbsent or
// IfGeneration forbids that. The key is one token of printable ASCII, has at most 128 bytes, and does not begin with _.
func Key(key string) Option {
	return func(o *options) { o.timer.key, o.timer.isTimer = key, true }
}

// IfAbsent sets a timer only if no timer with its key and target exists. Otherwise the error is ErrConflict. An ended
// timer exists until its history is removed.
func IfAbsent() Option { return ifGeneration(0) }

// IfGeneration replaces a timer only if the timer has this generation and is pending. Then the old generation will
// never be delivered. Otherwise the error is ErrConflict.
func IfGeneration(generation uint64) Option {
	if generation == 0 {
		return func(o *options) { o.refuse("IfGeneration(0): want the sequence of a receipt") }
	}
	return ifGeneration(generation)
}

func ifGeneration(generation uint64) Option {
	return func(o *options) { o.timer.expected = &generation }
}

// Debounce makes further calls with the same key postpone the timer. Consecutive calls with Debounce are a run. A call
// without Debounce, a cancel, a move, or the firing ends the run. The timer fires when no call has come for the delay
// of In, and at the latest when maxWait has passed since the first call of the run. The body of the latest call is
// delivered. MaxWait must be at least the delay. [Receipt] and [Timer] ignore maxWait, so their Due may be later than
// the delivery. Debounce needs Key and In.
func Debounce(maxWait time.Duration) Option {
	return set(message.HeaderMaxWait, levels.FormatDuration(maxWait))
}

func (o *options) debounced() bool { return o.first(message.HeaderMaxWait) != "" }

type timerOptions struct {
	key        string
	isTimer    bool
	cancelable bool    // set by Cancelable: the client generates a key if the caller gave none
	expected   *uint64 // the required sequence of the subject's last message; nil for an unconditional publish
}

// timerAddress returns the address of a named timer, and sets the header with its delay or its due time. For any other
// message, it returns a.
func (c *Client) timerAddress(a address, o *options) address {
	if o.timer.cancelable && !o.timer.isTimer {
		o.timer.generateKey()
	}
	n, recurs := o.timer, o.recurs()
	switch seriesHeader := o.first(entry.SeriesHeaders...); {
	case !n.isTimer && n.expected != nil:
		o.refuse("IfAbsent and IfGeneration need Key")
	case !n.isTimer && seriesHeader != "":
		o.refuse("%s needs Key: only a named timer recurs", seriesHeader)
	case o.debounced() && (!n.isTimer || a.delay == ""):
		o.refuse("Debounce needs Key and In: each call postpones the timer by the delay")
	case seriesHeader != "" && !recurs:
		o.refuse("%s needs Every or Cron", seriesHeader)
	case recurs && n.cancelable:
		o.refuse("Cancelable is not for a recurring timer, whose generation changes: use Key, and end it with CancelAny")
	case a.schedule && !(n.isTimer && recurs):
		o.refuse("Schedule needs Key, and Every or Cron")
	case !n.isTimer:
	case a.callerLevel:
		o.refuse("Level is not for a named timer: use In or At")
	case o.brokerHeader.Get(nats.MsgIdHdr) != "":
		o.refuse("ID is not for a named timer, whose key is its identity")
	case strings.Contains(n.key, "."): // the part after the dot would become part of the target
		o.err = cmp.Or(o.err, fmt.Errorf("%w: %q: want no dot", ErrBadKey, n.key))
	default:
		if a.delay != "" {
			o.brokerHeader.Set(message.HeaderFor, a.delay)
		} else if !a.schedule {
			o.brokerHeader.Set(message.HeaderUntil, formatTime(a.due))
		}
		o.expect(n.expected)
		return address{target: a.target, subject: c.policy.Names.Timer(n.key, a.target)}
	}
	return a
}

// generateKey sets a unique key, with the expectation that its subject has no entry. So the broker need not read
// earlier entries.
func (n *timerOptions) generateKey() {
	if n.expected == nil {
		n.expected = new(uint64)
	}
	n.key, n.isTimer = nuid.Next(), true
}

// timerReserve is the minimum difference between max_payload and the size of a timer, in bytes. When a timer fires, the
// broker stores it again, with more headers. A larger timer would be stored and then become a dead letter.
const timerReserve = 8 << 10

// checkSize returns ErrTooLarge if a timer is too large to fire.
func (c *Client) checkSize(m *nats.Msg) error {
	size, limit := int64(m.Size()-len(m.Subject)), c.store.MaxPayload()-timerReserve
	if size > limit {
		return fmt.Errorf("%w: body and headers of the timer have %d bytes: at most %d", ErrTooLarge, size, limit)
	}
	return nil
}

// expect makes the server store the message only if the last message of its subject has this sequence.
func (o *options) expect(generation *uint64) {
	if generation != nil {
		o.brokerHeader.Set(message.HeaderExpected, strconv.FormatUint(*generation, 10))
	}
}

// Cancel cancels a timer if it still has this generation. If Cancel returns nil, the generation will never be
// delivered. ErrConflict has three possible causes: the timer has fired, another client has replaced or cancelled it,
// or an earlier call with a lost answer has cancelled it. Timer returns the state. After ErrUnanswered the outcome is
// unknown: call Cancel again. Cancel is one publish, and needs no running broker. See also [Client.CancelPending] and
// [Receipt.Cancel].
func (c *Client) Cancel(ctx context.Context, key, target string, generation uint64) error {
	if generation == 0 {
		return fmt.Errorf("%w: cancel generation 0: want the sequence of a receipt", ErrBadOption)
	}
	return c.cancel(ctx, key, target, strconv.FormatUint(generation, 10), &generation)
}

// CancelAny cancels the timer of the key and the target, if there is one, with any generation. A timer that has already
// fired is still delivered. CancelAny is one publish, and needs no running broker. It does not report whether there was
// a timer: see [Client.CancelPending].
func (c *Client) CancelAny(ctx context.Context, key, target string) error {
	return c.cancel(ctx, key, target, anyGeneration, nil)
}

// anyGeneration is the value of Delay-Cancel in a cancel by CancelAny. In a cancel by Client.Cancel, the value is the
// expected generation. No program needs these values.
const anyGeneration = "any"

func (c *Client) cancel(ctx context.Context, key, target, word string, generation *uint64) error {
	o := options{brokerHeader: nats.Header{message.HeaderCancel: {word}}}
	o.expect(generation)
	m := &nats.Msg{Subject: c.policy.Names.Timer(key, target), Header: o.header()}
	// Of a cancel, the broker's parser checks neither the key nor the target. So the client parses a set with both.
	set := message.Header{message.HeaderFor: {"0s"}}
	_, problem := entry.ParseSet(c.policy, message.Incoming{At: c.store.Now(), Subject: m.Subject, Header: set})
	switch addr := c.policy.Names.Parse(m.Subject); {
	case problem != nil:
		return problemError(problem)
	case addr.Token != key || addr.Target != target:
		return fmt.Errorf("%w: %q: want no dot", ErrBadKey, key)
	}
	_, err := c.send(ctx, &draft{msg: m, timer: timerOptions{isTimer: true, expected: generation}})
	return err
}

// Move makes a timer due after a delay from now, if the timer still has this generation. Move calls In with Key and
// IfGeneration, so the caller must pass the body again. To move a timer to a time, call At with these options.
// [Client.MovePending] and [Client.Postpone] keep the body.
func (c *Client) Move(
	ctx context.Context, key, target string, generation uint64, delay time.Duration, body []byte, opts ...Option,
) (Receipt, error) {
	return c.In(ctx, target, delay, body, append(opts[:len(opts):len(opts)], Key(key), IfGeneration(generation))...)
}

// State is the state of a timer.
type State string

// The states of a timer. An ended timer keeps its state for at least DELAY_TIMER_HISTORY, a minute by default. After
// the broker has removed the timer's message, the state is StateNone.
const (
	StateNone      State = "none"    // the timer was never set, or its history is removed
	StatePending   State = "pending" // the timer can be moved and cancelled
	StatePaused    State = "paused"  // the series is paused: no round is due until Resume
	StateFired     State = "fired"   // the timer is not yet delivered, and can no longer be cancelled
	StateDelivered       = State(entry.Delivered)
	StateRetrying        = State(entry.Retrying) // the target refused the message; the broker tries again
	StateDead            = State(entry.Dead)     // the message is a dead letter
	StateCancelled State = "cancelled"
)

// A Timer is the state of a named timer, from the last message of its subject.
type Timer struct {
	State State
	// Generation is the generation that State describes. It is zero without a timer, and after an unconditional cancel
	// such as CancelAny. If the timer fired before that cancel, the firing is still delivered.
	Generation uint64
	Due        time.Time // set if the timer is pending or fired
	Body       []byte    // set if the timer is pending, paused or fired

	// Series and Round are set for a recurring timer that is pending, paused, or fired for the last time. Series is the
	// generation of its set. Round counts from 1.
	Series uint64
	Round  int
}

// Timer reads the state of a timer. The client needs permission to publish to $JS.API.STREAM.MSG.GET.*. The state may
// have changed when Timer returns.
func (c *Client) Timer(ctx context.Context, key, target string) (Timer, error) {
	if err := c.checkName(key, target); err != nil {
		return Timer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	subject := c.policy.Names.Timer(key, target)
	in, err := c.store.Reader(c.policy.Names.TimersStream()).Last(ctx, subject)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return Timer{State: StateNone}, nil
	case err == nil && in.Subject != subject:
		err = fmt.Errorf("%w: got a message of %q", jsapi.ErrWrongAnswer, in.Subject)
	}
	if err != nil {
		return Timer{}, failure("read the last message of "+subject, err, nil)
	}
	e := entry.Parse(c.policy, in)
	origin := e.Origin()
	t := Timer{
		State: StatePending, Generation: e.Generation, Due: e.Due, Body: in.Data,
		Series: origin.Series, Round: origin.Round,
	}
	switch {
	case e.Kind == entry.Paused:
		t.State = StatePaused
	case e.Kind == entry.Fired:
		t.State = StateFired
	case e.Kind == entry.Cancel:
		t = Timer{State: StateCancelled, Generation: e.Cancelled}
	case e.Kind == entry.Over:
		t = Timer{State: State(e.Outcome), Generation: e.Generation}
	case e.Problem != nil: // an invalid set
		t = Timer{State: StateDead, Generation: e.Generation}
	}
	return t, nil
}
