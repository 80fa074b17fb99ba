package lane

import (
	"context"
	"errors"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// adjoins proves that the stream has no message between the last message read and the message that a consumer shows. It
// reports whether the shown message itself exists. If there is a message between the two, adjoins returns errLost. If
// the leader has no message in the gap or after it, adjoins returns errUnproven.
//
// If the sequence shown is next, no proof is needed. In a gap, adjoins skips the sequences that were deleted when the
// epoch began, and asks the leader about the others. See "The reader skips no message" in the package documentation.
func (r *Reader) adjoins(ctx context.Context, shown uint64) (exists bool, err error) {
	from := r.knowledge.deleted.skip(r.knowledge.next)
	if from >= shown {
		return from == shown, nil
	}
	stored := uint64(0)
	err = r.request(ctx, func(ctx context.Context) error {
		m, err := r.api.Next(ctx, r.cfg.Stream, from, r.cfg.Filter)
		stored = m.Sequence
		return err
	})
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return false, errUnproven
	case err != nil:
		return false, err
	case stored < shown:
		return false, errLost
	}
	return stored == shown, nil
}

// deleted holds deleted sequences in the middle of a stream, as runs in rising order.
type deleted []run

// run is a range of sequences, both ends included.
type run struct{ first, last uint64 }

// deletedOf returns the runs of the given sequences. It sorts sequences.
func deletedOf(sequences []uint64) deleted {
	var d deleted
	slices.Sort(sequences)
	for _, seq := range sequences {
		if n := len(d); n > 0 && d[n-1].last+1 >= seq {
			d[n-1].last = seq
			continue
		}
		d = append(d, run{seq, seq})
	}
	return d
}

// skip returns the first sequence from seq on that is not deleted.
func (d deleted) skip(seq uint64) uint64 {
	i, _ := slices.BinarySearchFunc(d, seq, func(r run, seq uint64) int {
		switch {
		case r.last < seq:
			return -1
		case r.first > seq:
			return 1
		}
		return 0
	})
	if i < len(d) && d[i].first <= seq {
		return d[i].last + 1
	}
	return seq
}
