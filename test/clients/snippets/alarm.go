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

// Alarm is one alarm of an application, which knows it by an id of its own.
type Alarm struct {
	App, ID string
	At      time.Time
	Latest  time.Time // after that it does not ring any more
	Try     int       // from 0; counted by Alarms
}

// Alarms are an alarm clock for applications. They keep nothing: a process that is restarted has all alarms.
type Alarms struct {
	Delays *client.Client
	Tries  int // how often an alarm rings that nobody answers, after 1, 2, 4 … minutes
}

// key is that of one try: whoever asks for the same once more, after an answer or a process was lost, has the same key.
func (a *Alarms) key(app, id string, try int) string { return fmt.Sprintf("%s:%s:%d", app, id, try) }

// Set creates an alarm. It may be repeated: an alarm that is there stays as it is.
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
	if errors.Is(err, client.ErrConflict) { // it is there, or has rung a moment ago
		return nil
	}
	return err
}

// Cancel reports whether an alarm was cancelled before it rang. If so, it will never ring.
func (a *Alarms) Cancel(ctx context.Context, app, id string) (bool, error) {
	return a.oneOf(app, id, func(key string) (bool, error) { return a.Delays.CancelPending(ctx, key, alarmTarget) })
}

// RingNow rings at once, and reports whether it had not rung yet.
func (a *Alarms) RingNow(ctx context.Context, app, id string) (bool, error) {
	return a.oneOf(app, id, func(key string) (bool, error) { return a.Delays.MovePending(ctx, key, alarmTarget, 0) })
}

// Change gives an alarm other times, and reports whether it had not rung yet. If somebody else changes it at the same
// moment, the error is client.ErrConflict.
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

// oneOf does something to the try that is pending.
func (a *Alarms) oneOf(app, id string, do func(key string) (bool, error)) (bool, error) {
	for try := range a.Tries + 1 {
		if done, err := do(a.key(app, id, try)); done || err != nil {
			return done, err
		}
	}
	return false, nil
}

// Handle rings for a message of alarms.ring. If ring fails, the alarm rings again, later each time. The message is done
// when Handle returns nil: acknowledge it then, and not before.
func (a *Alarms) Handle(ctx context.Context, m *nats.Msg, ring func(Alarm) error) error {
	var alarm Alarm
	if err := json.Unmarshal(m.Data, &alarm); err != nil {
		return err
	}
	arrival, ok := client.Of(m)
	if !ok {
		return errors.New("it did not come from the broker")
	}
	next := arrival.Due.Add(time.Minute << alarm.Try)
	if ring(alarm) == nil || alarm.Try == a.Tries || next.After(alarm.Latest) {
		return nil
	}
	alarm.Try++
	return a.set(ctx, alarm, next)
}
