package inspect

import (
	"context"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/config"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/levels"
)

// mostHoles is how many levels the intake may leave out. If it leaves out more, the intake itself is configured
// wrongly, and nothing is concluded from it.
const mostHoles = 8

// Given tells which fields of the configuration somebody set. The others are defaults, and may be replaced.
type Given struct{ Prefix, Levels, Retry bool }

// Adopted is what was found about the prefix. Whoever reads the output should know it.
type Adopted struct {
	Prefix  string   // that is used instead of the default; empty when the default is
	Choices []string // the prefixes of which one has to be chosen, since there are several
}

// Adopt takes from the streams what the configuration leaves open: a person's shell seldom has the broker's settings,
// and the streams say themselves whose they are and which levels there are. Where they cannot be listed, the defaults
// stay; the next question finds out why.
func (i *Inspector) Adopt(ctx context.Context, given Given) (Adopted, error) {
	var adopted Adopted
	if given.Prefix && given.Levels && given.Retry {
		return adopted, nil
	}
	ctx, cancel := i.Allowed(ctx)
	defer cancel()
	found, all, err := i.streams.Provisioner(i.JetStream).Find(ctx)
	if err != nil {
		return adopted, nil
	}
	if others := streams.Prefixes(all); len(found) == 0 && !given.Prefix {
		switch _, err := message.NewNames(strings.Join(others, " ")); {
		case len(others) == 1 && err == nil:
			adopted.Prefix, i.cfg.Prefix = others[0], others[0]
			if err := i.configure(); err != nil {
				return adopted, err
			}
			if found, all, err = i.streams.Provisioner(i.JetStream).Find(ctx); err != nil {
				return adopted, nil
			}
		case len(others) > 1:
			adopted.Choices = others
		}
	}
	if slices.ContainsFunc(found, func(s streams.Spec) bool { return s.Kind == streams.Timers }) {
		i.cfg.Timers = true
	}
	if ladder, err := levels.Parse(strings.Join(servedLevels(i.names, found, all), ",")); err == nil && !given.Levels {
		i.cfg.Ladder = ladder
	}
	if ladder, err := levels.Parse(strings.Join(retryLevels(found), ",")); err == nil && !given.Retry {
		i.cfg.RetryLadder = ladder
	}
	return adopted, i.configure()
}

// servedLevels are the levels that take messages of clients. The intake listens on every plain duration that is no
// level. A duration that it leaves out, and that has no stream, is a level whose stream is missing.
func servedLevels(names message.Names, found []streams.Spec, all map[string]*jetstream.StreamInfo) []string {
	var served, holes []string
	takes := make(map[string]bool)
	for _, s := range found {
		if s.Kind != streams.Level && s.Kind != streams.Intake || s.Broken != nil || s.Format > streams.Format {
			continue
		}
		for _, subject := range s.Subjects {
			takes[subject] = true
		}
		if s.Kind == streams.Level && slices.Contains(s.Subjects, names.LevelFilter(s.Name)) {
			served = append(served, s.Name)
		}
	}
	if all[names.IntakeStream()] != nil {
		for _, plain := range levels.Whole() {
			if !takes[names.LevelFilter(plain)] && all[names.LevelStream(plain)] == nil {
				holes = append(holes, plain)
			}
		}
	}
	if len(served) > 0 && len(holes) <= mostHoles {
		served = append(served, holes...)
	}
	return served
}

// retryLevels are the levels of the retry lanes that there are. It returns none if all of them are default ones: then
// the broker has the defaults, and those without a lane are missing.
func retryLevels(found []streams.Spec) []string {
	standard := strings.Fields(config.DefaultRetry)
	var all []string
	foreign := false
	for _, s := range found {
		if s.Kind == streams.Retry && s.Broken == nil && s.Format <= streams.Format {
			all = append(all, s.Name)
			foreign = foreign || !slices.Contains(standard, s.Name)
		}
	}
	if !foreign {
		return nil
	}
	return all
}
