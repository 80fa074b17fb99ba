package lane

import (
	"context"
	"errors"
	"time"

	"delaybroker/broker/jsapi"

	"github.com/nats-io/nats.go/jetstream"
)

// staleFor is how long a stream must look cut back before the reader believes it. A leader that is cut off from its
// cluster gives old answers until it notices, which takes nats-server's lostQuorumInterval of 10 s. After that, its
// answer shows that it hears from no majority.
const staleFor = 10 * time.Second

// History distinguishes the stream that was read from another one of the same name.
type History struct {
	Created time.Time // when the stream was created
	Read    uint64    // sequence of the last message read; zero when there is none
	At      time.Time // its timestamp
}

// Verdict is the comparison of a sample with the history that is known.
type Verdict int

// The verdicts.
const (
	Same   Verdict = iota // the stream is the one that was read
	Other                 // it has another history: deleted and created again, restored, or cut back by a loss of power
	Unsure                // it has another history, or a deposed leader answered; look again
)

// Judge tells histories apart. A stream that was created again has a later time of creation. A stream that was restored
// from a backup, or was cut back by a loss of power, may have the same one, and new messages may have taken the
// sequences of old ones. Then the last message read has another timestamp. If that message was deleted or purged, only
// the other signs are left.
//
// A stream that looks older or shorter than what was read may be the answer of a leader that was deposed and does not
// know it yet. So this is believed only after it has lasted for staleFor, and only from a leader that hears from a
// majority.
//
// The zero Judge is ready. It is not safe for concurrent use.
type Judge struct {
	since time.Time // local time since which the stream looks older or shorter; zero when it does not
}

// Verdict compares a sample with the known history. Ask reads one message from the stream's leader.
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

// past returns the verdict on a sample that shows fewer messages than were read.
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
