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
	// metaBench is the metadata key of the streams that a run creates. The value is the prefix of the run. The streams
	// of a run's broker have only the broker's metadata.
	metaBench = "delaybroker.bench"
	// heartbeatInterval is the interval of a run's heartbeats. A run whose last heartbeat is older than heartbeatTimeout
	// is dead: the run was killed. The processes of its parts have exited, so no process uses its streams.
	heartbeatInterval = 5 * time.Second
	heartbeatTimeout  = time.Minute
)

// A site has the access to a server and to the streams of a run on this server.
type site struct {
	js       jetstream.JetStream
	api      jsapi.Client
	names    Names
	replicas int // replicas of the streams that the run creates
}

// createMarker creates the run marker, before all other streams of the run. The run removes it last, so a later run can
// find the streams of a killed run.
func (s site) createMarker(ctx context.Context) error {
	_, err := s.create(ctx, jetstream.StreamConfig{
		Name: s.names.runStream(), Subjects: []string{s.names.markerSubject()}, MaxMsgs: 1,
		Description: "delaybroker bench: marker of a run; the run is dead if the last message is older than a minute",
	})
	if err == nil {
		err = s.heartbeat(ctx)
	}
	if err != nil {
		return fmt.Errorf("create the run marker: %w", err)
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

// heartbeat publishes a heartbeat to the run marker.
func (s site) heartbeat(ctx context.Context) error {
	_, err := s.js.Publish(ctx, s.names.markerSubject(), nil)
	return err
}

// keepAlive publishes heartbeats until ctx ends. It ignores a failed heartbeat, since the next heartbeats come before
// heartbeatTimeout.
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

// sweep removes the streams of killed runs, and returns their prefixes.
func (s site) sweep(ctx context.Context) (prefixes []string, err error) {
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
			return prefixes, err
		}
		prefixes = append(prefixes, dead.prefix)
	}
	return prefixes, nil
}

// deadRun returns the names of a run if the stream is the marker of this run and the run is dead. The name of the
// stream and the prefix in its metadata must have the forms that only runs use.
func deadRun(info *jetstream.StreamInfo) (Names, bool) {
	prefix := info.Config.Metadata[metaBench]
	names, err := NewNames(prefix)
	if err != nil || !runPrefix.MatchString(prefix) || info.Config.Name != names.runStream() {
		return Names{}, false
	}
	last := info.Created
	if info.State.LastTime.After(last) {
		last = info.State.LastTime
	}
	return names, info.TimeStamp.Sub(last) > heartbeatTimeout // both times are by the server's clock
}

// remove deletes all streams of the run, the run marker last. It keeps the run marker if another stream remains.
func (s site) remove(ctx context.Context) error {
	all, leaderless, err := s.list(ctx)
	if err != nil {
		return err
	}
	var problems []error
	hasMarker := false
	for _, info := range all {
		switch {
		case info.Config.Name == s.names.runStream():
			hasMarker = true
		case s.names.own(info):
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

// removeBroker deletes the streams of the run's broker, so that each turn of the broker begins with new streams.
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

// own reports whether the run or its broker created a stream. Both write the prefix of the run into the metadata.
func (n Names) own(info *jetstream.StreamInfo) bool {
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

// list returns the streams, and the names of the streams without a leader. It retries if streams were created or
// deleted during the listing.
func (s site) list(ctx context.Context) (all []*jetstream.StreamInfo, leaderless []string, err error) {
	const tries = 20
	for range tries {
		if all, leaderless, err = s.api.Streams(ctx); !errors.Is(err, jsapi.ErrChanged) {
			break
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list the streams: %w", err)
	}
	return all, leaderless, nil
}
