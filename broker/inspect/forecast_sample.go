package inspect

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/broker/streams"
)

// The limits of a stream's sample, in messages and bytes. Large messages make the sample smaller: the server sends
// their bodies too.
const (
	sampleMost  = 2000
	sampleLeast = 50
	sampleBytes = 32 << 20
)

// A sample counts randomly chosen messages of one stream.
type sample struct {
	direct  []uint64 // published by clients to a level, and due after they leave it; by slot
	onTime  uint64   // published by clients to a level, and due when they leave it
	further []uint64 // all other messages, by slot
	none    uint64   // without a target, or for another target; for example the list of paused targets
}

// A place is a stream or its schedules.
type place struct {
	stream    string
	schedules bool
}

func (s *segment) place() place { return place{s.Stream, s.schedules} }

// estimate estimates the segments that are too large to be read completely.
func (f *forecast) estimate(ctx context.Context, segments []*segment) error {
	var orders []*order
	for _, s := range segments {
		if s.ordered {
			orders = append(orders, newOrder(s, f.slots.cuts))
		}
	}
	if err := f.settle(ctx, orders, f.look.cuts); err != nil {
		return err
	}
	for _, s := range segments {
		if err := f.sample(ctx, s); err != nil {
			return lookedThrough(s.Stream, err)
		}
		if s.ordered {
			continue
		}
		seen, messages := f.samples[s.place()], s.messages
		looked := sum64(seen.further)
		switch f.tally.shares(messages, seen.further, seen.none); {
		case looked == 0 && seen.none == 0:
			f.all.Unplaced += messages
		case seen.none > 0:
			messages = uint64(float64(messages) * float64(looked) / float64(looked+seen.none))
		}
		f.add(Part{Stream: s.Stream, How: Sampled, Messages: messages, Looked: looked})
	}
	for _, o := range orders {
		seen := f.samples[o.place()]
		f.tally.inOrder(o, seen)
		f.add(Part{Stream: o.Stream, How: Ordered, Messages: o.messages, Looked: seen.onTime + sum64(seen.direct)})
	}
	return nil
}

// inOrder adds the messages of an order. The order gives the time at which a message leaves its level. If a header
// delays the message further, the sample gives its due time.
func (t tally) inOrder(o *order, seen sample) {
	late := sum64(seen.direct)
	looked := seen.onTime + late
	stay := 1.0
	if looked > 0 {
		stay = float64(seen.onTime) / float64(looked)
	}
	doubtful := doubt(late, looked, o.messages)
	all, begun := float64(o.messages), false
	for slot, e := range o.leave() {
		t[slot].number += e.number * stay
		t[slot].bound += e.bound
		t[slot].variance += e.number * e.number * doubtful
		// No message is due before the first one leaves.
		if begun = begun || e.number > 0 || seen.direct[slot] > 0; begun && looked > 0 {
			t[slot].number += all * float64(seen.direct[slot]) / float64(looked)
			t[slot].variance += all * all * doubt(seen.direct[slot], looked, o.messages)
		}
	}
	if bad := len(seen.direct) - 1; looked > 0 { // unreadable messages
		t[bad].number += all * float64(seen.direct[bad]) / float64(looked)
		t[bad].variance += all * all * doubt(seen.direct[bad], looked, o.messages)
	}
}

// sample draws one random sequence from each of n equal parts of a stream, so all sequences have the same probability.
// It ignores a sequence without a message, and a message for another target. It asks the leader, without a consumer.
func (f *forecast) sample(ctx context.Context, of *segment) error {
	l := of.Lane
	if _, done := f.samples[of.place()]; done {
		return nil
	}
	first, span := l.Info.State.FirstSeq, l.Info.State.LastSeq-l.Info.State.FirstSeq+1
	n := min(max(sampleBytes/(l.Bytes/l.Pending+1), sampleLeast), f.look.Sample, span)
	drawn := make([]uint64, n)
	for k := range n {
		low, high := share(span, k, n), share(span, k+1, n)
		drawn[k] = first + low + f.look.draw(high-low)
	}
	got := make([]message.Incoming, n)
	if err := atOnce(ctx, int(n), func(ctx context.Context, k int) (err error) {
		got[k], err = f.Stored(ctx, l.Stream, drawn[k])
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			err = nil
		}
		got[k].Data, got[k].BodyLeft = nil, true // this program may not have the secret of its seal
		return err
	}); err != nil {
		return err
	}
	s := sample{direct: make([]uint64, f.slots.number()), further: make([]uint64, f.slots.number())}
	for _, in := range got {
		if in.Sequence > 0 {
			f.class(&s, of, in)
		}
	}
	f.samples[of.place()] = s
	return nil
}

// share returns the beginning of part k of n.
func share(span, k, n uint64) uint64 { return span/n*k + span%n*k/n }

// class adds one message to the sample.
func (f *forecast) class(s *sample, of *segment, in message.Incoming) {
	l, a := of.Lane, f.names.Parse(in.Subject)
	switch {
	case of.schedules && !a.Schedule(),
		f.look.Target != "" && !of.schedules && !message.Match(f.look.Target, a.Target):
		return
	case of.leavesOut(f.names, in.Subject):
		s.none++
		return
	}
	r, problem, ok := f.reader.pending(l, in)
	switch direct := l.Kind == streams.Level && a.Form == message.FormLevel; {
	case !ok && l.Kind == streams.Level: // markers do not count
	case !ok:
		s.none++
	case !direct:
		s.further[f.slot(r, problem)]++
	case problem == nil && r.When().Equal(in.At.Add(l.spec.Delay)): // due when it leaves its level
		s.onTime++
	default:
		s.direct[f.slot(r, problem)]++
	}
}
