//go:build linux

package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/fault/history"
)

// This file has one fault, step by step. A reader's consumer is in the memory of one server. That server is killed and
// restarted, and creates the consumer again under its name, counting from one. A reader that trusts the consumer's
// numbers takes new messages for known ones while their numbers are not higher than the last known number. It loses
// these messages.
//
// The fault needs several conditions. No other failure reveals the restart to the reader. The lane contains none of the
// messages that the reader has received. The reader's first requests reach the new consumer before the reader replaces
// it.

const (
	// createdAgain is the scenario that loses messages if a reader trusts its consumer's numbers.
	createdAgain = "a reader's consumer is created again"
	// quietLane is the lane of the fault, which no other messages pass. With a longer delay, the reader would send a new
	// request before its received messages are gone. With a shorter delay, it would replace its consumer before the server
	// is back.
	quietLane  = "DELAY_12s"
	quietLevel = "12s"
	quietDelay = 12 * time.Second
	// deliveredCount is the number of messages that the consumer delivers before the fault. It is less than half of a
	// request: otherwise the reader would send another request.
	deliveredCount = 40
	// firstRequest is the duration of a reader's first request. Then the reader sends another request.
	firstRequest = 2 * time.Second
	// blackout is the time for which the proxies hold back a broker's traffic. During this time the broker's requests time
	// out, but its connections stay open, so the readers check their consumers.
	blackout = 2500 * time.Millisecond
)

// rebirth is one attempt of the fault.
type rebirth struct {
	*world
	publisher *publisher
	home      *server // leads all streams; the brokers are connected to it
	consumer  string  // the name of the reader's consumer
}

// reborn makes a server lose a reader's consumer, and makes the reader send requests to the new consumer of the same
// name.
func reborn(w *world) (func() (string, error), error) {
	if w.plan.home == 0 || w.plan.ladder.levels != quietLadder.levels {
		return nil, fmt.Errorf("this fault needs a plan with a home and the levels of the scenario %q", createdAgain)
	}
	r := rebirth{world: w, home: w.cluster[w.plan.home-1]}
	nc, err := w.connect(r.home.url(), "quiet")
	if err != nil {
		return nil, err
	}
	if r.publisher, err = newPublisher(fmt.Sprintf("q%d", len(w.links)), nc, w, 0); err != nil {
		return nil, err
	}
	const tries = 3
	for range tries {
		proof, served, err := r.try()
		if err != nil {
			return nil, err
		}
		if served > 0 {
			return func() (string, error) { return proof, nil }, nil
		}
	}
	return nil, fmt.Errorf("in each of %d attempts, the reader replaced its consumer before it sent the new one a request",
		tries)
}

// try makes one attempt. It returns the proof, and the number of messages that the new consumer has delivered.
func (r *rebirth) try() (proof string, served uint64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*timeout)
	defer cancel()
	if err := leadFrom(ctx, r.js, r.home); err != nil {
		return "", 0, err
	}
	c, err := r.moveConsumer(ctx)
	if err != nil {
		return "", 0, err
	}
	r.consumer = c.Name
	s := r.cluster.byName(c.Cluster.Leader)
	time.Sleep(time.Until(c.Created.Add(firstRequest + blink)))
	// One by one, so that the reader reaches the end of the lane after each message.
	for n := range uint64(deliveredCount) {
		if err := r.publishAndAwait(n + 1); err != nil {
			return "", 0, err
		}
	}
	if err := r.awaitEmpty(ctx); err != nil {
		return "", 0, err
	}
	if err := r.publishAndAwait(deliveredCount + 1); err != nil { // the reader has just received from its consumer
		return "", 0, err
	}
	heal := r.blackOut()
	began := time.Now()
	if proof, err = s.kill(); err == nil {
		err = s.start()
	}
	if err == nil {
		err = r.awaitReborn()
	}
	if err == nil {
		for range 4 * deliveredCount {
			r.publish()
		}
		r.publisher.answers.Wait()
		err = r.awaitPending(4 * deliveredCount)
		time.Sleep(time.Until(began.Add(blackout)))
	}
	if err := errors.Join(err, heal()); err != nil {
		return "", 0, err
	}
	served, replaced, err := r.awaitDeliveries(0)
	// The new consumer has used only numbers that the reader may take for known ones. After another blackout, the reader
	// checks its consumer and requests more messages, some with higher numbers.
	if err == nil && served > 0 && served <= deliveredCount+1 && !replaced {
		heal := r.blackOut()
		time.Sleep(2 * blackout) // a broker may pause after a failed check before the next one
		if err = heal(); err == nil {
			_, _, err = r.awaitDeliveries(served)
		}
	}
	proof = fmt.Sprintf("%s with %s of %s, which had delivered %d messages, and delivered %d after it was created again",
		proof, r.consumer, quietLane, deliveredCount+1, served)
	return proof, served, err
}

func (r *rebirth) publish() {
	target := "orders.quiet"
	e := history.Event{Target: target, Delay: quietDelay, Subject: "delay." + quietLevel + "." + target}
	r.publisher.publish(e, "", "", func() {})
}

// publishAndAwait publishes one message and waits until the consumer has delivered count messages.
func (r *rebirth) publishAndAwait(count uint64) error {
	r.publish()
	r.publisher.answers.Wait()
	return await(timeout, func() error {
		c, err := r.info()
		if err == nil && c.Delivered.Consumer < count {
			err = fmt.Errorf("%s delivered %d of %d", r.consumer, c.Delivered.Consumer, count)
		}
		return err
	})
}

// blackOut holds back the traffic of the brokers in both directions.
func (r *rebirth) blackOut() (heal func() error) {
	var heals []func() (string, error)
	for _, b := range r.brokers {
		heals = append(heals, cut(b.links))
	}
	return func() error {
		var all error
		for _, heal := range heals {
			_, err := heal()
			all = errors.Join(all, err)
		}
		return all
	}
}

// leadFrom makes one server the leader of every stream, so that no request to a leader detects the crash of another
// server.
func leadFrom(ctx context.Context, js jetstream.JetStream, s *server) error {
	request := fmt.Appendf(nil, `{"placement":{"preferred":%q}}`, s.name)
	return moveLeaders(ctx, js, request, func(leader string) bool { return leader != s.name })
}
