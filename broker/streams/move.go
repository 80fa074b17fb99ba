package streams

import (
	"context"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// move changes the subjects of streams while clients publish. A new level takes its clients' subjects from the intake,
// and a removed level gives them to the intake.
//
// The server does not let two streams listen on one subject, not even for a moment. So during a move, a subject has no
// stream for some milliseconds. A publish then gets "no responders", and nats.go and other clients repeat the publish.
// The time is short because the subjects move level by level: see the package documentation.
type move struct {
	Provisioner
	target map[string]Spec
	has    map[string]*jetstream.StreamConfig // the current configurations of the broker's streams
	giver  map[string]string                  // by subject: the stream that must release the subject
}

// apply creates a stream with its subjects, or gives an existing stream its subjects.
func (m *move) apply(ctx context.Context, s Spec) error {
	has := m.has[s.Stream]
	if has == nil {
		// First create the stream without the subjects of other streams: if it cannot be created, the others must keep
		// their subjects. A stream needs at least one subject. So if other streams have all subjects of the new stream,
		// the first of those streams releases its part before the creation.
		first := s
		if first.Subjects = m.subjectsOf(s.Subjects, ""); len(first.Subjects) == 0 {
			giver := m.giver[s.Subjects[0]]
			first.Subjects = m.subjectsOf(s.Subjects, giver)
			if err := m.release(ctx, giver, first.Subjects...); err != nil {
				return err
			}
		}
		if err := m.create(ctx, first); err != nil {
			return err
		}
		cfg := first.Config()
		has, m.has[s.Stream] = &cfg, &cfg
	}
	bounded := applyLimits(has, s)
	missing := Subtract(s.Subjects, has.Subjects)
	for len(missing) > 0 {
		giver := m.giver[missing[0]]
		taken := m.subjectsOf(missing, giver)
		if err := m.release(ctx, giver, taken...); err != nil {
			return err
		}
		has.Subjects = append(slices.Clone(has.Subjects), taken...)
		if err := m.update(ctx, *has); err != nil {
			return err
		}
		missing, bounded = Subtract(missing, taken), false
	}
	if bounded {
		return m.update(ctx, *has)
	}
	return nil
}

// subjectsOf returns the subjects that the giver must release. With an empty giver, it returns the subjects that no
// stream of the broker has.
func (m *move) subjectsOf(subjects []string, giver string) []string {
	return slices.DeleteFunc(slices.Clone(subjects), func(s string) bool { return m.giver[s] != giver })
}

// release removes subjects from the stream giver, if that stream exists.
func (m *move) release(ctx context.Context, giver string, subjects ...string) error {
	has := m.has[giver]
	if has == nil {
		return nil
	}
	for _, s := range subjects {
		delete(m.giver, s)
	}
	has.Subjects = Subtract(has.Subjects, subjects)
	if len(has.Subjects) == 0 { // a stream needs at least one subject
		keeps := m.target[giver].Subjects
		has.Subjects = keeps[len(keeps)-1:]
	}
	return m.update(ctx, *has)
}
