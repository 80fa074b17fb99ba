package lane

import (
	"context"
	"errors"
	"time"

	"delaybroker/broker/jsapi"

	"github.com/nats-io/nats.go/jetstream"
)

// staleFor is how long a stream must look as if it had been cut back before that is believed. A leader that was cut off
// from its cluster answers from the past until it notices, which takes nat-server's lostQuorumInterval of 10 s; by then
// its own answer says that it hears from no majority.
const staleFor = 10 * time.Second

// History is what tells the stream that was read from another of its name.
type History struct {
	Created time.Time // when the stream was
	Read    uint64    // sequence of the last message read; zero when there is none
	At      time.Time // its timestamp
}

// Verdict is what a look at a stream says of the history that is known.
type Verdict int

// The verdicts.
const (
	Same   Verdict = iota // the stream is the one that was read
	Other                 // it is another: deleted and created again, restored, or cut back by a loss of power
	Unsure                // it looks like another, or a deposed leader answered; look again
)

// Judge tells histories apart. A stream that is created again was created later. One that is restored from a backup, or
// comes back cut short from a loss of power, may have been created when ours was, and new messages may have taken the
// sequences of old ones: then the last message read has another timestamp. Where that message was deleted or purged,
// the other signs have to do.
//
// Whatever looks like the past may come from a leader that was deposed and does not know yet. So a stream that seems
// older or shorter than what was read is believed only when that has lasted for staleFor, and its leader hears from a
// majority.
//
// The zero Judge is ready. It is not safe for concurrent use.
type Judge struct {
	since time.Time // local; since when the stream looks older or shorter; zero when it does not
}

// Verdict compares a look with what is known. Ask reads one message from the stream's leader.
func (j *Judge) Verdict(ctx context.Context, known History, look Sample,
	ask func(context.Context, uint64) (jsapi.Message, error)) (Verdict, error) {
	if look.Created.After(known.Created) {
		j.since = time.Time{}
		return Other, nil
	}
	if look.Created.Before(known.Created) || look.LastSeq < known.Read {
		return j.past(look), nil
	}
	j.since = time.Time{}
	if known.Read == 0 || known.Read < look.FirstSeq {
		return Same, nil
	}
	m, err := ask(ctx, known.Read)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return Same, nil
	case err != nil:
		return Unsure, err
	case !m.Time.Equal(known.At):
		return Other, nil
	}
	return Same, nil
}

// past is the verdict on a look that shows less than was read.
func (j *Judge) past(look Sample) Verdict {
	if j.since.IsZero() {
		j.since = look.Received
	}
	if look.Received.Sub(j.since) < staleFor || !look.Quorate {
		return Unsure
	}
	j.since = time.Time{}
	return Other
}
