package doctor

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
)

// With more than maxSubjects subjects, dead letters are not counted: the server's answer would list each subject.
const maxSubjects = 5000

// countCodes counts the dead letters by code.
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
