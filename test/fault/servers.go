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

// This file has the faults of servers.

// intake is the stream that most messages pass; timers is the stream of named timers.
const intake, timers = "DELAY_INTAKE", "DELAY_TIMERS"

// blink is the downtime of a server that is restarted immediately.
const blink = 500 * time.Millisecond

// retire puts a server into lame duck mode: the server gives up its leaderships, and disconnects its clients one by
// one.
func (p *process) retire() (string, error) { return p.stop(syscall.SIGUSR2) }

func (w *world) leaderOf(stream string) (*server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return w.leader(ctx, stream)
}

func killLeader(stream string) func(*world) (func() (string, error), error) {
	return applyToLeader(stream, (*server).kill, (*server).start)
}

// pauseLeader suspends the server that leads a stream. Its connections stay open.
func pauseLeader(stream string) func(*world) (func() (string, error), error) {
	return applyToLeader(stream, (*server).pause, (*server).resume)
}

// applyToLeader applies a fault to the server that leads a stream, and heals it.
func applyToLeader(
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

// killServers kills all servers, and starts them in a random order.
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

// rollServers ends the servers one after the other, and starts each again before it ends the next.
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

// pauseUntilStale suspends the intake's leader until another server leads. When the old leader resumes, it answers the
// requests that arrived meanwhile before it learns of the new leader, so some answers are stale. The requests come from
// a connection to that server, as those of a broker may.
func pauseUntilStale(w *world) (func() (string, error), error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*timeout)
	defer cancel()
	var proof string
	for range 3 { // the order in which the server handles the messages is random
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

// askPaused suspends the intake's leader, and counts its answers that are older than the state of the next leader.
func (w *world) askPaused(ctx context.Context, s *server) (stale int, proof string, err error) {
	// This connection must stay open until the server resumes; otherwise its answers are lost.
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
	var first, last uint64 // sequences of the next leader; the suspended leader has at most the sequence first
	err = await(timeout, func() error {
		if err := nc.PublishRequest("$JS.API.STREAM.INFO."+intake, inbox, nil); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, time.Second/2) // no server answers until another server leads
		defer cancel()
		now, err := w.js.Stream(ctx, intake)
		if err != nil {
			return err
		}
		info := now.CachedInfo()
		if info.Cluster == nil || info.Cluster.Leader == s.name {
			return fmt.Errorf("no other server leads %s, only %s", intake, s.name)
		}
		last = info.State.LastSeq
		if first == 0 {
			first = last
		}
		if last == first {
			return fmt.Errorf("%s stores no new message", intake)
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
