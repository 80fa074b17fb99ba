package doctor

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/broker/timer/entry"
)

const (
	// maxSamples is the approximate number of messages that sample reads from a retry lane, evenly spaced.
	maxSamples = 8
	// With more than maxSubjects subjects, dead letters are not counted: the server's answer would list each subject.
	maxSubjects = 5000
)

// sampleLanes samples the refused messages, and counts the dead letters by code. It needs only the permissions of a
// broker's user.
func (i gatherer) sampleLanes(ctx context.Context, f *Facts) {
	for _, l := range f.lanes.Lanes {
		switch {
		case l.Info == nil || l.Pending == 0:
		case l.Kind == streams.Retry:
			f.retrying = append(f.retrying, i.sample(ctx, l)...)
		case l.Kind == streams.Dead && l.Info.State.NumSubjects <= maxSubjects:
			f.codes = i.countCodes(ctx, l.Stream)
		}
	}
}

// sample reads messages of a retry lane. It ignores unreadable messages.
func (i gatherer) sample(ctx context.Context, l inspect.Lane) (requests []message.Request) {
	first, last := l.Info.State.FirstSeq, l.Info.State.LastSeq
	step := max(1, (last-first)/(maxSamples-1))
	for sequence := first; sequence <= last; sequence += step {
		_ = i.Ask(ctx, func(ctx context.Context) error { // after an error, the next message may still be readable
			in, err := i.Message(ctx, l.Stream, sequence)
			if err != nil {
				return err
			}
			if r, problem := entry.ParseAny(i.Policy(), in); problem == nil {
				requests = append(requests, r.Request)
			}
			return nil
		})
	}
	return requests
}

func (i gatherer) countCodes(ctx context.Context, stream string) map[message.Code]uint64 {
	codes := make(map[message.Code]uint64)
	_ = i.Ask(ctx, func(ctx context.Context) error { // after an error the codes are unknown
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
