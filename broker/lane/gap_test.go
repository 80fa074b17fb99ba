package lane

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// recreateConsumer deletes the reader's consumer and creates it again under the same name, with the original start and
// a count from one. Nats-server recreates consumers in this way after a restart of the server that held them in memory.
// Open requests end without a report.
func (r *rig) recreateConsumer(w *wire) {
	r.t.Helper()
	ctx := context.Background()
	for _, name := range r.consumers() {
		c, err := r.js.Consumer(ctx, r.spec.Stream, name)
		if err != nil {
			continue // the reader has replaced the consumer
		}
		cfg := c.CachedInfo().Config
		w.losesControl.Store(true)
		if err := r.js.DeleteConsumer(ctx, r.spec.Stream, name); err != nil {
			r.t.Fatalf("delete the consumer: %v", err)
		}
		if _, err := r.js.CreateConsumer(ctx, r.spec.Stream, cfg); err != nil {
			r.t.Fatalf("recreate the consumer: %v", err)
		}
		synctest.Wait()
		w.losesControl.Store(false)
	}
}

// tenCommitted returns a rig, and an owner that has read ten messages over a wire and has committed all of them.
func tenCommitted(t *testing.T, s *natstest.Server) (*rig, *wire, *owner) {
	t.Helper()
	r, w := newRig(t, s), &wire{server: s}
	o := r.readOver(w)
	r.publish(1, 10)
	o.check(1, 10)
	r.purge(jetstream.WithPurgeSequence(11))
	return r, w, o
}

// TestRecreatedConsumer: the consumer is recreated after all its messages were committed. Then its first messages are
// lost on the wire, so that its consumer sequences may continue the old count. No message may be skipped.
func TestRecreatedConsumer(t *testing.T) {
	for _, lost := range []int{0, 1, 9, 10} {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				r, w, o := tenCommitted(t, s)
				r.recreateConsumer(w)
				remaining := lost
				w.set(func(head, _ string) bool {
					lose := isStored(head) && remaining > 0
					if lose {
						remaining--
					}
					return lose
				})
				r.publish(11, 40)
				o.Probe() // sends a request to the new consumer
				time.Sleep(time.Minute)
				o.check(1, 40)
			})
		})
	}
}

// TestRecreatedConsumerOfIdleLane: the first heartbeat of a recreated consumer shows that its count has restarted.
func TestRecreatedConsumerOfIdleLane(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r, w, o := tenCommitted(t, s)
		r.recreateConsumer(w)
		o.Probe()
		time.Sleep(time.Second)
		o.checkEpochs("fresh")
		time.Sleep(minBackoff + 10*time.Millisecond)
		o.checkEpochs("fresh", "same")
		r.publish(11, 12)
		o.check(1, 12)
	})
}

// TestRecreatedConsumerWithSameCount: the consumer was recreated, and so many of its messages were lost on the wire
// that its count equals the reader's. No later message shows the loss, but the consumer's position in the stream does.
func TestRecreatedConsumerWithSameCount(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r, w, o := tenCommitted(t, s)
		r.recreateConsumer(w)
		w.set(func(head, _ string) bool { return isStored(head) })
		o.Probe()
		r.publish(11, 20)
		time.Sleep(time.Second)
		w.set(func(string, string) bool { return false })
		time.Sleep(5 * time.Second)
		o.check(1, 20)
		o.checkEpochs("fresh", "same")
	})
}

// TestDeletedMessageIsIgnored: the leader had deleted a message when the epoch began, but a lagging replica still shows
// the message. The reader does not accept the message, and sends no request.
func TestDeletedMessageIsIgnored(t *testing.T) {
	r := NewReader(ReaderConfig{From: 3})
	r.knowledge.deletedRuns = runsOf([]uint64{9, 4, 5, 12, 11, 6})
	for seq := range uint64(14) {
		if err := r.accept(t.Context(), Message{Sequence: seq + 1}); err != nil {
			t.Fatal(err)
		}
	}
	var got []uint64
	for len(r.items) > 0 {
		got = append(got, (<-r.items).Sequence)
	}
	if want := []uint64{3, 7, 8, 10, 13, 14}; !slices.Equal(got, want) {
		t.Errorf("took %d, want %d", got, want)
	}
}

// TestGapIsProven: the reader asks the leader about a gap. The leader has no message in the gap, has a message in the
// gap, or has no message at or after the gap.
func TestGapIsProven(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		r.publish(1, 10)
		nc := s.Connect()
		reader := NewReader(ReaderConfig{Conn: nc, JetStream: s.JetStream(nc), APIPrefix: "$JS.API", Stream: r.spec.Stream,
			Delay: r.spec.Delay, From: 1})
		for _, seq := range []uint64{2, 3, 7, 10} {
			if err := reader.api.Delete(t.Context(), r.spec.Stream, seq); err != nil {
				t.Fatal(err)
			}
		}
		for _, step := range []struct {
			seq   uint64
			err   error
			taken int
		}{
			{1, nil, 1}, {5, errLost, 1}, {3, nil, 1}, {4, nil, 2}, {6, errLost, 2}, {5, nil, 3}, {6, nil, 4}, {7, nil, 5},
			{10, errLost, 5},
			{8, nil, 6}, {9, nil, 7}, {10, nil, 8}, {12, errUnproven, 8},
		} {
			err := reader.accept(t.Context(), Message{Sequence: step.seq})
			if !errors.Is(err, step.err) || len(reader.items) != step.taken {
				t.Errorf("%d: %v, %d taken; want %v, %d", step.seq, err, len(reader.items), step.err, step.taken)
			}
		}
	})
}

// TestDeletedRuns checks skip for every sequence, with random sets of deleted sequences.
func TestDeletedRuns(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		var sequences []uint64
		deleted := make(map[uint64]bool)
		for range rnd.IntN(40) {
			seq := 1 + rnd.Uint64N(50)
			sequences, deleted[seq] = append(sequences, seq), true
		}
		rs := runsOf(sequences)
		for seq := range uint64(60) {
			want := seq
			for deleted[want] {
				want++
			}
			if got := rs.skip(seq); got != want {
				t.Fatalf("seed %d: skip(%d) is %d, want %d; deleted %v", seed, seq, got, want, rs)
			}
		}
	}
}
