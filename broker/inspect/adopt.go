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

// maxMissing is the maximum number of levels without a stream that servedLevels accepts. If the intake's subjects leave
// out more durations, these subjects are wrong, and servedLevels does not use them.
const maxMissing = 8

// SetFields tells which fields of the configuration the operator has set. Adopt may replace the others.
type SetFields struct{ Prefix, Levels, Retry bool }

// Adoption is the result of Adopt about the prefix. A command shows it to its user.
type Adoption struct {
	Prefix  string   // the prefix found, if it differs from the default; otherwise empty
	Choices []string // the prefixes found, if there are several brokers: the operator must choose one
}

// Adopt reads the settings that the operator has not set from the metadata of the streams, which contains the prefix
// and the levels. If the server does not list the streams, Adopt keeps the defaults and returns no error: the caller's
// next request reports the reason.
func (i *Inspector) Adopt(ctx context.Context, given SetFields) (Adoption, error) {
	var adopted Adoption
	if given.Prefix && given.Levels && given.Retry {
		return adopted, nil
	}
	ctx, cancel := i.WithRefusal(ctx)
	defer cancel()
	found, all, err := i.streams.Provisioner(i.JetStream).Find(ctx)
	if err != nil {
		return adopted, nil
	}
	if prefixes := streams.Prefixes(all); len(found) == 0 && !given.Prefix {
		switch _, err := message.NewNames(strings.Join(prefixes, " ")); {
		case len(prefixes) == 1 && err == nil:
			adopted.Prefix, i.cfg.Prefix = prefixes[0], prefixes[0]
			if err := i.configure(); err != nil {
				return adopted, err
			}
			if found, all, err = i.streams.Provisioner(i.JetStream).Find(ctx); err != nil {
				return adopted, nil
			}
		case len(prefixes) > 1:
			adopted.Choices = prefixes
		}
	}
	if _, ok := streams.SpecOfKind(found, streams.Timers); ok {
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

// servedLevels returns the levels to which clients may publish. The intake listens on every plain duration that is not
// a level. So a duration that the intake leaves out is a level, and its stream may be missing.
func servedLevels(names message.Names, found []streams.Spec, all map[string]*jetstream.StreamInfo) []string {
	var served, missing []string
	subjects := make(map[string]bool)
	for _, s := range found {
		if s.Kind != streams.Level && s.Kind != streams.Intake || s.MarksErr != nil || s.Format > streams.Format {
			continue
		}
		for _, subject := range s.Subjects {
			subjects[subject] = true
		}
		if s.Kind == streams.Level && slices.Contains(s.Subjects, names.LevelFilter(s.Name)) {
			served = append(served, s.Name)
		}
	}
	if all[names.IntakeStream()] != nil {
		for _, plain := range levels.PlainDurations() {
			if !subjects[names.LevelFilter(plain)] && all[names.LevelStream(plain)] == nil {
				missing = append(missing, plain)
			}
		}
	}
	if len(served) > 0 && len(missing) <= maxMissing {
		served = append(served, missing...)
	}
	return served
}

// retryLevels returns the levels of the existing retry lanes. It returns none if all of them are default levels. In
// that case Adopt keeps the default levels, and a default level without a retry lane is reported as missing.
func retryLevels(found []streams.Spec) []string {
	var all []string
	for _, s := range found {
		if s.Kind == streams.Retry && s.MarksErr == nil && s.Format <= streams.Format {
			all = append(all, s.Name)
		}
	}
	if len(streams.Subtract(all, strings.Fields(config.DefaultRetry))) == 0 {
		return nil
	}
	return all
}
