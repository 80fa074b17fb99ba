//go:build linux

package fault

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/test/fault/history"
)

// lanes returns the number of messages in each lane that must be empty at the end.
func (w *world) lanes(ctx context.Context) (map[string]int, error) {
	lanes := make(map[string]int)
	list := w.js.ListStreams(ctx)
	for info := range list.Info() {
		switch streams.Kind(info.Config.Metadata["delaybroker.kind"]) {
		case streams.Intake, streams.Level, streams.Retry:
			lanes[info.Config.Name] = int(info.State.Msgs)
		case streams.Timers:
			if !w.plan.noHistory {
				continue // the outcomes of timers stay for the history of timers
			}
			lanes[info.Config.Name] = int(max(info.State.Msgs, 1)) - 1 // the cursor stays
		}
	}
	return lanes, list.Err()
}

// awaitRest waits until the lanes are empty, and records their contents at the end.
func (w *world) awaitRest(ctx context.Context, maxTime time.Duration) error {
	rest, stop := context.WithTimeout(ctx, maxTime)
	defer stop()
	var lanes map[string]int
	_ = retry(rest, func(ctx context.Context) error { // ignored: the history has the remaining messages
		now, err := w.lanes(ctx)
		if err != nil {
			return err
		}
		for name, held := range now {
			of, err := w.countTenant(ctx, name, held)
			if err != nil {
				return err
			}
			now[name] = held - of
		}
		lanes = now
		for name, held := range lanes {
			if held > 0 {
				return fmt.Errorf("%s holds %d", name, held)
			}
		}
		return nil
	})
	if len(lanes) == 0 {
		return fmt.Errorf("the lanes could not be listed within %s", maxTime)
	}
	for name, held := range lanes {
		w.log.Add(history.Event{Op: history.Rest, Stream: name, Count: held})
	}
	return nil
}

// timersQuiet is longer than an instance needs to become the owner of a lane and to read the lane from its beginning.
const timersQuiet = 20 * time.Second

// awaitTimers waits until the timers' stream has stored no entry for timersQuiet. Then no broker is firing a timer.
func (w *world) awaitTimers(ctx context.Context) error {
	var last uint64
	since := time.Now()
	for {
		s, err := w.js.Stream(ctx, timers)
		if err != nil {
			return fmt.Errorf("read the state of the timers' stream: %w", err)
		}
		if now := s.CachedInfo().State.LastSeq; now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) >= timersQuiet {
			return nil
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// countTenant returns the number of the attacking tenant's own messages in a lane. The run does not judge these
// messages, because the tenant may answer its own deliveries with acknowledgements of other streams.
func (w *world) countTenant(ctx context.Context, name string, held int) (int, error) {
	if held == 0 {
		return 0, nil
	}
	own := 0
	for _, filter := range []string{"*.*." + payments + ".>", "*.*.*." + payments + ".>"} {
		s, err := w.js.Stream(ctx, name)
		if err != nil {
			return 0, err
		}
		info, err := s.Info(ctx, jetstream.WithSubjectFilter(filter))
		if err != nil {
			return 0, err
		}
		for _, n := range info.State.Subjects {
			own += int(n)
		}
	}
	return min(own, held), nil
}

func (w *world) readDead(ctx context.Context) error {
	s, err := w.js.Stream(ctx, "DELAY_DEAD")
	if err != nil {
		return err
	}
	state := s.CachedInfo().State
	for seq := state.FirstSeq; seq <= state.LastSeq && state.Msgs > 0; seq++ {
		m, err := s.GetMsg(ctx, seq)
		if err != nil {
			return fmt.Errorf("dead letter %d: %w", seq, err)
		}
		if isAttack(m.Data) {
			continue
		}
		w.log.Add(history.Event{
			Op: history.Dead, ID: idOf(m.Data), Subject: m.Subject, Sequence: seq,
			Text: strings.Join([]string{m.Header.Get(message.HeaderErrorCode), m.Header.Get(message.HeaderError)}, ": "),
		})
	}
	return nil
}

func (w *world) leader(ctx context.Context, stream string) (*server, error) {
	var leader *server
	err := retry(ctx, func(ctx context.Context) error {
		s, err := w.js.Stream(ctx, stream)
		if err != nil {
			return err
		}
		if c := s.CachedInfo().Cluster; c != nil {
			leader = w.cluster.byName(c.Leader)
		}
		if leader == nil {
			return fmt.Errorf("%s has no leader", stream)
		}
		return nil
	})
	return leader, err
}

// recreate replaces a stream by an empty one with the same configuration.
func (w *world) recreate(ctx context.Context, stream string) (proof string, err error) {
	s, err := w.js.Stream(ctx, stream)
	if err != nil {
		return "", err
	}
	old := s.CachedInfo()
	if old.State.Msgs > 0 {
		return "", fmt.Errorf("%s holds %d messages, which would be lost", stream, old.State.Msgs)
	}
	if err := w.js.DeleteStream(ctx, stream); err != nil {
		return "", err
	}
	var created *jetstream.StreamInfo
	err = retry(ctx, func(ctx context.Context) error {
		s, err := w.js.CreateOrUpdateStream(ctx, old.Config)
		if err == nil {
			created = s.CachedInfo()
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s was at sequence %d and is at sequence %d", stream, old.State.LastSeq, created.State.LastSeq),
		nil
}

// retry calls f until it succeeds. When ctx ends, retry returns the last error of f.
func retry(ctx context.Context, f func(context.Context) error) error {
	for {
		try, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := f(try)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}
