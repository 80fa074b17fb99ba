package lane

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
)

// History identifies the contents of the stream that the reader has read.
type History struct {
	Created time.Time // when the stream was created
	Read    uint64    // stream sequence of the last message read; zero if there is none
	At      time.Time // timestamp of the last message read
}

// Judge distinguishes histories. A stream that was created again has a later creation time. A stream that was restored
// from a backup, or truncated by a loss of power, may have the same creation time, and its new messages may have the
// sequences of lost messages. So Judge also compares the timestamp of the last message read. If that message was
// deleted or purged, the history is the same.
//
// A deposed leader may report an earlier creation time, or a last sequence below History.Read, until it notices that it
// was deposed. So at first, such samples give ErrUnsureHistory. They give ErrOtherHistory when they have come for
// jsapi.QuorumTimeout without a break, and the leader hears from a majority.
//
// The zero Judge is ready to use. It is not safe for concurrent use.
type Judge struct {
	olderSince time.Time // when the first of these samples was received; zero outside such a series
}

// Compare compares a sample with the known history. It returns nil if the stream still has that history, as far as the
// sample shows, and otherwise ErrOtherHistory, ErrUnsureHistory, or the error of get. The function get reads a message
// by its sequence from the stream's leader.
func (j *Judge) Compare(ctx context.Context, known History, sample Sample,
	get func(context.Context, uint64) (jsapi.Message, error)) error {
	sameStream := sample.Created.Equal(known.Created)
	if sample.Created.Before(known.Created) || sameStream && sample.LastSeq < known.Read {
		return j.judgeOlder(sample)
	}
	j.olderSince = time.Time{}
	switch {
	case !sameStream:
		return ErrOtherHistory
	case known.Read == 0, known.Read < sample.FirstSeq:
		return nil
	}
	m, err := get(ctx, known.Read)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil
	case err == nil && !m.Time.Equal(known.At):
		return ErrOtherHistory
	}
	return err
}

// judgeOlder returns the error for a sample with an earlier creation time, or with a last sequence below History.Read.
func (j *Judge) judgeOlder(sample Sample) error {
	if j.olderSince.IsZero() {
		j.olderSince = sample.Received
	}
	if sample.Received.Sub(j.olderSince) < jsapi.QuorumTimeout || !sample.Quorate {
		return ErrUnsureHistory
	}
	j.olderSince = time.Time{}
	return ErrOtherHistory
}
