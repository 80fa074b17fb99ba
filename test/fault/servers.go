//go:build linux

package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
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
