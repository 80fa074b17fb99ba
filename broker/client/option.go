package client

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
	"delaybroker/levels"
)

// Mode is the way in which a target is reached: see the package's constants, and PROTOCOL.md, "Delivery".
type Mode = message.Mode

// The modes. Without one the broker's settings decide.
const (
	ModeAuto    = message.ModeAuto    // a stream or, where none listens, core subscribers
	ModeStream  = message.ModeStream  // a stream acknowledges
	ModeCore    = message.ModeCore    // the server has taken it and somebody subscribes
	ModeRequest = message.ModeRequest // a service replies
)

// Forever is the TTL of a message that its target's stream keeps.
const Forever = time.Duration(math.MaxInt64)

// An Option says more about one message.
type Option func(*options)

// options are what all options of a message have said.
type options struct {
	protocol nats.Header // what the broker reads
	own      nats.Header // what the target gets
	until    time.Time
	timer    naming
	err      error
}

// header is the header of a request. The two have no name in common that would count: see Client.check.
func (o *options) header() nats.Header {
	h := make(nats.Header, len(o.protocol)+len(o.own))
	maps.Copy(h, o.own)
	maps.Copy(h, o.protocol)
	return h
}

func (o *options) refuse(format string, args ...any) {
	if o.err == nil {
		o.err = fmt.Errorf("%w: "+format, append([]any{ErrBadOption}, args...)...)
	}
}

// ID makes a publish idempotent: within the broker's DELAY_DEDUP_WINDOW, 30 s by default, the stream that stored a
// message stores no other one with this id, and says Receipt.Duplicate. So a publish that failed with ErrUnanswered can
// be repeated, with the same delay or level. It goes to the same stream, and to no other one when that has no leader:
// then the error is ErrNoBroker. Make the id unique for each target, as in "order-42/expire": a stream takes the
// messages of many.
func ID(id string) Option {
	return func(o *options) {
		if id == "" || strings.TrimSpace(id) != id || strings.ContainsFunc(id, unicode.IsControl) {
			o.refuse("the id %q: want some text without control characters, or spaces around it", id)
		}
		o.protocol.Set(nats.MsgIdHdr, id)
	}
}

// Expires says that the message is of no use when it would be delivered later than this after it is due. Then it
// becomes a dead letter.
func Expires(after time.Duration) Option {
	return func(o *options) {
		if after < 0 {
			o.refuse("Expires %s: it could never be delivered", after)
		}
		o.protocol.Set(message.HeaderExpires, levels.FormatDuration(after))
	}
}

// ExpiresAt is Expires with a time.
func ExpiresAt(t time.Time) Option {
	return func(o *options) {
		o.protocol.Set(message.HeaderExpires, t.UTC().Format(time.RFC3339Nano))
	}
}

// Deliver says how the target is reached, and so what counts as delivered.
func Deliver(m Mode) Option {
	return func(o *options) {
		if m == "" {
			o.refuse("Deliver: want one of the modes")
		}
		o.protocol.Set(message.HeaderDeliver, string(m))
	}
}

// MaxAttempts makes the message a dead letter when it was refused so often. It can only lower what the broker's
// settings say.
func MaxAttempts(n int) Option {
	return func(o *options) { o.protocol.Set(message.HeaderMaxAttempts, strconv.Itoa(n)) }
}

// TTL is how long the target's stream keeps the message, if it allows that: whole seconds, rounded up, or Forever.
func TTL(keep time.Duration) Option {
	return func(o *options) {
		ttl := "never"
		if keep != Forever {
			ttl = levels.FormatDuration(keep)
		}
		o.protocol.Set(message.HeaderTTL, ttl)
	}
}

// Until is the exact time of delivery, to the nanosecond, of a message that is published by Level: the level is the
// first leg of its way, and ends before. If it is stored so late that the level ends after that time, it becomes a dead
// letter.
func Until(t time.Time) Option {
	return func(o *options) {
		if t.IsZero() {
			o.refuse("Until: the zero time, which somebody forgot to set")
		}
		o.until = t
		o.protocol.Set(message.HeaderUntil, t.UTC().Format(time.RFC3339Nano))
	}
}

// Header is a header of your own, which the target gets. It may be given several times.
func Header(name, value string) Option { return Headers(nats.Header{name: {value}}) }

// Headers are headers of your own, which the target gets. They are copied. Names that NATS or the broker reserve are
// refused, since they would not arrive.
func Headers(h nats.Header) Option {
	return func(o *options) {
		if o.own == nil {
			o.own = make(nats.Header, len(h))
		}
		for name, values := range h {
			o.own[name] = append(o.own[name], values...)
		}
	}
}
