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
	maxSample      = 2000
	minSample      = 50
	maxSampleBytes = 32 << 20
)

// A sample counts randomly chosen messages of one stream.
type sample struct {
	direct    []uint64 // published by clients to a level, and due after they leave it; by slot
	onTime    uint64   // published by clients to a level, and due when they leave it
	others    []uint64 // all other messages, by slot
	unrelated uint64   // messages without a target, such as the list of pauses, or for another target
}

// A sampleKey is a stream, or only the schedules in it. It identifies a sample.
type sampleKey struct {
	stream        string
	onlySchedules bool
}

func (s *segment) sampleKey() sampleKey { return sampleKey{s.Stream, s.onlySchedules} }

// estimate estimates the segments that are too large to be read completely.
func (f *forecast) estimate(ctx context.Context, segments []*segment) error {
	var orders []*order
	for _, s := range segments {
		if s.ordered {
			orders = append(orders, newOrder(s, f.slots.cuts))
		}
	}
	if err := f.bisect(ctx, orders, f.query.maxCuts); err != nil {
		return err
	}
	for _, s := range segments {
		if err := f.sample(ctx, s); err != nil {
			return scanError(s.Stream, err)
		}
		if s.ordered {
			continue
		}
		seen, messages := f.samples[s.sampleKey()], s.messages
		looked := sum64(seen.others)
		switch f.tally.addSample(messages, seen.others, seen.unrelated); {
		case looked == 0 && seen.unrelated == 0:
			f.report.Unplaced += messages
		case seen.unrelated > 0:
			messages = uint64(float64(messages) * float64(looked) / float64(looked+seen.unrelated))
		}
		f.add(Part{Stream: s.Stream, Method: MethodSample, Messages: messages, Examined: looked})
	}
	for _, o := range orders {
		seen := f.samples[o.sampleKey()]
		f.tally.addOrder(o, seen)
		f.add(Part{Stream: o.Stream, Method: MethodOrder, Messages: o.messages, Examined: seen.onTime + sum64(seen.direct)})
	}
	return nil
}

// addOrder adds the messages of an order. The order gives the time at which a message leaves its level. If a header
// delays the message further, the sample gives its due time.
func (t tally) addOrder(o *order, seen sample) {
	later := sum64(seen.direct)
	looked := seen.onTime + later
	onTime := 1.0 // the share of the messages that are due when they leave
	if looked > 0 {
		onTime = float64(seen.onTime) / float64(looked)
	}
	variance := shareVariance(later, looked, o.messages)
	all, begun := float64(o.messages), false
	for slot, e := range o.departures() {
		t[slot].number += e.number * onTime
		t[slot].bound += e.bound
		t[slot].variance += e.number * e.number * variance
		// No message is due before the first one leaves.
		if begun = begun || e.number > 0 || seen.direct[slot] > 0; begun && looked > 0 {
			t[slot].number += all * float64(seen.direct[slot]) / float64(looked)
			t[slot].variance += all * all * shareVariance(seen.direct[slot], looked, o.messages)
		}
	}
	if unreadable := len(seen.direct) - 1; looked > 0 {
		t[unreadable].number += all * float64(seen.direct[unreadable]) / float64(looked)
		t[unreadable].variance += all * all * shareVariance(seen.direct[unreadable], looked, o.messages)
	}
}

// sample draws one random sequence from each of n equal parts of a stream, so all sequences have the same probability.
// It ignores a sequence without a message, and a message for another target. It requests each message from the leader,
// without a consumer.
func (f *forecast) sample(ctx context.Context, segment *segment) error {
	l := segment.Lane
	if _, done := f.samples[segment.sampleKey()]; done {
		return nil
	}
	first, span := l.Info.State.FirstSeq, l.Info.State.LastSeq-l.Info.State.FirstSeq+1
	n := min(max(maxSampleBytes/(l.Bytes/l.Pending+1), minSample), f.query.Sample, span)
	drawn := make([]uint64, n)
	for k := range n {
		low, high := share(span, k, n), share(span, k+1, n)
		drawn[k] = first + low + f.query.draw(high-low)
	}
	got := make([]message.Incoming, n)
	if err := concurrently(ctx, int(n), func(ctx context.Context, k int) (err error) {
		got[k], err = f.Message(ctx, l.Stream, drawn[k])
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			err = nil
		}
		got[k].Data, got[k].HeadersOnly = nil, true // so the seal is not checked: this program may not have its secret
		return err
	}); err != nil {
		return err
	}
	s := sample{direct: make([]uint64, f.slots.count()), others: make([]uint64, f.slots.count())}
	for _, in := range got {
		if in.Sequence > 0 {
			f.classify(&s, segment, in)
		}
	}
	f.samples[segment.sampleKey()] = s
	return nil
}

// share returns the beginning of part k of n.
func share(span, k, n uint64) uint64 { return span/n*k + span%n*k/n }

// classify adds one message to the sample.
func (f *forecast) classify(s *sample, segment *segment, in message.Incoming) {
	l, a := segment.Lane, f.names.Parse(in.Subject)
	switch {
	case segment.onlySchedules && !a.Schedule(),
		f.query.Target != "" && !segment.onlySchedules && !message.Match(f.query.Target, a.Target):
		return
	case segment.excludes(f.names, in.Subject):
		s.unrelated++
		return
	}
	r, problem, ok := f.reader.pending(l, in)
	switch direct := l.Kind == streams.Level && a.Form == message.FormLevel; {
	case !ok && l.Kind == streams.Level: // markers do not count
	case !ok:
		s.unrelated++
	case !direct:
		s.others[f.slot(r, problem)]++
	case problem == nil && r.NextAttempt().Equal(in.At.Add(l.spec.Delay)): // due when it leaves its level
		s.onTime++
	default:
		s.direct[f.slot(r, problem)]++
	}
}
