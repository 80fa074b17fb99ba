package message

import "time"

// Mode is the way in which the target is reached.
type Mode string

// The modes. Auto decides on evidence: see package deliver.
const (
	ModeAuto    Mode = "auto"
	ModeStream  Mode = "stream"
	ModeCore    Mode = "core"
	ModeRequest Mode = "request" // the reply of a service acknowledges
)

// Modes returns all modes.
func Modes() []Mode { return []Mode{ModeAuto, ModeStream, ModeCore, ModeRequest} }

// Incoming is a stored message as a lane reads it.
type Incoming struct {
	Stream      string
	Sequence    uint64
	At          time.Time // the server's timestamp
	Subject     string
	Header      Header
	Undecodable bool // there is a header block that does not decode
	Data        []byte
	BodyLeft    bool // the body was not read, so that the seal cannot be checked
	KeysRead    bool // the keys were read since it was stored, so an unknown key is no broker's
}

// Request is the request of a message. Parse fills it as far as the message can be understood, so that a dead letter
// carries the known part. It is flat as the headers are: most fields are one header each, and a hop takes all of them
// along, but for the few that it changes.
type Request struct {
	ID       string
	Subject  string    // where it was published; escaped, at most 256 bytes
	Accepted time.Time // when the first stream stored it
	Due      time.Time
	Target   string // empty unless it passes the policy
	Mode     Mode   // empty where the client left it open
	Expires  time.Time
	TTL      string // Nats-TTL for the target, or empty
	MsgID    string // the client's own Nats-Msg-Id
	// MaxAttempts is how often the client lets it be refused at most; zero where it left that open.
	MaxAttempts int
	RateKey     string  // it counts for a rate together with all that have this key; empty for none
	User        Header  // the client's own headers, to be passed on
	origin      *Origin // never changed; nil for the zero Origin

	Hop          int // publishes into our streams so far; 0 when a client published it
	Attempts     int // deliveries refused so far
	FirstFailure time.Time
	LastFailure  time.Time
	RetryAt      time.Time // after a refusal, or by the target's rate: not before
	Paced        string    // its turn at the target's rate, named by the broker that gave it; empty if it has none
	Released     string    // the pause for which it has waited, and that was resumed; empty if none

	// For people only.
	LastError string // why it was refused last
	Deferred  string // why it waits until RetryAt although it was not refused; empty if it was
	Allowed   int    // how often it might be refused, by the settings of then
}

// When is the time of delivery: due, or later if a delivery was refused or the target has a rate.
func (r Request) When() time.Time {
	if r.RetryAt.After(r.Due) {
		return r.RetryAt
	}
	return r.Due
}

// Refused is the request after another refused delivery, to be tried again at the given time.
func (r Request) Refused(now, again time.Time, why string) Request {
	r.Attempts++
	if r.FirstFailure.IsZero() {
		r.FirstFailure = now
	}
	r.LastFailure, r.RetryAt, r.Paced = now, again, ""
	r.LastError, r.Deferred = Reason(why), ""
	return r
}

// Defer is the request of a message that was not refused, and is to be tried again at the given time.
func (r Request) Defer(again time.Time, why string) Request {
	r.RetryAt, r.Paced, r.Deferred = again, "", Reason(why)
	return r
}
