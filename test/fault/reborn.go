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

// This file is one fault, step by step. A reader's consumer lives in the memory of one server. That server is killed
// and comes back, and makes the consumer anew under its name, counting from one. A reader that believes its numbers
// takes the new ones for those it has had, until they are higher; their messages are lost.
//
// It takes much for that to happen: nothing else that died may tell the reader, nothing that it had may be in the lane
// any more, its first questions must find the consumer that is new, and they must do so before it gives the old one up.

const (
	// madeAnew is the scenario that loses messages if a reader believes in its consumer's numbers.
	madeAnew = "a reader's consumer is made anew"
	// quiet is the lane in which it happens, and nothing else does. A reader of a longer one asks anew before what it has
	// had is gone; that of a shorter one gives its consumer up before the server is back.
	quiet      = "DELAY_12s"
	quietLevel = "12s"
	quietDelay = 12 * time.Second
	// had is what the consumer delivers before: fewer than the half of a request, or the reader asks again and forgets.
	had = 40
	// firstAsked is how long a reader's first request is open, after which it asks again.
	firstAsked = 2 * time.Second
	// blackout is for how long a broker's links are held back, so that its questions are given up and its connections are
	// not: it doubts its consumers then.
	blackout = 2500 * time.Millisecond
)

// rebirth is one try.
type rebirth struct {
	*world
	publisher *publisher
	home      *server // which leads everything, and to which the brokers are connected
	consumer  string  // the reader's
}

// reborn makes a server forget a reader's consumer, and the reader ask the new consumer of that name.
func reborn(w *world) (func() (string, error), error) {
	if w.plan.home == 0 || w.plan.ladder.levels != quietLadder.levels {
		return nil, fmt.Errorf("it takes a home and the levels of its scenario, %q", madeAnew)
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
	return nil, fmt.Errorf("the reader gave its consumer up in each of %d tries before it asked the new one", tries)
}

// try returns the proof, and the number of messages that the new consumer was asked for.
func (r *rebirth) try() (proof string, served uint64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*timeout)
	defer cancel()
	if err := leadFrom(ctx, r.js, r.home); err != nil {
		return "", 0, err
	}
	c, err := r.awayFromHome(ctx)
	if err != nil {
		return "", 0, err
	}
	r.consumer = c.Name
	s := r.cluster.named(c.Cluster.Leader)
	time.Sleep(time.Until(c.Created.Add(firstAsked + blink)))
	for n := range uint64(had) { // one after the other: the reader is at the tail after each
		if err := r.publishAndAwait(n + 1); err != nil {
			return "", 0, err
		}
	}
	if err := r.awaitEmpty(ctx); err != nil {
		return "", 0, err
	}
	if err := r.publishAndAwait(had + 1); err != nil { // the reader has just heard of its consumer
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
		for range 4 * had {
			r.publish()
		}
		r.publisher.answers.Wait()
		err = r.awaitPending(4 * had)
		time.Sleep(time.Until(began.Add(blackout)))
	}
	if err := errors.Join(err, heal()); err != nil {
		return "", 0, err
	}
	served, left, err := r.awaitAsked(0)
	// What was asked may all have been taken for known: then the next doubt asks for more than the reader has had.
	if err == nil && served > 0 && served <= had+1 && !left {
		heal := r.blackOut()
		time.Sleep(2 * blackout) // a broker may just have failed to look, and pause before it looks again
		if err = heal(); err == nil {
			_, _, err = r.awaitAsked(served)
		}
	}
	proof = fmt.Sprintf("%s with %s of %s, which had delivered %d messages and, made anew, delivered %d",
		proof, r.consumer, quiet, had+1, served)
	return proof, served, err
}

func (r *rebirth) publish() {
	target := "orders.quiet"
	e := history.Event{Target: target, Delay: quietDelay, Subject: "delay." + quietLevel + "." + target}
	r.publisher.publish(e, "", "", func() {})
}

// publishAndAwait publishes one message and waits until the consumer has delivered so many.
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

// leadFrom makes one server the leader of every stream, so that a question to a leader does not notice the end of
// another server.
func leadFrom(ctx context.Context, js jetstream.JetStream, s *server) error {
	return retry(ctx, func(ctx context.Context) error {
		list := js.ListStreams(ctx)
		elsewhere := 0
		for info := range list.Info() {
			if info.Cluster == nil || info.Cluster.Leader == s.name {
				continue
			}
			elsewhere++
			request := fmt.Appendf(nil, `{"placement":{"preferred":%q}}`, s.name)
			api := "$JS.API.STREAM.LEADER.STEPDOWN." + info.Config.Name
			if _, err := js.Conn().RequestWithContext(ctx, api, request); err != nil {
				return err
			}
		}
		if elsewhere > 0 {
			return fmt.Errorf("%d streams were not led by %s", elsewhere, s.name)
		}
		return list.Err()
	})
}
