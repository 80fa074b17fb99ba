package deliver

import (
	"errors"
	"time"

	"delaybroker/broker/message"
)

// ErrDraining is in the result of a message that was not sent because of Drain or Recall, or because its owner did not
// permit it.
var ErrDraining = errors.New("the broker or the lane stops, so the message was not sent")

// ErrHalted is in the result of a message that was not sent because deliveries to its target are halted: see
// [Deliverer.Halt].
var ErrHalted = errors.New("deliveries to the target are halted, so the message was not sent")

// Message is a message to deliver.
type Message struct {
	Target string
	Mode   message.Mode // if empty, Config.Modes determines the mode
	// Request has the headers at the target, and must not change until the delivery ends. The headers are made when the
	// message is sent, because those of waiting messages would take much memory. Nil means no headers.
	Request *message.Request
	Data    []byte
	// Expires is the time after which the message must not be sent any more, by this host's clock. Zero means that it
	// never expires.
	Expires time.Time
	// Size is the number of bytes of memory that the owner holds for the message. The deliverer uses the length of Data if
	// that is larger.
	Size int
	// RateKey is the client's Delay-Rate-Key: see Limits. It may be empty.
	RateKey string
	// Turn is the Result.Turn of an earlier delivery of this message. It is empty if the message has no turn.
	Turn string
	// Repeated is true if an earlier delivery ended as Unknown. If Turn is valid, the message is then sent again in Turn.
	Repeated bool
	// Owner permits the message to be sent. A nil Owner always does.
	Owner Owner
}

// Owner is the lane or program from which a message comes. The type of an Owner must be comparable. The deliverer calls
// MayDeliver on any goroutine.
type Owner interface {
	// MayDeliver is called immediately before a message is sent, and reports whether the message may be sent.
	MayDeliver() bool
}

// Outcome is the kind of a Result.
type Outcome uint8

// The outcomes.
const (
	Delivered Outcome = iota
	Refused           // by the target, by a service that did not reply in time, or by NATS, as when nobody listens
	Unknown           // deliver again under the same id: the message may have arrived, or Err says that it was not sent
	Stalled           // not sent: its group of targets will not have room soon; not an attempt
	NoRoom            // refused because the account or the server has no room; not an attempt
	Paced             // not sent: the rate gives the message a later turn; not an attempt
	Expired           // not sent: the message expired while it waited, or would expire before its turn
)

var outcomeNames = [...]string{"delivered", "refused", "unknown", "stalled", "no_room", "paced", "expired"}

// Outcomes is the number of outcomes.
const Outcomes = len(outcomeNames)

// String returns the name of the outcome in metrics.
func (o Outcome) String() string { return outcomeNames[o] }

// Result is the end of a delivery.
type Result struct {
	Outcome Outcome
	Code    int       // the code of a refusal, as in jsapi.Ack; zero if the refusal has no code
	Reason  string    // for people: why the message was refused or expired, or the likely cause of a silence; may be empty
	Err     error     // if unknown: the cause; if refused: acks.ErrTimeout if a service did not reply in time, or nil
	RetryAt time.Time // if stalled or paced: when to call Deliver again, by this host's clock
	Turn    string    // if paced: the name of the turn, for Message.Turn
	Time    time.Time // if delivered: the time of the delivery, by this host's clock; see "Lateness" in the package
	Count   *Count    // the caller of Deliver must note the outcome in this count, which may be nil
}

// delivery is one message on its way to its target.
type delivery struct {
	Message
	done func(Result) // called once

	// The deliverer's lock guards the four fields below. Only Deliver sets target, limit and group.
	target *target
	limit  *group // the group of the limit of deliveries in progress, which is the first to pass; nil without a limit
	group  *group // the group of the target
	// waitGroup is the group in which the delivery waits; nil after the delivery has passed all groups.
	waitGroup *group

	// The deliverer sets the three fields below before it publishes the message.
	mode    message.Mode
	timeout time.Duration // of the answer
	sent    time.Time

	// Only the acks.Func of the delivery uses the fields below. The inbox calls it on one goroutine at a time.

	// arrivedBy is the time at which the server confirmed that it took the message or, in mode request, at which the
	// deliverer ignored an answer. It is the time of the delivery if a later silence or timeout counts as a delivery.
	arrivedBy time.Time
	// ignoredStream is verdict.ignoredStream of an earlier answer.
	ignoredStream string
}

// first returns the first group that a delivery passes.
func (dl *delivery) first() *group {
	if dl.limit != nil {
		return dl.limit
	}
	return dl.group
}

// after returns the group that a delivery passes after g, or nil after the last group.
func (dl *delivery) after(g *group) *group {
	if g == dl.limit {
		return dl.group
	}
	return g.parent
}
