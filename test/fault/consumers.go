//go:build linux

package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"delaybroker/broker/lane"
	"delaybroker/test/fault/history"
)

// killConsumerServer kills a server that holds the consumer of a lane. If possible, no broker's read connection is on
// this server, and the server does not lead the lane. Then no reader notices the crash, and the restarted server
// creates the consumer again under its name.
func killConsumerServer(w *world) (func() (string, error), error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	s, where, err := w.consumerServer(ctx)
	if err != nil {
		return nil, err
	}
	proof, err := s.kill()
	return func() (string, error) { return proof + " with " + where, s.start() }, err
}

// killConsumerServers is like killConsumerServer, for two servers one after the other, as in a rolling restart. A
// reader may recover from the first outage and not from the second.
func killConsumerServers(w *world) (func() (string, error), error) {
	heal, err := killConsumerServer(w)
	if err != nil {
		return nil, err
	}
	time.Sleep(blink)
	first, err := heal()
	if err != nil {
		return nil, err
	}
	if _, err := w.cluster.recover(); err != nil {
		return nil, err
	}
	time.Sleep(time.Duration(w.rand.Int64N(int64(time.Second))))
	heal, err = killConsumerServer(w)
	return func() (string, error) {
		second, err := heal()
		if err != nil {
			return "", err
		}
		if _, err := w.cluster.recover(); err != nil {
			return "", err
		}
		return first + "; " + second, w.burst()
	}, err
}

// burst publishes many messages onto the longest level. So if the level's consumer is created again, its delivery
// numbers soon reach the number that the reader expects.
func (w *world) burst() error {
	const count = 300
	nc, err := w.connect(w.cluster.urls(0), "burst")
	if err != nil {
		return err
	}
	p, err := newPublisher(fmt.Sprintf("u%d", len(w.links)), nc, w, 0)
	if err != nil {
		return err
	}
	longest := request{}
	for _, r := range w.plan.ladder.requests {
		if w.plan.ladder.direct(r) && r.delay > longest.delay {
			longest = r
		}
	}
	for range count {
		p.publish(history.Event{Target: "orders.burst", Delay: longest.delay, Subject: longest.subject + ".orders.burst"}, "",
			"", func() {})
		time.Sleep(5 * time.Millisecond)
	}
	p.answers.Wait()
	return nil
}

func (w *world) consumerServer(ctx context.Context) (found *server, where string, err error) {
	err = retry(ctx, func(ctx context.Context) error {
		readers := make(map[string]int)
		for _, s := range w.cluster {
			if readers[s.name], err = s.readConnections(); err != nil {
				return err
			}
		}
		lanes, err := w.lanes(ctx)
		if err != nil {
			return err
		}
		best := 0
		for name := range lanes {
			stream, err := w.js.Stream(ctx, name)
			if err != nil {
				return err
			}
			list := stream.ListConsumers(ctx)
			for info := range list.Info() {
				if !strings.HasPrefix(info.Name, lane.ConsumerPrefix) || info.Cluster == nil {
					continue
				}
				score := 1
				if readers[info.Cluster.Leader] == 0 {
					score += 4
				}
				if !strings.HasPrefix(name, "DELAY_RETRY_") { // no message passes a retry lane
					score += 2
				}
				if c := stream.CachedInfo().Cluster; c != nil && c.Leader != info.Cluster.Leader {
					score++
				}
				if s := w.cluster.byName(info.Cluster.Leader); s != nil && score > best {
					best, found = score, s
					where = fmt.Sprintf("a consumer of %s, led by %s, and %d read connections", name,
						stream.CachedInfo().Cluster.Leader, readers[s.name])
				}
			}
			if err := list.Err(); err != nil {
				return err
			}
		}
		if found == nil {
			return errors.New("no lane has a consumer")
		}
		return nil
	})
	return found, where, err
}

func (s *server) readConnections() (int, error) {
	var connz struct {
		Connections []struct{ Name string }
	}
	if err := s.decodePage("connz", &connz); err != nil {
		return 0, err
	}
	n := 0
	for _, c := range connz.Connections {
		if strings.HasPrefix(c.Name, "delaybroker ") && strings.HasSuffix(c.Name, " read") {
			n++
		}
	}
	return n, nil
}
