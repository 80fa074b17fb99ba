package lane

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Streams is the part of JetStream that provisioning needs.
type Streams interface {
	ListStreams(ctx context.Context, opts ...jetstream.StreamListOpt) jetstream.StreamInfoLister
	CreateStream(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error)
	UpdateStream(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error)
}

// Provisioner brings the streams of one prefix into being.
type Provisioner struct {
	Streams Streams
	Prefix  string
	Roots   []string                                  // the first tokens of our subjects; others are the operator's
	Delay   func(level string) (time.Duration, error) // reads the name of a level
	// Retired gives the subjects that a level keeps when it takes no new messages: only those between lanes.
	Retired func(level Spec) []string
	// Create allows to create and change streams. Otherwise a missing stream is an error.
	Create bool
}

// Provision makes sure that the wanted streams exist and returns all streams marked with the prefix, those that nobody
// wants any more included: the streams are the truth, and a level that left the configuration is served until it is
// empty. Of existing streams it changes the subjects of those it marked itself, and nothing else.
//
// A subject may move from one stream to another (a level that comes or goes leaves it to the intake), and no two
// streams may listen on one subject. So everything first lets go, then everything takes.
func (p Provisioner) Provision(ctx context.Context, want []Spec) ([]Spec, []Drift, error) {
	found, all, err := p.find(ctx)
	if err != nil {
		return nil, nil, err
	}
	target := make(map[string]Spec, len(want))
	for _, s := range want {
		target[s.Stream] = s
	}
	for _, s := range found {
		if _, wanted := target[s.Stream]; !wanted && s.Kind == Level && s.Format <= Format {
			s.Subjects = p.Retired(s)
			target[s.Stream] = s
		}
	}
	if p.Create {
		if err := p.reconcile(ctx, want, target, all); err != nil {
			return nil, nil, err
		}
		if found, all, err = p.find(ctx); err != nil {
			return nil, nil, err
		}
	}
	var drift []Drift
	var missing []string
	for _, s := range want {
		has, ok := all[s.Stream]
		switch {
		case !ok:
			missing = append(missing, s.Stream)
		case newer(has):
			// Nothing about it is ours to judge; it is among the found, with its format.
		case !sameMarks(s.config(), has):
			return nil, nil, fmt.Errorf("%w: %s", ErrForeignStream, s.Stream)
		default:
			drift = append(drift, s.drift(has)...)
		}
	}
	if len(missing) > 0 {
		return nil, nil, fmt.Errorf("%w: %d of %d: %s", ErrMissingStreams, len(missing), len(want), strings.Join(missing, " "))
	}
	return found, drift, nil
}

// find lists the streams that carry our marks, and the configurations of all.
func (p Provisioner) find(ctx context.Context) ([]Spec, map[string]jetstream.StreamConfig, error) {
	var found []Spec
	all := make(map[string]jetstream.StreamConfig)
	list := p.Streams.ListStreams(ctx)
	for info := range list.Info() {
		all[info.Config.Name] = info.Config
		spec, ours, err := specOf(info.Config, p.Prefix, p.Delay)
		if err != nil {
			return nil, nil, err
		}
		if ours {
			found = append(found, spec)
		}
	}
	if err := list.Err(); err != nil {
		return nil, nil, fmt.Errorf("list streams: %w", err)
	}
	slices.SortFunc(found, func(a, b Spec) int { return strings.Compare(a.Stream, b.Stream) })
	return found, all, nil
}

// reconcile lets go, creates, and takes, in this order.
func (p Provisioner) reconcile(ctx context.Context, want []Spec, target map[string]Spec, all map[string]jetstream.StreamConfig) error {
	for name, s := range target {
		has, ok := all[name]
		if !ok || !sameMarks(s.config(), has) {
			continue
		}
		if extra := ours(p.Roots, minus(has.Subjects, s.Subjects)); len(extra) > 0 {
			has.Subjects = minus(has.Subjects, extra)
			if len(has.Subjects) == 0 { // a stream must listen on something
				has.Subjects = s.Subjects[len(s.Subjects)-1:]
			}
			if err := p.update(ctx, has); err != nil {
				return err
			}
			all[name] = has
		}
	}
	// The intake listens on what is no level, so it comes last.
	for _, s := range want {
		if _, exists := all[s.Stream]; exists {
			continue
		}
		if _, err := p.Streams.CreateStream(ctx, s.config()); err != nil {
			return fmt.Errorf("create stream %s: %w", s.Stream, err)
		}
	}
	for name, s := range target {
		has, ok := all[name]
		if !ok || !sameMarks(s.config(), has) {
			continue
		}
		if missing := minus(s.Subjects, has.Subjects); len(missing) > 0 {
			has.Subjects = append(slices.Clone(has.Subjects), missing...)
			if err := p.update(ctx, has); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p Provisioner) update(ctx context.Context, cfg jetstream.StreamConfig) error {
	_, err := p.Streams.UpdateStream(ctx, cfg)
	if err != nil {
		return fmt.Errorf("update the subjects of stream %s: %w", cfg.Name, err)
	}
	return nil
}

// ours are the subjects below our roots; an operator may have added others.
func ours(roots, subjects []string) []string {
	return slices.DeleteFunc(subjects, func(s string) bool {
		root, _, _ := strings.Cut(s, ".")
		return !slices.Contains(roots, root)
	})
}
