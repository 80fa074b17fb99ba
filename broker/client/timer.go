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

	"delaybroker/broker/message"
)

// Key makes a message of In or At a named timer: the key and the target together are its identity. Until it fires it
// can be replaced, moved and cancelled, with the broker up or down; Receipt.Sequence is its generation. A message for a
// key that is pending replaces it, unless IfAbsent or IfGeneration says otherwise. The key is one token of printable
// ASCII, of at most 128 bytes.
func Key(key string) Option {
	return func(o *options) { o.timer.key, o.timer.named = key, true }
}

// IfAbsent sets a timer only if its key and target have none, not even one that was over a moment ago. Otherwise the
// error is ErrConflict.
func IfAbsent() Option { return ifGeneration(0) }

// IfGeneration sets a timer only in place of this generation: a timer that is still pending is moved, or replaced, and
// will never be delivered as it was. Otherwise the error is ErrConflict.
func IfGeneration(generation uint64) Option {
	if generation == 0 {
		return func(o *options) { o.refuse("IfGeneration(0): want the sequence of a receipt") }
	}
	return ifGeneration(generation)
}

func ifGeneration(generation uint64) Option {
	return func(o *options) { o.timer.expected = &generation }
}

// naming is what options say about a timer.
type naming struct {
	key      string
	named    bool
	expected *uint64
	recurs   bool
}

// timer makes the ask of a timer: its subject has the key, and a header says when.
func (c *Client) timer(a ask, o *options) ask {
	n := o.timer
	switch table := ofTable(o.protocol); {
	case !n.named && n.expected != nil:
		o.refuse("IfAbsent and IfGeneration go with Key")
	case !n.named && table != "":
		o.refuse("%s: what recurs is a named timer, with Key", table)
	case table != "" && !n.recurs:
		o.refuse("%s goes with Every or Cron", table)
	case a.table && !(n.named && n.recurs):
		o.refuse("Schedule goes with Key, and with Every or Cron")
	case !n.named:
	case a.leg:
		o.refuse("a named timer waits in no level: In or At")
	case o.protocol.Get(nats.MsgIdHdr) != "":
		o.refuse("a named timer has no ID: its key is its identity")
	case strings.Contains(n.key, "."): // or a part of it would become a part of the target
		o.err = cmp.Or(o.err, fmt.Errorf("%w: %q: a dot splits a subject", ErrBadKey, n.key))
	default:
		if a.delay != "" {
			o.protocol.Set(message.HeaderFor, a.delay)
		} else if !a.table {
			o.protocol.Set(message.HeaderUntil, a.when.UTC().Format(time.RFC3339Nano))
		}
		o.expect(n.expected)
		return ask{target: a.target, subject: c.policy.Names.Timer(n.key, a.target)}
	}
	return a
}

// timerReserve is how much of max_payload a timer has to leave free, in bytes: a larger one is stored, and becomes a
// dead letter, since the broker stores it again when it fires.
const timerReserve = 8 << 10

// fits refuses a timer that could not fire.
func (c *Client) fits(m *nats.Msg) error {
	size, most := int64(m.Size()-len(m.Subject)), c.store.MaxPayload()-timerReserve
	if size > most {
		return fmt.Errorf("%w: %d bytes and headers of a timer: at most %d", ErrTooLarge, size, most)
	}
	return nil
}

// expect makes the server store the message only if its subject's last one has this sequence.
func (o *options) expect(generation *uint64) {
	if generation != nil {
		o.protocol.Set(message.HeaderExpected, strconv.FormatUint(*generation, 10))
	}
}

// Cancel cancels a timer if it is still of this generation. After nil it will never be delivered. ErrConflict means
// that it was too late, that another one has taken its place, or that an earlier call did it whose answer was lost:
// Timer tells which. After ErrUnanswered nothing is known: call it again.
func (c *Client) Cancel(ctx context.Context, key, target string, generation uint64) error {
	if generation == 0 {
		return fmt.Errorf("%w: cancel generation 0: want the sequence of a receipt", ErrBadOption)
	}
	return c.cancel(ctx, key, target, strconv.FormatUint(generation, 10), &generation)
}

// CancelAny cancels whatever timer the key and the target have, if any. One that is on its way at this moment is
// delivered all the same.
func (c *Client) CancelAny(ctx context.Context, key, target string) error {
	return c.cancel(ctx, key, target, anyGeneration, nil)
}

// anyGeneration is the word of a cancel that expects nothing. That of another one is the generation that it expects.
// Both are for people.
const anyGeneration = "any"

func (c *Client) cancel(ctx context.Context, key, target, word string, generation *uint64) error {
	o := options{protocol: nats.Header{message.HeaderCancel: {word}}}
	o.expect(generation)
	m := &nats.Msg{Subject: c.policy.Names.Timer(key, target), Header: o.header()}
	// A cancel is one whatever its subject; a set with the same subject would be refused if it is none of a timer.
	set := message.Header{message.HeaderFor: {"0s"}}
	_, problem := c.policy.Parse(message.Incoming{At: c.store.Now(), Subject: m.Subject, Header: set})
	switch addr := c.policy.Names.Parse(m.Subject); {
	case problem != nil:
		return refused(problem)
	case addr.Token != key || addr.Target != target:
		return fmt.Errorf("%w: %q: a dot splits a subject", ErrBadKey, key)
	}
	_, err := c.send(ctx, &draft{msg: m, expected: generation, timer: true})
	return err
}

// Move makes a timer due after another delay, from now, if it is still of this generation: In with Key and
// IfGeneration. It has its body again. With At and the same options it is moved to a time.
func (c *Client) Move(
	ctx context.Context, key, target string, generation uint64, delay time.Duration, body []byte, opts ...Option,
) (Receipt, error) {
	return c.In(ctx, target, delay, body, append(opts[:len(opts):len(opts)], Key(key), IfGeneration(generation))...)
}

// State is what a timer is doing.
type State string

// The states of a timer. Those from StateDelivered on are told for a minute, or what DELAY_TIMER_HISTORY says; then
// there is none.
const (
	StateNone      State = "none"    // never set, or over for long
	StatePending   State = "pending" // it can be moved and cancelled
	StatePaused    State = "paused"  // of a series: no round is due until it is resumed
	StateFired     State = "fired"   // on its way to the target: too late to cancel
	StateDelivered       = State(message.OutcomeDelivered)
	StateRetrying        = State(message.OutcomeRetrying) // refused, and tried again
	StateDead            = State(message.OutcomeDead)     // a dead letter
	StateCancelled State = "cancelled"
)

// A Timer is what the last message of its subject says.
type Timer struct {
	State State
	// Generation is the one that this is about. It is zero where there is none, and after a cancel of whatever was there,
	// such as CancelAny: what had fired by then arrives all the same.
	Generation uint64
	Due        time.Time // of one that is pending or fired
	Body       []byte    // likewise

	// Of a timer that recurs, and is pending, paused or on its way for the last time: the generation of its first set, and
	// the number of the round, from 1.
	Series uint64
	Round  int
}

// Timer looks at a timer. It needs the right to publish to $JS.API.STREAM.MSG.GET.*. What it says was true a moment
// ago: it tells what has become of a generation, and not what will.
func (c *Client) Timer(ctx context.Context, key, target string) (Timer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	in, err := c.store.Last(ctx, c.policy.Names.TimersStream(), c.policy.Names.Timer(key, target))
	if errors.Is(err, ErrGone) {
		return Timer{State: StateNone}, nil
	}
	if err != nil {
		return Timer{}, fmt.Errorf("look at the timer %s of %s: %w", key, target, err)
	}
	e := c.policy.ParseTimer(in)
	t := Timer{
		State: StatePending, Generation: e.Generation, Due: e.Request.Due, Body: in.Data,
		Series: e.Request.Series, Round: e.Request.Round,
	}
	switch {
	case e.Kind == message.PausedEntry:
		t.State = StatePaused
	case e.Kind == message.FiredEntry:
		t.State = StateFired
	case e.Kind == message.CancelEntry:
		t = Timer{State: StateCancelled, Generation: e.Cancelled} // its word is anybody's
	case e.Kind == message.OverEntry:
		t = Timer{State: State(e.By), Generation: e.Generation}
	case e.Problem != nil: // a bad set
		t = Timer{State: StateDead, Generation: e.Generation}
	}
	return t, nil
}
