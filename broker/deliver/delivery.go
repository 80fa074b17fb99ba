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
	// PutHeader writes the headers into an empty header when the message is sent, and keeps no reference to it. Waiting
	// messages are held without them, since they take much memory. Nil means no headers.
	PutHeader func(message.Header)
	Data      []byte
	// Expires is the time after which the message must not be sent any more, by our clock. Zero means never.
	Expires time.Time
	// Size is the memory in bytes that the owner holds for the message. It counts as at least the length of the data.
	Size int
	// RateKey is the client's Delay-Rate-Key: see Limits. It may be empty.
	RateKey string
	// Paced is Result.Paced of the result that gave the message its present turn. It is empty if the message has no turn.
	Paced string
	// Repeated is true if the message was already sent in that turn and got no answer.
	Repeated bool
	// Owner is asked before the message is sent. With a nil Owner the message is always sent.
	Owner Owner
}

// Owner is the lane or program that a message comes from. It must be comparable. Any goroutine may call its methods.
type Owner interface {
	MayDeliver() bool
}

// Outcome says how a delivery ended.
type Outcome uint8

// The outcomes.
const (
	Delivered Outcome = iota
	Refused           // the target refused it, or the server refused it because nobody listens
	Unknown           // it may have arrived: deliver it again under the same id
	Stalled           // not sent: its group of targets would not take it soon; counts as no attempt
	NoRoom            // refused because the account or server has no room; counts as no attempt
	Paced             // not sent: the target's rate gives it a later turn; counts as no attempt
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
	Reason  string    // for people: why it was refused, or the likely cause of the silence
	Err     error     // if the outcome is unknown: from package acks, the connection, ErrDraining or ErrHalted
	Turn    time.Time // when stalled or paced: when the message should come again, by our clock
	Paced   string    // when paced: the name of the turn, for Message.Paced
	At      time.Time // when delivered: see the package comment, Lateness; by our clock
	Count   *Count    // of the target, for the owner to note the outcome; nil if the delivery was not sent
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
	wait time.Duration // timeout of the answer
	sent time.Time

	// proved is when the server had the message, or when an answer was ignored. It dates the delivery if a later silence
	// or timeout counts as one. Only the function that the inbox calls uses it.
	proved time.Time
	// ignored is the stream of an acknowledgement that a service may have written: see evidence. Only the function
	// that the inbox calls uses it, and the inbox makes one call at a time.
	ignored string
}
