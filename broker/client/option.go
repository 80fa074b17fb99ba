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

// Mode is the way in which a broker delivers to a target. See the section "Delivery" in PROTOCOL.md of package message.
type Mode = message.Mode

// The modes. If no mode is set, the broker's settings decide.
const (
	ModeAuto    = message.ModeAuto    // to a stream or, if no stream listens, to core subscribers
	ModeStream  = message.ModeStream  // delivered when a stream acknowledges the message
	ModeCore    = message.ModeCore    // delivered when the server has accepted the message and there is a subscriber
	ModeRequest = message.ModeRequest // delivered when a service replies
)

// Forever is the TTL of a message that never expires in its target's stream.
const Forever = time.Duration(math.MaxInt64)

// An Option sets a property of one message.
type Option func(*options)

type options struct {
	brokerHeader nats.Header // headers for the broker
	userHeader   nats.Header // headers for the target
	until        time.Time
	timer        timerOptions
	err          error
}

// header returns the header of a request. Client.check later refuses a user's header with a reserved name.
func (o *options) header() nats.Header {
	h := make(nats.Header, len(o.brokerHeader)+len(o.userHeader))
	maps.Copy(h, o.userHeader)
	maps.Copy(h, o.brokerHeader)
	return h
}

// first returns the first of these headers that an option has set, or "".
func (o *options) first(names ...string) string {
	return message.Block{Delay: o.brokerHeader}.FirstHeader(names...)
}

func (o *options) refuse(format string, args ...any) {
	if o.err == nil {
		o.err = fmt.Errorf("%w: "+format, append([]any{ErrBadOption}, args...)...)
	}
}

// set returns an option that sets a header for the broker.
func set(header, value string) Option {
	return func(o *options) { o.brokerHeader.Set(header, value) }
}

func setWait(name, header string, wait time.Duration) Option {
	return func(o *options) {
		if wait < 0 {
			o.refuse("%s %s: want no negative duration", name, wait)
		}
		o.brokerHeader.Set(header, levels.FormatDuration(wait))
	}
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// ID makes a publish idempotent. Within the broker's DELAY_DEDUP_WINDOW, 30 s by default, the stream stores no second
// message with this id, and the second publish returns Receipt.Duplicate. So a program can repeat a publish after
// ErrUnanswered, with the same delay or level. The repeated message goes to the same stream. If that stream has no
// leader, the error is ErrNoBroker. The id must be unique across targets, as in "order-42/expire": a stream has
// messages for many targets.
func ID(id string) Option {
	return func(o *options) {
		if id == "" || strings.TrimSpace(id) != id || strings.ContainsFunc(id, unicode.IsControl) {
			o.refuse("the id %q: want text without control characters and without spaces around it", id)
		}
		o.brokerHeader.Set(nats.MsgIdHdr, id)
	}
}

// Spread makes the message due later by a part of limit, and never earlier. The [ID] of the message, or the [Key] and
// the target of a timer, determine the part. So of many messages for one moment, few are due at each moment of the
// following time. Without an ID and a Key, Receipt.Due lacks this part: [Client.Lookup] returns the exact time.
func Spread(limit time.Duration) Option { return setWait("Spread", message.HeaderSpread, limit) }

// Expires makes the message a dead letter if it is not delivered within wait after its due time.
func Expires(wait time.Duration) Option { return setWait("Expires", message.HeaderExpires, wait) }

// ExpiresAt makes the message a dead letter if it is not delivered by t.
func ExpiresAt(t time.Time) Option { return set(message.HeaderExpires, formatTime(t)) }

// Deliver sets the mode of delivery.
func Deliver(m Mode) Option {
	return func(o *options) {
		if m == "" {
			o.refuse("Deliver: want one of the modes")
		}
		o.brokerHeader.Set(message.HeaderDeliver, string(m))
	}
}

// MaxAttempts makes the message a dead letter after n refusals. N must be at least 1 and at most Config.Attempts.
func MaxAttempts(n int) Option { return set(message.HeaderMaxAttempts, strconv.Itoa(n)) }

// RateKey sets the key by which the broker's DELAY_RATE_BY_KEY limits the message. All messages with the same key share
// one rate, even for different targets: a key for each tenant limits each tenant.
func RateKey(key string) Option { return set(message.HeaderRateKey, key) }

// TTL sets the time for which the target's stream keeps the message. A stream that does not allow a TTL for each
// message refuses the message. TTL rounds the time up to the next second, except Forever.
func TTL(keep time.Duration) Option {
	if keep == Forever {
		return set(message.HeaderTTL, "never")
	}
	return set(message.HeaderTTL, levels.FormatDuration(keep))
}

// Until sets the due time of a message that Level publishes, exact to the nanosecond. The message first waits in the
// level. If the delay of the level ends after t, the call fails with ErrBadTime. If only the server's clock shows that,
// the message becomes a dead letter.
func Until(t time.Time) Option {
	return func(o *options) {
		if t.IsZero() {
			o.refuse("Until: want a time other than zero")
		}
		o.until = t
		o.brokerHeader.Set(message.HeaderUntil, formatTime(t))
	}
}

// Header adds a header for the target. Several Header options may be given.
func Header(name, value string) Option { return Headers(nats.Header{name: {value}}) }

// Headers adds headers for the target. It copies h when the message is published. A name that NATS or the broker
// reserves is an error, since the header would not reach the target.
func Headers(h nats.Header) Option {
	return func(o *options) {
		if o.userHeader == nil {
			o.userHeader = make(nats.Header, len(h))
		}
		for name, values := range h {
			o.userHeader[name] = append(o.userHeader[name], values...)
		}
	}
}
