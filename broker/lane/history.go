package lane

import (
	"context"
	"errors"
	"time"

	"delaybroker/broker/jsapi"

	"github.com/nats-io/nats.go/jetstream"
)

// staleFor is how long a stream must look truncated before the reader treats it as another history. A leader that is
// cut off from its cluster gives old answers until it notices, which takes nats-server's lostQuorumInterval of 10 s.
// After that, its answers show that it has lost its majority.
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
	Other                 // the stream was deleted and created again, restored, or truncated by a loss of power
	Unsure                // Other, or a deposed leader answered; look again
)

// Judge distinguishes histories. A stream that was created again has a later creation time. A stream that was restored
// from a backup, or truncated by a loss of power, may have the same creation time, and new messages may have taken the
// sequences of old ones. Then the message at the sequence read last has another timestamp. If that message was deleted
// or purged, Judge cannot detect this case.
//
// A leader that was deposed and does not know it yet may describe the stream as older or shorter than it is. So Judge
// returns Other for such a stream only after staleFor, and only if the leader hears from a majority.
//
// The zero Judge is ready. It is not safe for concurrent use.
type Judge struct {
	since time.Time // local time since which the stream has looked older or shorter; zero if it does not
}

// Verdict compares a sample with the known history. The function ask reads one message from the stream's leader.
func (j *Judge) Verdict(ctx context.Context, known History, sample Sample,
	ask func(context.Context, uint64) (jsapi.Message, error)) (Verdict, error) {
	if sample.Created.After(known.Created) {
		j.since = time.Time{}
		return Other, nil
	}
	if sample.Created.Before(known.Created) || sample.LastSeq < known.Read {
		return j.older(sample), nil
	}
	j.since = time.Time{}
	if known.Read == 0 || known.Read < sample.FirstSeq {
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

// older returns the verdict on a sample that is older or shorter than the known history.
func (j *Judge) older(sample Sample) Verdict {
	if j.since.IsZero() {
		j.since = sample.Received
	}
	if sample.Received.Sub(j.since) < staleFor || !sample.Quorate {
		return Unsure
	}
	j.since = time.Time{}
	return Other
}
