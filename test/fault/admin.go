//go:build linux

package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/test/fault/history"
)

// This file has the faults that an administrator or a client causes through NATS alone.

// stepDown makes the leader of every stream step down, twice.
func stepDown(w *world) (func() (string, error), error) {
	first, err := w.stepDownAll()
	return func() (string, error) {
		second, err := w.stepDownAll()
		if err == nil && first+second == 0 {
			err = errors.New("no leader changed")
		}
		return fmt.Sprintf("%d leaders changed", first+second), err
	}, err
}

// stepDownAll makes the leader of every stream step down, and returns the number of streams with a new leader.
func (w *world) stepDownAll() (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	lanes, err := w.lanes(ctx)
	if err != nil {
		return 0, err
	}
	lanes[target] = 0
	before := make(map[string]*server)
	for stream := range lanes {
		if before[stream], err = w.leader(ctx, stream); err != nil {
			return 0, err
		}
		if _, err := w.js.Conn().RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil); err != nil {
			return 0, fmt.Errorf("step down from %s: %w", stream, err)
		}
	}
	changed := 0
	for stream := range lanes {
		now, err := w.leader(ctx, stream)
		if err != nil {
			return 0, err
		}
		if now != before[stream] {
			changed++
		}
	}
	return changed, nil
}

// stepDownTimers makes the leader of the timers' stream step down repeatedly, for some seconds.
func stepDownTimers(w *world) (func() (string, error), error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	leaders := make(map[string]int)
	for range 12 {
		s, err := w.leader(ctx, timers)
		if err != nil {
			return nil, err
		}
		leaders[s.name]++
		if _, err := w.js.Conn().RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+timers, nil); err != nil {
			return nil, fmt.Errorf("step down from %s: %w", timers, err)
		}
		time.Sleep(time.Duration(w.rand.Int64N(int64(400 * time.Millisecond))))
	}
	return func() (string, error) {
		if len(leaders) < 2 {
			return "", errors.New("no leader changed")
		}
		return fmt.Sprint("it was led by ", leaders), nil
	}, nil
}

// replaceIntake deletes the intake's stream when it is empty, and creates it again: the new stream has the same name
// and other contents under known sequences. Publishers do not use the intake meanwhile, so no message is lost with the
// old stream.
func replaceIntake(w *world) (func() (string, error), error) {
	w.gate.close()
	defer w.gate.open()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err := retry(ctx, func(ctx context.Context) error {
		lanes, err := w.lanes(ctx)
		if err == nil && lanes[intake] > 0 {
			err = fmt.Errorf("%s holds %d", intake, lanes[intake])
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	proof, err := w.recreate(ctx, intake)
	return func() (string, error) { return proof, nil }, err
}

// forgeIDs kills the brokers, and publishes messages with the ids that the next hops of the intake's messages will
// have. The levels then answer a hop with "duplicate", and the broker must not accept that answer.
func forgeIDs(w *world) (func() (string, error), error) {
	start, err := killBrokers(w)
	if err != nil {
		return nil, err
	}
	time.Sleep(lead / 2) // then messages wait in the intake
	w.gate.close()       // then all of these messages are stored
	defer w.gate.open()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	nc, err := w.connect(w.cluster.urls(0), "forger")
	if err != nil {
		return nil, err
	}
	forger, err := newPublisher(fmt.Sprintf("f%d", len(w.links)), nc, w, 0)
	if err != nil {
		return nil, err
	}
	for range 20 {
		forger.publish(history.Event{Target: "orders.forged", Delay: farOff, Subject: "delayin.20s.orders.forged"}, "", "",
			func() {})
	}
	forger.answers.Wait()
	stream, err := w.js.Stream(ctx, intake)
	if err != nil {
		return nil, err
	}
	state := stream.CachedInfo().State
	for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
		m, err := stream.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		id := message.ID{Stream: intake, Sequence: seq, At: m.Time}
		for _, level := range w.plan.ladder.requests {
			if !w.plan.ladder.direct(level) {
				continue
			}
			e := history.Event{Target: "orders.forged", Delay: level.delay, Subject: level.subject + ".orders.forged"}
			forger.publish(e, id.String()+"/1", "", func() {})
		}
	}
	forger.answers.Wait()
	forged := forger.count
	return func() (string, error) {
		if forged == 0 {
			return "", errors.New("no message waited in the intake")
		}
		_, err := start()
		return fmt.Sprintf("%d ids taken", forged), err
	}, nil
}
