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
// stream for some milliseconds. A publish then gets "no responders", and nats.go repeats the publish. The time is short
// because the subjects move level by level: see the package documentation.
type move struct {
	Provisioner
	planned map[string]Spec                    // the wanted streams, and the levels that are no longer configured
	configs map[string]*jetstream.StreamConfig // the current configurations of the broker's streams
	giver   map[string]string                  // by subject: the stream that must release the subject
}

// apply creates a stream, or gives an existing stream its subjects and bounds.
func (m *move) apply(ctx context.Context, s Spec) error {
	cfg := m.configs[s.Stream]
	if cfg == nil {
		// First create the stream without the subjects of other streams: if it cannot be created, the others must keep
		// their subjects. A stream needs at least one subject. So if other streams have all subjects of the new stream,
		// the first of those streams releases its part before the creation.
		initial := s
		if initial.Subjects = m.subjectsOf(s.Subjects, ""); len(initial.Subjects) == 0 {
			giver := m.giver[s.Subjects[0]]
			initial.Subjects = m.subjectsOf(s.Subjects, giver)
			if err := m.release(ctx, giver, initial.Subjects...); err != nil {
				return err
			}
		}
		if err := m.create(ctx, initial); err != nil {
			return err
		}
		created := initial.Config()
		cfg, m.configs[s.Stream] = &created, &created
	}
	boundsChanged := applyLimits(cfg, s)
	missing := Subtract(s.Subjects, cfg.Subjects)
	for len(missing) > 0 {
		giver := m.giver[missing[0]]
		taken := m.subjectsOf(missing, giver)
		if err := m.release(ctx, giver, taken...); err != nil {
			return err
		}
		cfg.Subjects = append(slices.Clone(cfg.Subjects), taken...)
		if err := m.update(ctx, *cfg); err != nil {
			return err
		}
		missing, boundsChanged = Subtract(missing, taken), false
	}
	if boundsChanged {
		return m.update(ctx, *cfg)
	}
	return nil
}

// subjectsOf returns those of the given subjects that the giver must release. With an empty giver, it returns those
// that no stream must release.
func (m *move) subjectsOf(subjects []string, giver string) []string {
	return slices.DeleteFunc(slices.Clone(subjects), func(s string) bool { return m.giver[s] != giver })
}

// release removes subjects from the stream giver, if that stream exists.
func (m *move) release(ctx context.Context, giver string, subjects ...string) error {
	cfg := m.configs[giver]
	if cfg == nil {
		return nil
	}
	for _, s := range subjects {
		delete(m.giver, s)
	}
	cfg.Subjects = Subtract(cfg.Subjects, subjects)
	if len(cfg.Subjects) == 0 { // a stream needs a subject, so the last planned one stays
		plannedSubjects := m.planned[giver].Subjects
		cfg.Subjects = plannedSubjects[len(plannedSubjects)-1:] // of a level, the subject of hops
	}
	return m.update(ctx, *cfg)
}
