package inspect

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/broker/streams"
)

// The size of a stream's sample. The server sends the bodies too, so a sample of large messages has fewer messages.
const (
	maxSample      = 2000     // messages, unless ForecastQuery.Sample is set
	maxSampleBytes = 32 << 20 // estimated from the average size of the stream's messages
	minSample      = 50       // messages, even if they exceed maxSampleBytes
)

// A sample counts randomly chosen messages of one stream.
type sample struct {
	onTime    uint64   // published by clients to a level, and due at the time when they leave it
	deferred  []uint64 // the other messages that clients published to a level: due later, or unreadable; by slot
	others    []uint64 // all other pending messages, by slot
	unrelated uint64   // counted in segment.messages, but not pending, or for another target
}

// A sampleKey identifies a sample of a stream, or of only the schedules in the stream.
type sampleKey struct {
	stream        string
	onlySchedules bool
}

func (s *segment) sampleKey() sampleKey { return sampleKey{s.Stream, s.onlySchedules} }

// estimate adds segments to the tally without reading all their messages.
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
		counts, messages := f.samples[s.sampleKey()], s.messages
		examined := sum64(counts.others)
		sampled := examined + counts.unrelated
		for slot, hits := range counts.others {
			f.tally.addShare(slot, messages, hits, sampled)
		}
		switch {
		case sampled == 0:
			f.report.Unplaced += messages
		case counts.unrelated > 0:
			messages = uint64(float64(messages) * float64(examined) / float64(sampled))
		}
		f.addSampled(messages, examined)
	}
	for _, o := range orders {
		counts := f.samples[o.sampleKey()]
		f.tally.addOrder(o, counts)
		examined := counts.onTime + sum64(counts.deferred)
		f.report.Ordered += o.messages
		f.addSampled(o.messages, examined)
	}
	return nil
}

// addOrder adds the messages of an order. The order gives the times at which the messages leave their level. The sample
// gives the share and the due times of the messages that are due after they leave, by a time in a header.
func (t tally) addOrder(o *order, counts sample) {
	deferred := sum64(counts.deferred)
	examined := counts.onTime + deferred
	onTime := 1.0 // the share of the messages that are due when they leave
	if examined > 0 {
		onTime = float64(counts.onTime) / float64(examined)
	}
	variance := shareVariance(deferred, examined, o.messages)
	started := false
	for slot, e := range o.departures() {
		t[slot].number += e.number * onTime
		t[slot].bound += e.bound
		t[slot].variance += e.number * e.number * variance
		// No message is due before the first one leaves.
		if started = started || e.number > 0 || counts.deferred[slot] > 0; started && examined > 0 {
			t.addShare(slot, o.messages, counts.deferred[slot], examined)
		}
	}
	if unreadable := len(counts.deferred) - 1; examined > 0 {
		t.addShare(unreadable, o.messages, counts.deferred[unreadable], examined)
	}
}

// sample draws one random sequence from each of n equal parts of a stream, so all sequences have almost the same
// probability. It ignores a sequence without a message.
func (f *forecast) sample(ctx context.Context, segment *segment) error {
	l := segment.Lane
	if _, done := f.samples[segment.sampleKey()]; done {
		return nil
	}
	first, span := l.Info.State.FirstSeq, l.Info.State.LastSeq-l.Info.State.FirstSeq+1
	n := min(max(maxSampleBytes/(l.Bytes/l.Pending+1), minSample), f.query.Sample, span)
	sequences := make([]uint64, n)
	for k := range n {
		low, high := partStart(span, k, n), partStart(span, k+1, n)
		sequences[k] = first + low + f.query.draw(high-low)
	}
	messages := make([]message.Incoming, n)
	if err := fanOut(ctx, int(n), func(ctx context.Context, k int) (err error) {
		messages[k], err = f.Message(ctx, l.Stream, sequences[k])
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			err = nil
		}
		// Without the body, no seal is checked: this program may lack the secret.
		messages[k].Data, messages[k].HeadersOnly = nil, true
		return err
	}); err != nil {
		return err
	}
	s := sample{deferred: make([]uint64, f.slots.count()), others: make([]uint64, f.slots.count())}
	for _, in := range messages {
		if in.Sequence > 0 {
			f.classify(&s, segment, in)
		}
	}
	f.samples[segment.sampleKey()] = s
	return nil
}

// partStart returns the offset of part k, if n equal parts divide the span.
func partStart(span, k, n uint64) uint64 { return span/n*k + span%n*k/n }

func (f *forecast) classify(s *sample, segment *segment, in message.Incoming) {
	l, a := segment.Lane, f.names.Parse(in.Subject)
	switch {
	case segment.onlySchedules && !a.IsSchedule(),
		f.query.Target != "" && !segment.onlySchedules && !message.Match(f.query.Target, a.Target):
		return
	case segment.excludes(f.names, in.Subject):
		s.unrelated++
		return
	}
	r, problem, ok := f.parser.pending(l, in)
	switch client := l.Kind == streams.Level && a.Form == message.FormLevel; {
	case !ok && l.Kind == streams.Level: // the marker of a timer, which is counted in the lane of timers
	case !ok:
		s.unrelated++
	case !client:
		s.others[f.slot(r, problem)]++
	case problem == nil && r.NextAttempt().Equal(in.At.Add(l.spec.Delay)): // due when it leaves its level
		s.onTime++
	default:
		s.deferred[f.slot(r, problem)]++
	}
}
