package deliver

import (
	"errors"
	"time"

	"delaybroker/broker/message"
)

// ErrDraining is in the result of a delivery that was not sent because the deliverer or the owner stops.
var ErrDraining = errors.New("stopping; not sent")

// ErrHalted is in the result of a delivery that was not sent because deliveries to its target are halted: see
// [Deliverer.Halt].
var ErrHalted = errors.New("halted; not sent")

// Message is a message to deliver.
type Message struct {
	Target string
	Mode   message.Mode // empty: as configured
	// Header makes the headers when the message is sent. Messages that wait do so without them: they take much memory.
	// Nil is for none.
	Header func() message.Header
	Data   []byte
	// Expires is the time after which the message must not be sent any more, by our clock. Zero means never.
	Expires time.Time
	// Size is how many bytes of memory the owner holds for the message. It counts as at least the length of the data.
	Size int
	// RateKey is the client's Delay-Rate-Key: see Limits. It may be empty.
	RateKey string
	// Paced is the Paced of the result that gave the message its present turn. Empty means that it has no turn.
	Paced string
	// Repeated is set if the message came in that turn already and was not answered.
	Repeated bool
	// Owner is asked before the message is sent. With a nil Owner the message is always sent.
	Owner Owner
}

// Owner is the lane or program that a message comes from. It must be comparable, and any goroutine may ask it.
type Owner interface {
	MayDeliver() bool
}

// Outcome says how a delivery ended.
type Outcome uint8

// The outcomes.
const (
	Delivered Outcome = iota
	Refused           // the target refused it, or the server did in its place
	Unknown           // it may have arrived or not: repeat it under the same id
	Stalled           // not sent: its group of targets would not take it soon; no attempt
	NoRoom            // refused because the account or server has no room; no attempt
	Paced             // not sent: the target's rate gives it a later turn; no attempt
	Expired           // not sent: it expired while it waited
)

// outcomeNames are the names of the outcomes in metrics.
var outcomeNames = [...]string{"delivered", "refused", "unknown", "stalled", "no_room", "paced", "expired"}

// Outcomes is the number of outcomes, from Delivered on.
const Outcomes = len(outcomeNames)

// String returns the name of the outcome, one of a closed set.
func (o Outcome) String() string { return outcomeNames[o] }

// Result is an outcome with its reason.
type Result struct {
	Outcome Outcome
	Code    int       // of a refusal: see jsapi.Ack
	Reason  string    // for people: why it was refused, or what the silence of the target may mean
	Err     error     // of silence or an unknown outcome: from package acks, the connection, ErrDraining or ErrHalted
	Turn    time.Time // when stalled or paced: when the message should come again, by our clock
	Paced   string    // when paced: the name of the turn, for Message.Paced
	At      time.Time // when delivered: see the package comment, Lateness; by our clock
	Count   *Count    // of the target, where the owner notes how the delivery ended; nil when it was not sent
}

// delivery is one message on its way to its target.
type delivery struct {
	Message
	done func(Result) // called once

	// Guarded by the deliverer's lock. Target and group do not change.
	target *target
	group  *group // the first group to pass
	at     *group // where it waits; nil once it has passed all groups

	// Set before the message is published.
	mode message.Mode
	wait time.Duration // how long an answer is awaited
	sent time.Time

	// proved is when the evidence came on which a later silence or timeout may be judged: the server had the message, or
	// an answer was ignored. Only the function that the inbox calls uses it.
	proved time.Time
	// ignored is the stream of an acknowledgement that a service may have written: see evidence. Only the function
	// that the inbox calls uses it, and the inbox makes one call at a time.
	ignored string
}
