//go:build linux

package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/lane"
	"delaybroker/test/fault/history"
)

// This file is the faults of servers.

// intake is the lane that most messages go through; timers is that of named timers.
const intake, timers = "DELAY_INTAKE", "DELAY_TIMERS"

// blink is how long a server is down that is restarted at once.
const blink = 500 * time.Millisecond

// retire makes a server go in lame duck mode: it hands its leaderships over, and sends its clients away one by one.
func (p *process) retire() (string, error) { return p.stop(syscall.SIGUSR2) }

// leaderOf is the server that leads a stream, within the timeout.
func (w *world) leaderOf(stream string) (*server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return w.leader(ctx, stream)
}

// killLeader kills the server that leads a stream.
func killLeader(stream string) func(*world) (func() (string, error), error) {
	return toLeader(stream, (*server).kill, (*server).start)
}

// pauseLeader stops the server that leads a stream where it is, with its connections up.
func pauseLeader(stream string) func(*world) (func() (string, error), error) {
	return toLeader(stream, (*server).pause, (*server).resume)
}

// toLeader does something to the server that leads a stream, and heals it.
func toLeader(
	stream string, do func(*server) (string, error), heal func(*server) error,
) func(*world) (func() (string, error), error) {
	return func(w *world) (func() (string, error), error) {
		s, err := w.leaderOf(stream)
		if err != nil {
			return nil, err
		}
		proof, err := do(s)
		return func() (string, error) { return proof, heal(s) }, err
	}
}

// killServers kills all of them at once, and starts them in another order.
func killServers(w *world) (func() (string, error), error) {
	for _, s := range w.cluster {
		if _, err := s.kill(); err != nil {
			return nil, err
		}
	}
	return func() (string, error) {
		for _, i := range w.rand.Perm(len(w.cluster)) {
			if err := w.cluster[i].start(); err != nil {
				return "", err
			}
			time.Sleep(300 * time.Millisecond)
		}
		return fmt.Sprintf("%d processes killed", len(w.cluster)), nil
	}, nil
}

// rollServers ends each in turn, and starts it again before the next.
func rollServers(end func(*process) (string, error)) func(*world) (func() (string, error), error) {
	return func(w *world) (func() (string, error), error) {
		var last string
		for _, s := range w.cluster {
			var err error
			if last, err = end(s.process); err != nil {
				return nil, err
			}
			time.Sleep(time.Duration(w.rand.Int64N(int64(time.Second))))
			if err := w.cluster.start(); err != nil {
				return nil, err
			}
		}
		return func() (string, error) { return fmt.Sprintf("%d processes, the last: %s", len(w.cluster), last), nil }, nil
	}
}

// pauseUntilStale pauses the intake's leader until another leads, so that some of the answers that it gives when it
// goes on are of yesterday: it answers what came meanwhile before it hears of the other. What asks is on that server,
// as a broker may be.
func pauseUntilStale(w *world) (func() (string, error), error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*timeout)
	defer cancel()
	var proof string
	for range 3 { // what it hears first is a matter of luck
		s, err := w.leader(ctx, intake)
		if err != nil {
			return nil, err
		}
		stale, paused, err := w.askPaused(ctx, s)
		if err != nil {
			return nil, err
		}
		proof = fmt.Sprintf("%s; %d stale answers", paused, stale)
		if stale > 0 {
			break
		}
		if _, err := w.cluster.recover(); err != nil {
			return nil, err
		}
	}
	return func() (string, error) { return proof, nil }, nil
}

// askPaused pauses the intake's leader, and counts the answers that lie behind what the next one has.
func (w *world) askPaused(ctx context.Context, s *server) (stale int, proof string, err error) {
	// This connection must not be given up before the server goes on, or its answers are lost.
	nc, err := w.connect(s.url(), "asker", nats.PingInterval(time.Minute))
	if err != nil {
		return 0, "", err
	}
	inbox := nats.NewInbox()
	answers, err := nc.SubscribeSync(inbox)
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		return 0, "", err
	}
	if proof, err = s.pause(); err != nil {
		return 0, "", err
	}
	var first, last uint64 // of the next leader: the one paused can have no more than first
	err = await(timeout, func() error {
		if err := nc.PublishRequest("$JS.API.STREAM.INFO."+intake, inbox, nil); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, time.Second/2) // nobody answers before there is another leader
		defer cancel()
		now, err := w.js.Stream(ctx, intake)
		if err != nil {
			return err
		}
		info := now.CachedInfo()
		if info.Cluster == nil || info.Cluster.Leader == s.name {
			return fmt.Errorf("%s is led by none but %s", intake, s.name)
		}
		last = info.State.LastSeq
		if first == 0 {
			first = last
		}
		if last == first {
			return fmt.Errorf("nothing new comes to %s", intake)
		}
		return nil
	})
	if err := errors.Join(err, s.resume()); err != nil {
		return 0, "", err
	}
	for {
		m, err := answers.NextMsg(time.Second)
		if err != nil {
			return stale, proof, nil
		}
		var info jetstream.StreamInfo
		if json.Unmarshal(m.Data, &info) == nil && info.Config.Name == intake && info.State.LastSeq < last {
			stale++
		}
	}
}

// killConsumerServer kills a server on which a lane's consumer lives, with nobody's read connection and, if it can be,
// not the lane's leader: nobody who reads hears of it, and the consumer is made anew under its name when the server is
// back.
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

// killConsumerServers does it to two in a row, as a rolling restart does: what brokers do about the first outage may
// keep them from doing it again about the second.
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

// burst publishes more onto the longest level than a consumer that was made lately has delivered: one that is made anew
// under its name soon counts on from where the reader believes to be.
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
				if !strings.HasPrefix(name, "DELAY_RETRY_") { // nothing passes there
					score += 2
				}
				if c := stream.CachedInfo().Cluster; c != nil && c.Leader != info.Cluster.Leader {
					score++
				}
				if s := w.cluster.named(info.Cluster.Leader); s != nil && score > best {
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

// readConnections counts the connections on which brokers read.
func (s *server) readConnections() (int, error) {
	var connz struct {
		Connections []struct{ Name string }
	}
	if err := s.monitored("connz", &connz); err != nil {
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
