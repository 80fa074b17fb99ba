package lane

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"
)

// Epoch is the life of one consumer. The owner receives the epoch before the first item of the epoch. When the owner
// receives the epoch, the channel of items may still hold items of the previous epoch.
type Epoch struct {
	Number uint64
	// NewHistory means that the stream has another history than in the previous epoch: the stream was deleted and created
	// again, restored, or truncated by a crash of its server. A sequence may now belong to another message, so the owner's
	// cursor is invalid. NewHistory is also true in the reader's first epoch.
	NewHistory bool
	Sample     Sample // taken after the consumer was created
}

// begin starts an epoch. It takes a sample of the stream, creates a consumer that starts at the last message read or at
// the lowest sequence to hand over, and takes another sample. If the stream was replaced between the samples, begin
// returns an error, because the consumer might never deliver the messages of the new stream.
func (r *Reader) begin(ctx context.Context) (*pull, error) {
	stream, sample, err := r.requestState(ctx)
	if err != nil {
		return nil, err
	}
	info := stream.CachedInfo()
	if err := r.recognize(ctx, sample); err != nil {
		return nil, err
	}
	// Messages below the first sequence had arrived and were then purged by an owner, or were purged by an operator.
	k := &r.knowledge
	k.next = max(k.next, info.State.FirstSeq, k.first, 1)
	if !r.cfg.Sparse {
		if k.deletedRuns, err = r.listDeleted(ctx, stream); err != nil {
			return nil, err
		}
	}
	p := newPull(r, info, max(info.State.FirstSeq, k.first, k.lastRead.Sequence, 1))
	if err := p.open(ctx); err != nil {
		p.close(ctx)
		return nil, err
	}
	first := sample
	if _, sample, err = r.requestState(ctx); err == nil {
		err = compareSamples(first, sample)
	}
	if err != nil {
		p.close(ctx)
		return nil, err
	}
	r.epoch++
	r.liveEpoch.Store(r.epoch)
	if err := r.announce(ctx, Epoch{Number: r.epoch, NewHistory: k.newHistory, Sample: sample}); err != nil {
		p.close(ctx)
		return nil, err
	}
	k.created, k.newHistory = info.Created, false
	return p, nil
}

// compareSamples returns nil if the later of two samples may have the history of the earlier one. It returns
// ErrUnsureHistory if the later sample shows an older or shorter stream, because a deposed leader may have answered.
func compareSamples(earlier, later Sample) error {
	switch {
	case later.Created.After(earlier.Created):
		return ErrOtherHistory
	case later.Created.Before(earlier.Created), later.LastSeq < earlier.LastSeq:
		return ErrUnsureHistory
	}
	return nil
}

// recognize compares the stream with the known history. If the stream has another history, recognize resets the known
// history and the position. It returns ErrUnsureHistory if the sample does not show which history the stream has.
func (r *Reader) recognize(ctx context.Context, sample Sample) error {
	k := &r.knowledge
	known := History{Created: k.created, Read: k.lastRead.Sequence, At: k.lastRead.At}
	if err := k.judge.Compare(ctx, known, sample, r.message); !errors.Is(err, ErrOtherHistory) {
		return err
	}
	k.newHistory = true // stays set until the owner has received an epoch
	if !k.created.IsZero() {
		r.cfg.Log.Warn("the stream has another history; the reader starts at the first message of the stream",
			"stream", r.cfg.Stream, "created", sample.Created, "last", sample.LastSeq, "read", k.lastRead.Sequence)
		k.first = 0
	}
	k.lastRead, k.next = Message{}, 0
	// The previous owner committed up to first or, in a sparse lane, read up to first. If the leader's stream begins
	// below first (a sparse lane: ends below first), the stream was restored, or truncated by a loss of power. Its
	// creation time may still be the same.
	maxFirst := sample.FirstSeq
	if r.cfg.Sparse {
		maxFirst = sample.LastSeq + 1
	}
	if maxFirst < k.first || !k.firstCreated.IsZero() && !sample.Created.Equal(k.firstCreated) {
		k.first = 0
	}
	return nil
}

// announce waits until the owner has received the epoch.
func (r *Reader) announce(ctx context.Context, e Epoch) error {
	for {
		select {
		case r.epochs <- e:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case s := <-r.status:
			if s != nats.CONNECTED {
				return ErrOffline
			}
		}
	}
}
