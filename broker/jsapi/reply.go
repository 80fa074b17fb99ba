package jsapi

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
)

// Outcome classifies the answer to a publish into a stream. Each caller decides how it handles an outcome.
type Outcome int

const (
	// Unknown: there is no answer of this stream or of the server. The message may be stored, or be stored later.
	Unknown Outcome = iota
	// Stored: the stream has stored the message.
	Stored
	// Duplicate: the stream has a message with this id. Another client may have published it.
	Duplicate
	// Conflict: the last message of the subject is not the expected one, and the message is not stored. A deposed leader
	// gives this answer even if its successor stores the message.
	Conflict
	// Undecided: the message is not stored, since another message of its subject is being stored.
	Undecided
	// Busy: this publish is not stored. An earlier copy with the same id may be stored.
	Busy
	// StreamFull: the stream is at a limit of its own. The message is not stored. CONTRIBUTING.md lists what callers do.
	StreamFull
	// LimitReached: the account or the server is at a limit, and refuses all messages. The message is not stored.
	LimitReached
	// TooLarge: the stream or the server never takes a message of this size.
	TooLarge
	// Unavailable: no stream listens on the subject, or its stream has no leader.
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
	case CodeNotStored:
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

// NotStored reports whether the message is certainly not stored, and will not be.
func (o Outcome) NotStored() bool { return o > Duplicate && o != Busy }

// Full reports whether the message is not stored because of a limit of the stream, the account or the server.
func (o Outcome) Full() bool { return o == StreamFull || o == LimitReached }

// Reply is the answer to a publish into one of our streams, or the error in its place.
type Reply struct {
	Ack Ack
	Err error // the reason why there is no answer; nil if there is one
}

// ReplyOf returns the reply to a publish into a stream. Ok is false for an answer that neither this stream nor the
// server has written: another client answers on our inbox, and the true answer may still come.
func ReplyOf(answer *nats.Msg, err error, stream string) (r Reply, ok bool) {
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return Reply{Ack: Ack{Code: CodeTooLarge, Description: err.Error()}}, true
	case errors.Is(err, nats.ErrNoResponders):
		return Reply{Ack: Ack{Code: CodeUnavailable, Description: NobodyListens}}, true
	case err != nil:
		return Reply{Err: err}, true
	}
	r.Ack, ok = AckOf(answer, stream)
	return r, ok
}

// Outcome classifies a reply.
func (r Reply) Outcome() Outcome {
	if r.Err != nil {
		return Unknown
	}
	return r.Ack.Outcome()
}

// Problem returns an error if the message is not stored, or may not be stored. It returns nil for a duplicate.
func (r Reply) Problem() error {
	switch r.Outcome() {
	case Stored, Duplicate:
		return nil
	case Unknown:
		return r.Err
	}
	return fmt.Errorf("%s (%d)", r.Ack.Description, r.Ack.Code)
}

// Publish publishes into one of our streams, and waits for the answer.
func (l Client) Publish(ctx context.Context, stream string, m *nats.Msg) Reply {
	answer, err := l.Conn.RequestMsgWithContext(ctx, m)
	r, ok := ReplyOf(answer, err, stream)
	if !ok {
		r = Reply{Err: fmt.Errorf("the answer is not from %s: %.60q: %w", stream, answer.Data, ErrAnswer)}
	}
	return r
}
