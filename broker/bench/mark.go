package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/streams"
)

const (
	// metaBench marks the streams that a run made itself, with its prefix. The broker's have marks of their own.
	metaBench = "delaybroker.bench"
	// beatEvery is how often a run says that it is alive. One that was silent for deadAfter is dead: its processes end
	// with it, so nothing uses its streams any more.
	beatEvery = 5 * time.Second
	deadAfter = time.Minute
)

// A site is a server with what a run does to it.
type site struct {
	js       jetstream.JetStream
	api      jsapi.Client
	names    Names
	replicas int // of the streams that the run makes
}

// mark makes the stream that says that a run is on. It is made before everything else of the run, and removed after it:
// whatever a killed run left, the next one finds by it.
func (s site) mark(ctx context.Context) error {
	_, err := s.create(ctx, jetstream.StreamConfig{
		Name: s.names.runStream(), Subjects: []string{s.names.run()}, MaxMsgs: 1,
		Description: "delaybroker bench: a run is on; to be removed when its last message is older than a minute",
	})
	if err == nil {
		err = s.beat(ctx)
	}
	if err != nil {
		return fmt.Errorf("mark the run: %w", err)
	}
	return nil
}

// create makes a stream with the mark of the run.
func (s site) create(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	cfg.Metadata, cfg.Replicas = map[string]string{metaBench: s.names.prefix}, s.replicas
	stream, err := s.js.CreateStream(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", cfg.Name, err)
	}
	return stream, nil
}

// beat says that the run is alive.
func (s site) beat(ctx context.Context) error {
	_, err := s.js.Publish(ctx, s.names.run(), nil)
	return err
}

// keepMarked beats until ctx ends. A beat that fails is made up for by the next.
func (s site) keepMarked(ctx context.Context) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = s.beat(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// sweep removes what killed runs have left, and returns their prefixes. Each has a stream that it marked, with a name
// and a prefix that only runs have, and without a beat for a minute of the server's clock.
func (s site) sweep(ctx context.Context) (swept []string, err error) {
	all, _, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	for _, info := range all {
		dead, ok := deadRun(info)
		if !ok {
			continue
		}
		s.names = dead
		if err := s.remove(ctx); err != nil {
			return swept, err
		}
		swept = append(swept, dead.prefix)
	}
	return swept, nil
}

// deadRun is the names of a run whose mark this is, if it is one and the run is dead.
func deadRun(info *jetstream.StreamInfo) (Names, bool) {
	prefix := info.Config.Metadata[metaBench]
	names, err := NewNames(prefix)
	if err != nil || !ownPrefix.MatchString(prefix) || info.Config.Name != names.runStream() {
		return Names{}, false
	}
	last := info.Created
	if info.State.LastTime.After(last) {
		last = info.State.LastTime
	}
	return names, info.TimeStamp.Sub(last) > deadAfter // all by the server's clock
}

// remove deletes all streams of the run, its mark last.
func (s site) remove(ctx context.Context) error {
	all, away, err := s.list(ctx)
	if err != nil {
		return err
	}
	var problems []error
	marked := false
	for _, info := range all {
		switch {
		case info.Config.Name == s.names.runStream():
			marked = true
		case s.names.own(info):
			problems = append(problems, s.drop(ctx, info.Config.Name))
		}
	}
	for _, name := range away {
		if strings.HasPrefix(name, s.names.stem()) {
			problems = append(problems, fmt.Errorf("remove %s: it has no leader; another run will", name))
		}
	}
	err = errors.Join(problems...)
	if err == nil && marked {
		err = s.drop(ctx, s.names.runStream())
	}
	return err
}

// removeBroker deletes the streams of the broker, so that each of its turns begins with new ones.
func (s site) removeBroker(ctx context.Context) error {
	all, _, err := s.list(ctx)
	if err != nil {
		return err
	}
	var problems []error
	for _, info := range all {
		if info.Config.Metadata[metaBench] == "" && s.names.own(info) {
			problems = append(problems, s.drop(ctx, info.Config.Name))
		}
	}
	return errors.Join(problems...)
}

// own reports whether a stream is of this run: made by it, or by the broker of its prefix.
func (n Names) own(info *jetstream.StreamInfo) bool {
	if info.Config.Metadata[metaBench] == n.prefix {
		return true
	}
	prefixes := streams.Prefixes(map[string]*jetstream.StreamInfo{info.Config.Name: info})
	return n.broker.Own(info.Config.Name) && len(prefixes) == 1 && prefixes[0] == n.prefix
}

func (s site) drop(ctx context.Context, stream string) error {
	err := s.js.DeleteStream(ctx, stream)
	if err == nil || errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	return fmt.Errorf("remove %s: %w", stream, err)
}

// list asks again while others make and remove streams.
func (s site) list(ctx context.Context) (all []*jetstream.StreamInfo, away []string, err error) {
	const tries = 20
	for range tries {
		if all, away, err = s.api.Streams(ctx); !errors.Is(err, jsapi.ErrChanged) {
			break
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list the streams: %w", err)
	}
	return all, away, nil
}
