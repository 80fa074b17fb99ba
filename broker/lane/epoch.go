package lane

import (
	"context"

	"github.com/nats-io/nats.go"
)

// Epoch is the life of one consumer. It begins with a look at the stream. The owner gets the epoch before the first of
// its items; items of the epoch before may still be waiting then.
type Epoch struct {
	Number uint64
	// Fresh means that the stream has another history than before: it was deleted and created again, restored, or cut back
	// by a crash of its server. A sequence that was read before is no longer that of the same message, so the cursor means
	// nothing any more.
	Fresh bool
	Info  Sample
}

// begin starts an epoch. It looks at the stream, creates a consumer at the message after the last one read, and looks
// again: a stream that was replaced in between would never deliver its messages to that consumer.
func (r *Reader) begin(ctx context.Context) (*pull, error) {
	before, sample, err := r.look(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.recognize(ctx, sample); err != nil {
		return nil, err
	}
	// The messages below the first sequence were removed by an owner, after they had arrived, or by an operator.
	k := &r.known
	k.next = max(k.next, before.State.FirstSeq, k.first, 1)
	if !r.cfg.Sparse {
		if k.deleted, err = r.listDeleted(ctx, before); err != nil {
			return nil, err
		}
	}
	p := newPull(r, before, max(before.State.FirstSeq, k.first, k.read.Sequence, 1))
	if err := p.open(ctx); err != nil {
		p.close(ctx)
		return nil, err
	}
	after, sample, err := r.look(ctx)
	if err == nil && (after.Created != before.Created || after.State.LastSeq < before.State.LastSeq) {
		err = ErrHistory
	}
	if err != nil {
		p.close(ctx)
		return nil, err
	}
	r.number++
	r.live.Store(r.number)
	if err := r.announce(ctx, Epoch{Number: r.number, Fresh: k.fresh, Info: sample}); err != nil {
		p.close(ctx)
		return nil, err
	}
	k.created, k.fresh = before.Created, false
	return p, nil
}

// recognize finds out whether the stream is the one that was read. If it is not, recognize forgets the cursor and the
// history.
func (r *Reader) recognize(ctx context.Context, look Sample) error {
	k := &r.known
	last := History{Created: k.created, Read: k.read.Sequence, At: k.read.At}
	verdict, err := k.judge.Verdict(ctx, last, look, r.message)
	switch {
	case err != nil:
		return err
	case verdict == Unsure:
		return ErrUnsure
	case verdict == Same:
		return nil
	}
	k.fresh = true // until the owner has the epoch, even if begin fails several times
	if !k.created.IsZero() {
		r.cfg.Log.Warn("the stream has another history: starting at its first message", "stream", r.cfg.Stream,
			"created", look.Created, "last", look.LastSeq, "read", k.read.Sequence)
		k.first = 0
	}
	k.read, k.next = Stored{}, 0
	// The previous owner committed up to first, and the leader knows of it. A leader that does not know has another
	// history, even if the streams were created at the same time: it was restored, or cut back by a loss of power.
	low := look.FirstSeq
	if r.cfg.Sparse {
		low = look.LastSeq + 1
	}
	if low < k.first || !k.firstOf.IsZero() && !look.Created.Equal(k.firstOf) {
		k.first = 0
	}
	return nil
}

// announce waits until the owner has taken the epoch.
func (r *Reader) announce(ctx context.Context, e Epoch) error {
	for {
		select {
		case r.epochs <- e:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case s := <-r.status:
			if s != nats.CONNECTED {
				return errOffline
			}
		}
	}
}
