package lane

import (
	"context"
	"errors"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// adjoins proves that no undeleted message lies between what was read and the message that a consumer showed, and
// reports whether that message is there itself. It returns errLost where there is one between, and errUnproven where
// the leader knows less than the consumer.
//
// A message that follows the last one without a gap needs no proof. Behind a gap, what was deleted before the epoch
// began is known; what was deleted since, the leader is asked for. Consumer sequences prove nothing: see the package's
// documentation.
func (r *Reader) adjoins(ctx context.Context, shown uint64) (there bool, err error) {
	from := r.deleted.past(r.next)
	if from >= shown {
		return from == shown, nil
	}
	stored := uint64(0)
	err = r.request(ctx, func(ctx context.Context) error {
		m, err := r.api.Next(ctx, r.stream, from, ">")
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

// deleted are the sequences in the midst of a stream that its leader has no message for, as runs in rising order.
type deleted []run

// run is some sequences in a row, both ends included.
type run struct{ first, last uint64 }

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

// past is the first sequence from seq on that is not among the deleted.
func (d deleted) past(seq uint64) uint64 {
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
