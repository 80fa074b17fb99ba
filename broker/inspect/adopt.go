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

// maxMissing is the maximum number of levels without a stream that servedLevels returns. If more durations are missing
// in the intake, the intake's subjects are incomplete, and servedLevels returns only levels with a stream.
const maxMissing = 8

// Overrides reports which fields of the configuration the operator has set. Adopt does not replace these fields.
type Overrides struct{ Prefix, Levels, Retry bool }

// Adoption reports the prefixes that Adopt found.
type Adoption struct {
	Prefix  string   // the prefix that replaces the default; otherwise empty
	Choices []string // the prefixes found, if there are several brokers: the operator must choose one
}

// Adopt reads the prefix, the levels and the retry levels from the streams, unless the operator has set them. It also
// reads whether there are timers. It changes the prefix only if the default prefix has no streams, and exactly one
// other prefix has. If the server does not list the streams, Adopt keeps the defaults and returns no error: the
// caller's next request reports the reason.
func (i *Inspector) Adopt(ctx context.Context, overrides Overrides) (Adoption, error) {
	var adoption Adoption
	ctx, cancel := i.WithRefusal(ctx)
	defer cancel()
	found, infos, err := i.streams.Provisioner(i.JetStream).Find(ctx)
	if err != nil {
		return adoption, nil
	}
	if prefixes := streams.Prefixes(infos); len(found) == 0 && !overrides.Prefix {
		switch _, err := message.NewNames(strings.Join(prefixes, " ")); {
		case len(prefixes) == 1 && err == nil:
			adoption.Prefix, i.cfg.Prefix = prefixes[0], prefixes[0]
			if err := i.configure(); err != nil {
				return adoption, err
			}
			if found, infos, err = i.streams.Provisioner(i.JetStream).Find(ctx); err != nil {
				return adoption, nil
			}
		case len(prefixes) > 1:
			adoption.Choices = prefixes
		}
	}
	if _, ok := streams.SpecOfKind(found, streams.Timers); ok {
		i.cfg.Timers = true
	}
	served := servedLevels(i.names, found, infos)
	if ladder, err := levels.Parse(strings.Join(served, ",")); err == nil && !overrides.Levels {
		i.cfg.Ladder = ladder
	}
	if ladder, err := levels.Parse(strings.Join(retryLevels(found), ",")); err == nil && !overrides.Retry {
		i.cfg.RetryLadder = ladder
	}
	return adoption, i.configure()
}

// servedLevels returns the levels to which clients may publish. The intake listens on every plain duration that is not
// a level. So a duration that the intake lacks is a level, even if no stream exists for it.
func servedLevels(names message.Names, found []streams.Spec, infos map[string]*jetstream.StreamInfo) []string {
	var served, missing []string
	subjects := make(map[string]bool)
	for _, s := range found {
		if s.Kind != streams.Level && s.Kind != streams.Intake || s.MarksErr != nil {
			continue
		}
		for _, subject := range s.Subjects {
			subjects[subject] = true
		}
		if s.Kind == streams.Level && slices.Contains(s.Subjects, names.LevelFilter(s.Name)) {
			served = append(served, s.Name)
		}
	}
	if infos[names.IntakeStream()] != nil {
		for _, plain := range levels.PlainDurations() {
			if !subjects[names.LevelFilter(plain)] && infos[names.LevelStream(plain)] == nil {
				missing = append(missing, plain)
			}
		}
	}
	if len(served) > 0 && len(missing) <= maxMissing {
		served = append(served, missing...)
	}
	return served
}

// retryLevels returns the levels of the existing retry lanes, or nil if all of them are default levels. For nil, Adopt
// keeps the default levels, so Lanes reports a missing default retry lane.
func retryLevels(found []streams.Spec) []string {
	var names []string
	for _, s := range found {
		if s.Kind == streams.Retry && s.MarksErr == nil {
			names = append(names, s.Name)
		}
	}
	if len(streams.Subtract(names, strings.Fields(config.DefaultRetry))) == 0 {
		return nil
	}
	return names
}
