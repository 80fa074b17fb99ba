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
	// metaBench is the metadata key of the streams that a run creates. Its value is the prefix of the run. The streams
	// of a run's broker lack this key.
	metaBench         = "delaybroker.bench"
	heartbeatInterval = 5 * time.Second
	// heartbeatTimeout is the maximum age of the last heartbeat of a live run.
	heartbeatTimeout = time.Minute
)

// A site is the server of a run, with the names of the run's streams.
type site struct {
	js       jetstream.JetStream
	api      jsapi.Client
	names    Names
	replicas int // replicas of the streams that the run creates
}

// createMarker creates the run marker. The run creates the marker first and removes it last. So a later run can find
// the streams of a killed run.
func (s site) createMarker(ctx context.Context) error {
	_, err := s.create(ctx, jetstream.StreamConfig{
		Name: s.names.runStream(), Subjects: []string{s.names.markerSubject()}, MaxMsgs: 1,
		Description: "compare: marker of a run; the run is dead if the last message is older than a minute",
	})
	if err == nil {
		err = s.heartbeat(ctx)
	}
	if err != nil {
		return fmt.Errorf("create the run marker: %w", err)
	}
	return nil
}

func (s site) create(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	cfg.Metadata, cfg.Replicas = map[string]string{metaBench: s.names.prefix}, s.replicas
	stream, err := s.js.CreateStream(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", cfg.Name, err)
	}
	return stream, nil
}

func (s site) heartbeat(ctx context.Context) error {
	_, err := s.js.Publish(ctx, s.names.markerSubject(), nil)
	return err
}

// keepAlive publishes heartbeats until ctx ends. It ignores a failed heartbeat: more follow within heartbeatTimeout.
func (s site) keepAlive(ctx context.Context) {
	tick := time.NewTicker(heartbeatInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = s.heartbeat(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// sweep removes the streams of dead runs, and returns the prefixes of these runs.
func (s site) sweep(ctx context.Context) (prefixes []string, err error) {
	infos, _, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	for _, info := range infos {
		names, dead := deadRun(info)
		if !dead {
			continue
		}
		s.names = names
		if err := s.remove(ctx); err != nil {
			return prefixes, err
		}
		prefixes = append(prefixes, names.prefix)
	}
	return prefixes, nil
}

// deadRun reports whether the stream is the marker of a dead run, and returns the names of the streams of that run. The
// name of the stream and the prefix in its metadata must have the form that only runs use.
func deadRun(info *jetstream.StreamInfo) (Names, bool) {
	prefix := info.Config.Metadata[metaBench]
	names, err := NewNames(prefix)
	if err != nil || !runPrefix.MatchString(prefix) || info.Config.Name != names.runStream() {
		return Names{}, false
	}
	lastHeartbeat := info.Created
	if info.State.LastTime.After(lastHeartbeat) {
		lastHeartbeat = info.State.LastTime
	}
	return names, info.TimeStamp.Sub(lastHeartbeat) > heartbeatTimeout // both times are by the server's clock
}

// remove deletes all streams of the run, the run marker last. If it does not delete one of the other streams, it keeps
// the run marker.
func (s site) remove(ctx context.Context) error {
	infos, leaderless, err := s.list(ctx)
	if err != nil {
		return err
	}
	var problems []error
	hasMarker := false
	for _, info := range infos {
		switch {
		case info.Config.Name == s.names.runStream():
			hasMarker = true
		case s.names.owns(info):
			problems = append(problems, s.drop(ctx, info.Config.Name))
		}
	}
	for _, name := range leaderless {
		if strings.HasPrefix(name, s.names.stem()) {
			problems = append(problems,
				fmt.Errorf("remove the stream %s: it has no leader", name))
		}
	}
	err = errors.Join(problems...)
	if err == nil && hasMarker {
		err = s.drop(ctx, s.names.runStream())
	}
	return err
}

func (s site) removeBroker(ctx context.Context) error {
	infos, _, err := s.list(ctx)
	if err != nil {
		return err
	}
	var problems []error
	for _, info := range infos {
		if info.Config.Metadata[metaBench] == "" && s.names.owns(info) {
			problems = append(problems, s.drop(ctx, info.Config.Name))
		}
	}
	return errors.Join(problems...)
}

// owns reports whether the run or its broker created a stream. Both write the prefix of the run into the metadata.
func (n Names) owns(info *jetstream.StreamInfo) bool {
	if info.Config.Metadata[metaBench] == n.prefix {
		return true
	}
	prefixes := streams.Prefixes(map[string]*jetstream.StreamInfo{info.Config.Name: info})
	return n.broker.OwnsStream(info.Config.Name) && len(prefixes) == 1 && prefixes[0] == n.prefix
}

func (s site) drop(ctx context.Context, stream string) error {
	err := s.js.DeleteStream(ctx, stream)
	if err == nil || errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	return fmt.Errorf("remove %s: %w", stream, err)
}

// list returns the streams, and the names of the streams without a leader. It repeats a listing during which streams
// were created or deleted.
func (s site) list(ctx context.Context) (infos []*jetstream.StreamInfo, leaderless []string, err error) {
	const attempts = 20
	for range attempts {
		if infos, leaderless, err = s.api.Streams(ctx); !errors.Is(err, jsapi.ErrChanged) {
			break
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list the streams: %w", err)
	}
	return infos, leaderless, nil
}
