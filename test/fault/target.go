//go:build linux

package fault

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/test/fault/history"
)

const (
	target = "ORDERS"
	// window is the duplicate window of the target's stream. It is longer than any run.
	window = 10 * time.Minute
	// placements is the maximum number of consumers that a run creates until each server has one.
	placements = 200
)

func (w *world) createTarget(ctx context.Context) error {
	return retry(ctx, func(ctx context.Context) error {
		_, err := w.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: target, Subjects: []string{"orders.>"}, Replicas: servers, Duplicates: window,
		})
		return err
	})
}

// witness records the messages that a core subscriber on one server receives. The messages include duplicates that the
// target's stream drops.
func (w *world) witness(s *server) error {
	nc, err := w.connect(s.url(), "witness")
	if err != nil {
		return err
	}
	// The subjects of the target's stream, and the subjects of core subscribers.
	for _, subjects := range []string{"orders.>", "push.>"} {
		_, err = nc.Subscribe(subjects, func(m *nats.Msg) {
			w.log.Add(history.Event{
				Op: history.Seen, ID: idOf(m.Data), Subject: m.Subject, Server: s.name, DelayID: m.Header.Get(message.HeaderID),
			})
		})
		if err != nil {
			return err
		}
	}
	return nc.Flush()
}

// readTarget records the contents of the target's stream on every server.
func (w *world) readTarget(ctx context.Context) error {
	if err := w.awaitReplicas(ctx); err != nil {
		return err
	}
	left := make(map[string]bool)
	for _, s := range w.cluster {
		left[s.name] = true
	}
	for range placements {
		if len(left) == 0 {
			return nil
		}
		c, err := w.js.CreateConsumer(ctx, target, jetstream.ConsumerConfig{
			AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: time.Minute,
		})
		if err != nil {
			return fmt.Errorf("read the target's stream: %w", err)
		}
		info := c.CachedInfo()
		if info.Cluster == nil || info.Cluster.Leader == "" {
			if info, err = c.Info(ctx); err != nil {
				return err
			}
		}
		if server := info.Cluster.Leader; left[server] {
			if err := w.readOn(ctx, c, server, info.NumPending); err != nil {
				return fmt.Errorf("read the target's stream on %s: %w", server, err)
			}
			delete(left, server)
		}
		if err := w.js.DeleteConsumer(ctx, target, info.Name); err != nil {
			return err
		}
	}
	return fmt.Errorf("no consumer was placed on %v in %d attempts", slices.Sorted(maps.Keys(left)), placements)
}

// awaitReplicas waits until every replica of the target's stream has caught up with its leader.
func (w *world) awaitReplicas(ctx context.Context) error {
	return retry(ctx, func(ctx context.Context) error {
		s, err := w.js.Stream(ctx, target)
		if err != nil {
			return err
		}
		c := s.CachedInfo().Cluster
		if c == nil || len(c.Replicas) != servers-1 {
			return errors.New("not all replicas are known")
		}
		for _, r := range c.Replicas {
			if !r.Current || r.Lag > 0 || r.Offline {
				return fmt.Errorf("%s lags by %d", r.Name, r.Lag)
			}
		}
		return nil
	})
}

// readOn reads all messages of a consumer. Shortly after its creation, a consumer may be unknown to the connection's
// server, so readOn retries.
func (w *world) readOn(ctx context.Context, c jetstream.Consumer, server string, count uint64) error {
	for read := uint64(0); read < count; {
		batch, err := c.Fetch(int(min(count-read, 500)), jetstream.FetchMaxWait(5*time.Second))
		if err != nil {
			return err
		}
		for m := range batch.Messages() {
			e, err := arrival(m)
			if err != nil {
				return err
			}
			e.Server = server
			w.log.Add(e)
			read++
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%d of %d arrived: %w", read, count, errors.Join(batch.Error(), ctx.Err()))
		}
	}
	w.log.Add(history.Event{Op: history.Read, Server: server})
	return nil
}

// arrival returns the event for a message of the target's stream.
func arrival(m jetstream.Msg) (history.Event, error) {
	meta, err := m.Metadata()
	if err != nil {
		return history.Event{}, err
	}
	h := m.Headers()
	return history.Event{
		Op: history.Stored, ID: idOf(m.Data()), Subject: m.Subject(), Sequence: meta.Sequence.Stream,
		Stored: meta.Timestamp.UnixNano(),
		Sum:    sum(m.Data(), h.Get(sumHeader)), DelayID: h.Get(message.HeaderID),
		Due: nanoseconds(h.Get(message.HeaderDue)), Accepted: nanoseconds(h.Get(message.HeaderAccepted)),
		Round: int(number(h.Get(message.HeaderRound))), Series: number(h.Get(message.HeaderSeries)),
	}, nil
}

// number parses a number in a broker's header. For an invalid number, the result is zero, which no round and no series
// has.
func number(s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0
	}
	return n
}

// nanoseconds parses a time in a broker's header. For an invalid time, the result is zero, which the judge never
// accepts.
func nanoseconds(s string) int64 {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return 0
	}
	return t.UnixNano()
}
