package inspect

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/broker/streams"
)

const (
	// mostSamples is how many messages of each retry lane are looked at, from the first to the last.
	mostSamples = 8
	// mostSubjects bounds an answer that names every subject of the dead letters.
	mostSubjects = 5000
)

// lookCloser finds out why deliveries are refused, and what the dead letters have in common. It asks nothing that a
// broker's user may not ask, and a few samples are enough to name what is wrong.
func (i *Inspector) lookCloser(ctx context.Context, lanes []Lane) {
	for at := range lanes {
		switch l := &lanes[at]; {
		case l.info == nil || l.Pending == 0:
		case l.Kind == streams.Retry:
			l.samples = i.sample(ctx, *l)
		case l.Kind == streams.Dead && l.info.State.NumSubjects <= mostSubjects:
			l.codes = i.countCodes(ctx, l.Stream)
		}
	}
}

// sample reads messages of a retry lane. What cannot be read is left out.
func (i *Inspector) sample(ctx context.Context, l Lane) (all []message.Request) {
	first, last := l.info.State.FirstSeq, l.info.State.LastSeq
	step := max(1, (last-first)/(mostSamples-1))
	for sequence := first; sequence <= last; sequence += step {
		_ = i.ask(ctx, func(ctx context.Context) error { // another may be there
			in, err := i.Stored(ctx, l.Stream, sequence)
			if err != nil {
				return err
			}
			if r, problem := i.Policy().Parse(in); problem == nil {
				all = append(all, r)
			}
			return nil
		})
	}
	return all
}

// countCodes counts dead letters by their subjects.
func (i *Inspector) countCodes(ctx context.Context, stream string) map[message.Code]uint64 {
	codes := make(map[message.Code]uint64)
	_ = i.ask(ctx, func(ctx context.Context) error { // then they are not known
		s, err := i.JetStream.Stream(ctx, stream)
		if err != nil {
			return err
		}
		info, err := s.Info(ctx, jetstream.WithSubjectFilter(i.names.DeadFilter()))
		if err != nil {
			return err
		}
		for subject, n := range info.State.Subjects {
			if code, _, ok := i.names.ParseDead(subject); ok {
				codes[code] += n
			}
		}
		return nil
	})
	return codes
}
