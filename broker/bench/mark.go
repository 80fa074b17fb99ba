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
	// metaBench is the metadata key of streams that a run creates. Its value is the prefix. A broker's streams have
	// other metadata.
	metaBench = "delaybroker.bench"
	// beatEvery is the interval of a run's heartbeat. A run without a heartbeat for deadAfter is dead. Its processes
	// end with it, so its streams are unused.
	beatEvery = 5 * time.Second
	deadAfter = time.Minute
)

// A site is a server and the streams of a run on it.
type site struct {
	js       jetstream.JetStream
	api      jsapi.Client
	names    Names
	replicas int // replicas of the streams that the run creates
}

// mark creates the run marker, before all other streams of the run. The run removes it last. So the next run can find
// the streams of a killed run.
func (s site) mark(ctx context.Context) error {
	_, err := s.create(ctx, jetstream.StreamConfig{
		Name: s.names.runStream(), Subjects: []string{s.names.run()}, MaxMsgs: 1,
		Description: "delaybroker bench: run marker; remove it when its last message is older than a minute",
	})
	if err == nil {
		err = s.beat(ctx)
	}
	if err != nil {
		return fmt.Errorf("mark the run: %w", err)
	}
	return nil
}

// create creates a stream with the metadata of the run.
func (s site) create(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	cfg.Metadata, cfg.Replicas = map[string]string{metaBench: s.names.prefix}, s.replicas
	stream, err := s.js.CreateStream(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", cfg.Name, err)
	}
	return stream, nil
}

// beat publishes a heartbeat.
func (s site) beat(ctx context.Context) error {
	_, err := s.js.Publish(ctx, s.names.run(), nil)
	return err
}

// keepMarked publishes heartbeats until ctx ends. It ignores a failed heartbeat, since the next one is in time.
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

// sweep removes the streams of killed runs and returns their prefixes. A killed run has a run marker, with a name and a
// prefix that only runs have, and without a heartbeat for a minute by the server's clock.
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

// deadRun returns the names of a run by its run marker, or false if the stream is not one or the run is alive.
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
	return names, info.TimeStamp.Sub(last) > deadAfter // both by the server's clock
}

// remove deletes all streams of the run, its run marker last.
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
			problems = append(problems, fmt.Errorf("remove %s: it has no leader; a later run will remove it", name))
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

// own reports whether a stream belongs to this run: the run created it, or the broker with its prefix.
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

// list lists the streams. It repeats the request while other clients create and remove streams.
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
