package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/layout"
	"delaybroker/broker/message"
	"delaybroker/levels"
)

// mostHoles is how many levels may be missing for the intake to be believed about them. Where it lacks more, it is the
// intake that is not as it should be.
const mostHoles = 8

// adopt takes from the streams what the environment leaves open: a person's shell seldom has the broker's settings, and the
// streams say themselves whose they are and which levels there are. Where they cannot be listed, the defaults stay; the
// verb finds out why.
func (o *operator) adopt(ctx context.Context, a *app) error {
	if isSet("DELAY_PREFIX") && isSet("DELAY_LEVELS") && isSet("DELAY_RETRY") {
		return nil
	}
	ctx, cancel := o.allowed(ctx)
	defer cancel()
	found, all, err := o.streams.Provisioner(o.js).Find(ctx)
	if err != nil {
		return nil
	}
	if others := layout.Prefixes(all); len(found) == 0 && !isSet("DELAY_PREFIX") {
		switch names, err := message.NewNames(strings.Join(others, " ")); {
		case len(others) == 1 && err == nil:
			fmt.Fprintf(a.stderr, "using the prefix %s: the streams here are of that one, and DELAY_PREFIX is not set\n", others[0])
			o.names, o.cfg.broker.Prefix = names, others[0]
			if o.streams, err = broker.StreamsOf(o.cfg.broker); err != nil {
				return err
			}
			if found, all, err = o.streams.Provisioner(o.js).Find(ctx); err != nil {
				return nil
			}
		case len(others) > 1:
			names := printable(strings.Join(others, ", "), 600)
			fmt.Fprintln(a.stderr, "there are streams of several prefixes here: set DELAY_PREFIX to one of "+names)
		}
	}
	if ladder, err := levels.Parse(strings.Join(servedLevels(o.names, found, all), ",")); err == nil && !isSet("DELAY_LEVELS") {
		o.cfg.broker.Ladder = ladder
	}
	if ladder, err := levels.Parse(strings.Join(retryLevels(found), ",")); err == nil && !isSet("DELAY_RETRY") {
		o.cfg.broker.RetryLadder = ladder
	}
	o.streams, err = broker.StreamsOf(o.cfg.broker)
	return err
}

// servedLevels are the levels that take messages of clients. The intake listens on every plain duration that is no level, so
// where it leaves one out and there is no stream for it, a level is missing.
func servedLevels(names message.Names, found []layout.Spec, all map[string]*jetstream.StreamInfo) []string {
	var served, holes []string
	takes := make(map[string]bool)
	for _, s := range found {
		if s.Kind != layout.Level && s.Kind != layout.Intake || s.Broken != nil || s.Format > layout.Format {
			continue
		}
		for _, subject := range s.Subjects {
			takes[subject] = true
		}
		if s.Kind == layout.Level && slices.Contains(s.Subjects, names.LevelFilter(s.Name)) {
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

// retryLevels are those of the retry lanes that there are, or none where they are some of the default ones, of which the
// others are missing then.
func retryLevels(found []layout.Spec) []string {
	standard := strings.Fields(broker.DefaultRetry)
	var all []string
	foreign := false
	for _, s := range found {
		if s.Kind == layout.Retry && s.Broken == nil && s.Format <= layout.Format {
			all = append(all, s.Name)
			foreign = foreign || !slices.Contains(standard, s.Name)
		}
	}
	if !foreign {
		return nil
	}
	return all
}
