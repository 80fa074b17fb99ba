package message

import "time"

// Mode is the way in which a message is delivered to its target.
type Mode string

// The modes. In ModeAuto, a stream acknowledges the message or, if no stream listens, the message goes to core
// subscribers: see package deliver.
const (
	ModeAuto    Mode = "auto"
	ModeStream  Mode = "stream"
	ModeCore    Mode = "core"
	ModeRequest Mode = "request" // a service's reply is the acknowledgement
)

// Modes returns all modes.
func Modes() []Mode { return []Mode{ModeAuto, ModeStream, ModeCore, ModeRequest} }

// Incoming is a stored message as a lane reads it.
type Incoming struct {
	Stream      string
	Sequence    uint64
	At          time.Time // when the stream stored the message, by its leader's clock
	Subject     string
	Header      Header
	Undecodable bool // the header block cannot be decoded
	Data        []byte
	HeadersOnly bool // the body was not read, so the seal cannot be checked
	KeysCurrent bool // the keys were read after the message was stored, so an unknown key is no broker's key
}

// Request is the parsed request of a message.
type Request struct {
	ID       string
	Subject  string    // the subject of the message's first publish: see EscapeSubject
	Accepted time.Time // when the first stream stored the message
	Due      time.Time
	Target   string // empty if the target is missing or not allowed
	Mode     Mode   // empty if the client did not set it
	Expires  time.Time
	TTL      string // Nats-TTL for the target, or empty
	MsgID    string // the client's own Nats-Msg-Id
	// MaxAttempts is the value of Delay-Max-Attempts, the client's maximum number of refusals; zero if there is none.
	MaxAttempts int
	RateKey     string  // Delay-Rate-Key; empty if none
	User        Header  // the client's own headers, to be passed on
	origin      *Origin // never changed, because copies of the request share it; nil if there is no series or schedule

	Hop          int // number of publishes by brokers into lanes so far
	Attempts     int // number of refused deliveries since the last resend from the dead letters
	FirstFailure time.Time
	LastFailure  time.Time
	RetryAt      time.Time // no attempt before this time, even if the message is due; zero if it may be sent when due
	Reservation  string    // the value of Delay-Paced if a rate has reserved a send time; otherwise empty
	ResumedPause string    // the resumed pause in whose lane the message waited; empty if none

	// For people only: no decision depends on these fields.
	LastError       string // reason of the last refusal
	EarlierRefusals string // the refusals before the last one: see Refusals
	DeferralReason  string // reason of a deferral until RetryAt; otherwise empty
	AllowedRefusals int    // limit of Attempts, by settings and MaxAttempts, at the last move into a retry lane
}

// NextAttempt returns the time of the next delivery: the later of Due and RetryAt.
func (r Request) NextAttempt() time.Time {
	if r.RetryAt.After(r.Due) {
		return r.RetryAt
	}
	return r.Due
}

// WithRefusal returns the request after the target has refused another delivery.
func (r Request) WithRefusal(now, retryAt time.Time, reason string) Request {
	r.EarlierRefusals = formatRefusals(r.Refusals())
	r.Attempts++
	if r.FirstFailure.IsZero() {
		r.FirstFailure = now
	}
	r.LastFailure, r.RetryAt, r.Reservation = now, retryAt, ""
	r.LastError, r.DeferralReason = Reason(reason), ""
	return r
}

// WithDeferral returns the request of a message that the broker postpones, without a refusal, until retryAt.
func (r Request) WithDeferral(retryAt time.Time, reason string) Request {
	r.RetryAt, r.Reservation, r.DeferralReason = retryAt, "", Reason(reason)
	return r
}
