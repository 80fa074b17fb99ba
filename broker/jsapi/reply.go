package jsapi

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
)

// Outcome is the class of an answer to a publish into a stream.
type Outcome int

const (
	// Unknown: no answer came from the stream or the server. The message may be stored, or be stored later.
	Unknown Outcome = iota
	// Stored: the stream has stored the message.
	Stored
	// Duplicate: the stream already had a message with this id. Another client may have published that message.
	Duplicate
	// Conflict: the answering leader has not stored the message, because the last message of the subject is not the
	// expected one. If this leader is deposed, its successor may store the message.
	Conflict
	// Undecided: the message is not stored, because another message of its subject is being stored.
	Undecided
	// Busy: this publish is not stored. An earlier copy with the same id may be stored.
	Busy
	// StreamFull: the message is not stored, nearly always because the stream has reached a limit of its own.
	// CONTRIBUTING.md lists what each caller does then.
	StreamFull
	// LimitReached: the message is not stored, because the account or the server has reached a limit, and refuses all
	// messages.
	LimitReached
	// TooLarge: the message is not stored, because the stream or the server accepts no message of this size.
	TooLarge
	// Unavailable: the message is not stored, because no stream listens on the subject, or the stream has no leader.
	Unavailable
	// Rejected: the message is not stored, for the reason in the description.
	Rejected
)

// Outcome classifies an answer.
func (a Ack) Outcome() Outcome {
	switch a.Code {
	case 0:
		if a.Duplicate {
			return Duplicate
		}
		return Stored
	case CodeWrongLast:
		return Conflict
	case CodeLastInFlight:
		return Undecided
	case CodeInFlight, CodeTooMany:
		return Busy
	case CodeStoreFailed:
		return StreamFull
	case codeAccountFull, codeServerFull, codeMemoryFull, CodeStorageFull:
		return LimitReached
	case CodeTooLarge:
		return TooLarge
	case CodeUnavailable:
		return Unavailable
	}
	return Rejected
}

// NotStored reports whether the message is not stored and will not be stored. It is true for a Conflict, although the
// successor of a deposed leader may store the message.
func (o Outcome) NotStored() bool { return o > Duplicate && o != Busy }

// Full reports whether the message is not stored because of a limit of the stream, the account or the server.
func (o Outcome) Full() bool { return o == StreamFull || o == LimitReached }

// Reply is the answer to a publish into a stream of the broker, or the reason why there is no answer.
type Reply struct {
	Ack Ack
	Err error // the reason why there is no answer; nil if there is one
}

// ReplyOf returns the reply to a publish into a stream. If ok is false, neither this stream nor the server has written
// the answer: a client has published to the inbox of the publish, and the stream's own answer may still come.
func ReplyOf(answer *nats.Msg, err error, stream string) (r Reply, ok bool) {
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return Reply{Ack: Ack{Code: CodeTooLarge, Description: err.Error()}}, true
	case errors.Is(err, nats.ErrNoResponders):
		return Reply{Ack: unavailableAck}, true
	case err != nil:
		return Reply{Err: err}, true
	}
	r.Ack, ok = ackOf(answer, stream)
	return r, ok
}

// Outcome classifies a reply.
func (r Reply) Outcome() Outcome {
	if r.Err != nil {
		return Unknown
	}
	return r.Ack.Outcome()
}

// Failure returns nil if the stream has the message, also as a duplicate. Otherwise it returns the reason why the
// message is not stored, or why this is unknown.
func (r Reply) Failure() error {
	switch r.Outcome() {
	case Stored, Duplicate:
		return nil
	case Unknown:
		return r.Err
	}
	return Refusal(r.Ack)
}

// Refusal is the refusal of a publish as an error: see Reply.Failure.
type Refusal Ack

func (r Refusal) Error() string { return fmt.Sprintf("%s (%d)", r.Description, r.Code) }

// Publish publishes into a stream of the broker, and waits for the answer.
func (c Client) Publish(ctx context.Context, stream string, m *nats.Msg) Reply {
	ctx, cancel := c.withTimeout(ctx)
	defer cancel()
	answer, err := c.Conn.RequestMsgWithContext(ctx, m)
	r, ok := ReplyOf(answer, err, stream)
	if !ok {
		r = Reply{Err: fmt.Errorf("the answer is not from %s: %.60q: %w", stream, answer.Data, ErrWrongAnswer)}
	}
	return r
}
