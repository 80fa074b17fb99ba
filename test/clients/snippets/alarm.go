package snippets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/client"
)

// alarmTarget is the subject on which alarms ring.
const alarmTarget = "alarms.ring"

// Alarm is one alarm of an application. App and ID identify the alarm.
type Alarm struct {
	App, ID string
	At      time.Time
	Latest  time.Time // the alarm does not ring after this time
	Try     int       // the number of the attempt, from 0; Alarms counts it
}

// Alarms is an alarm clock for applications. It keeps no state: after a restart of the process, all alarms still exist.
type Alarms struct {
	Delays *client.Client
	Tries  int // how often an unanswered alarm rings again, after 1, 2, 4 … minutes
}

// key returns the key of one attempt. A repeated request, after an answer or a process was lost, has the same key.
func (a *Alarms) key(app, id string, try int) string { return fmt.Sprintf("%s:%s:%d", app, id, try) }

// Set creates an alarm. It may be repeated: an existing alarm stays as it is.
func (a *Alarms) Set(ctx context.Context, alarm Alarm) error {
	alarm.Try = 0
	return a.set(ctx, alarm, alarm.At)
}

func (a *Alarms) set(ctx context.Context, alarm Alarm, at time.Time) error {
	body, err := json.Marshal(alarm)
	if err != nil {
		return err
	}
	_, err = a.Delays.At(ctx, alarmTarget, at, body, client.Key(a.key(alarm.App, alarm.ID, alarm.Try)), client.IfAbsent(),
		client.ExpiresAt(alarm.Latest))
	if errors.Is(err, client.ErrConflict) { // the alarm exists, or has just rung
		return nil
	}
	return err
}

// Cancel cancels an alarm, and reports whether the alarm was still pending. A cancelled alarm never rings again.
func (a *Alarms) Cancel(ctx context.Context, app, id string) (bool, error) {
	return a.oneOf(app, id, func(key string) (bool, error) { return a.Delays.CancelPending(ctx, key, alarmTarget) })
}

// RingNow makes an alarm ring immediately. It reports whether the alarm was still pending.
func (a *Alarms) RingNow(ctx context.Context, app, id string) (bool, error) {
	return a.oneOf(app, id, func(key string) (bool, error) { return a.Delays.MovePending(ctx, key, alarmTarget, 0) })
}

// Change gives an alarm other times. It reports whether the alarm was still pending. If another client changes the
// alarm at the same time, the error is client.ErrConflict.
func (a *Alarms) Change(ctx context.Context, app, id string, at, latest time.Time) (bool, error) {
	return a.oneOf(app, id, func(key string) (bool, error) {
		t, err := a.Delays.Timer(ctx, key, alarmTarget)
		if err != nil || t.State != client.StatePending {
			return false, err
		}
		var alarm Alarm
		if err := json.Unmarshal(t.Body, &alarm); err != nil {
			return false, err
		}
		alarm.At, alarm.Latest = at, latest
		body, err := json.Marshal(alarm)
		if err != nil {
			return false, err
		}
		_, err = a.Delays.At(ctx, alarmTarget, at, body, client.Key(key), client.IfGeneration(t.Generation),
			client.ExpiresAt(latest))
		return err == nil, err
	})
}

// oneOf calls do with the key of each attempt, until do finds the pending one.
func (a *Alarms) oneOf(app, id string, do func(key string) (bool, error)) (bool, error) {
	for try := range a.Tries + 1 {
		if done, err := do(a.key(app, id, try)); done || err != nil {
			return done, err
		}
	}
	return false, nil
}

// Handle rings for a message of alarms.ring. If ring fails, the alarm rings again, later each time, at most Tries times
// and not after Latest. Acknowledge the message only after Handle has returned nil.
func (a *Alarms) Handle(ctx context.Context, m *nats.Msg, ring func(Alarm) error) error {
	var alarm Alarm
	if err := json.Unmarshal(m.Data, &alarm); err != nil {
		return err
	}
	arrival, ok := client.ParseArrival(m)
	if !ok {
		return errors.New("the message was not delivered by a broker")
	}
	next := arrival.Due.Add(time.Minute << alarm.Try)
	if ring(alarm) == nil || alarm.Try == a.Tries || next.After(alarm.Latest) {
		return nil
	}
	alarm.Try++
	return a.set(ctx, alarm, next)
}
