package layout

import (
	"context"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// move brings streams to what they are to listen on. A level that comes or goes leaves its clients' subjects to the
// intake, or takes them from there, while clients publish.
//
// The server lets no two streams listen on one subject, not even for a moment, so there is a time in which a subject
// has none: from when one stream has let it go until the next one takes it, two changes of a stream. In that time, some
// milliseconds, a publish gets "no responders", which nats.go and others repeat by themselves. It is so short because
// the subjects move level by level; to let everything go first and take it then was a tenth of a second for forty
// levels.
type move struct {
	Provisioner
	target map[string]Spec
	has    map[string]*jetstream.StreamConfig // the streams that exist and are ours, as they are now
	giver  map[string]string                  // by subject: the stream that has it and should not
}

// bring makes a stream listen on what it should, or creates it.
func (m *move) bring(ctx context.Context, s Spec) error {
	has := m.has[s.Stream]
	if has == nil {
		for _, subject := range s.Subjects {
			if err := m.letGo(ctx, m.giver[subject], m.taking(s.Subjects, m.giver[subject])...); err != nil {
				return err
			}
		}
		return m.create(ctx, s)
	}
	bounded := limit(has, s)
	missing := minus(s.Subjects, has.Subjects)
	for len(missing) > 0 {
		giver := m.giver[missing[0]]
		taken := m.taking(missing, giver)
		if err := m.letGo(ctx, giver, taken...); err != nil {
			return err
		}
		has.Subjects = append(slices.Clone(has.Subjects), taken...)
		if err := m.update(ctx, *has); err != nil {
			return err
		}
		missing, bounded = minus(missing, taken), false
	}
	if bounded {
		return m.update(ctx, *has)
	}
	return nil
}

// taking are those of the subjects that one stream has, or none of ours.
func (m *move) taking(subjects []string, giver string) []string {
	return slices.DeleteFunc(slices.Clone(subjects), func(s string) bool { return m.giver[s] != giver })
}

// letGo takes subjects from the stream that has them, if one has.
func (m *move) letGo(ctx context.Context, giver string, subjects ...string) error {
	has := m.has[giver]
	if has == nil {
		return nil
	}
	for _, s := range subjects {
		delete(m.giver, s)
	}
	has.Subjects = minus(has.Subjects, subjects)
	if len(has.Subjects) == 0 { // a stream must listen on something
		keeps := m.target[giver].Subjects
		has.Subjects = keeps[len(keeps)-1:]
	}
	return m.update(ctx, *has)
}
