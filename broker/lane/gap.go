package lane

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
)

// proveGap proves that the lane has no message between the last message read and the message with sequence seq, which a
// consumer shows. It reports whether the shown message exists. If there is a message in the gap, proveGap returns
// errLost. If the leader has no message in the gap or after the gap, proveGap returns errUnproven.
//
// It skips the sequences at the start of the gap that were deleted when the epoch began, and asks the leader about the
// others. See "The reader skips no message" in the package documentation.
func (r *Reader) proveGap(ctx context.Context, seq uint64) (exists bool, _ error) {
	start := r.knowledge.deletedRuns.skip(r.knowledge.next)
	if start >= seq {
		return start == seq, nil
	}
	stored, err := r.storedFrom(ctx, start)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return false, errUnproven
	case err != nil:
		return false, err
	case stored.Sequence < seq:
		return false, errLost
	}
	return stored.Sequence == seq, nil
}

// storedFrom asks the leader for the first message of the lane from a sequence on.
func (r *Reader) storedFrom(ctx context.Context, seq uint64) (stored jsapi.Message, err error) {
	err = r.request(ctx, func(ctx context.Context) error {
		stored, err = r.api.Next(ctx, r.cfg.Stream, seq, r.cfg.Filter)
		return err
	})
	return stored, err
}

// runs holds the deleted sequences in the middle of a stream, in rising order.
type runs []run

// run is a range of sequences, both ends included.
type run struct{ first, last uint64 }

// runsOf returns the runs of the given sequences. It sorts sequences.
func runsOf(sequences []uint64) (rs runs) {
	slices.Sort(sequences)
	for _, seq := range sequences {
		if n := len(rs); n > 0 && rs[n-1].last+1 >= seq {
			rs[n-1].last = seq
			continue
		}
		rs = append(rs, run{seq, seq})
	}
	return rs
}

// skip returns the first sequence, from seq on, that is in no run.
func (rs runs) skip(seq uint64) uint64 {
	i, _ := slices.BinarySearchFunc(rs, seq, func(r run, seq uint64) int { return cmp.Compare(r.last, seq) })
	if i < len(rs) && rs[i].first <= seq {
		return rs[i].last + 1
	}
	return seq
}
