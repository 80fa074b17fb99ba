package schedules

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/timetable"
)

// next sets the schedule's At to the server's next firing, or returns the reason not to take the schedule over.
func (t *taking) next(ctx context.Context, s *entry.Schedule, now time.Time) (why string, err error) {
	next, ok := s.At, true
	earliest := now.Add(margin)
	if s.Every > 0 || s.Cron != "" {
		table := timetable.Table{Every: s.Every, Missed: timetable.One, Last: s.Until}
		var first time.Time
		if s.Cron != "" {
			if table, err = timetable.Parse(timetable.Words{Cron: s.Cron, Zone: s.Zone, Last: s.Until}); err != nil {
				return err.Error(), nil
			}
		} else if first, err = t.announced(ctx, s.Target); err != nil {
			return "", err
		} else if first.IsZero() {
			first = t.request.At.Round(time.Second).Add(s.Every)
		}
		next, ok = table.Start(now, first)
		if ok && next.Before(earliest) && table.Interval() <= 2*margin {
			next, ok = table.After(next, earliest)
		}
	}
	switch {
	case !ok:
		return "the schedule has ended", nil
	case next.Before(earliest):
		return "the schedule fires within seconds: repeat the take-over afterwards", nil
	}
	s.At = next
	return "", nil
}

// announced returns the next firing of a schedule with an interval, as the last message that it sent to the target
// announces it; zero if there is none.
func (t *taking) announced(ctx context.Context, target string) (time.Time, error) {
	m, err := t.Store.API.Last(ctx, t.request.Stream, target)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	h := m.Incoming(t.request.Stream).Header
	if by, _ := get(h, jetstream.SchedulerHeader); by != t.Subject {
		return time.Time{}, nil
	}
	next, _ := get(h, jetstream.ScheduleNextHeader)
	at, err := time.Parse(time.RFC3339Nano, next)
	if err != nil {
		return time.Time{}, nil // "purge": an earlier schedule of the same subject has ended
	}
	return at, nil
}

// move stores the schedule in the broker, and then deletes it from the server's stream.
func (t *taking) move(ctx context.Context, now time.Time) {
	t.change.Expected, t.change.Also = new(uint64), nil
	answer, err := t.publish(ctx, t.request, t.change, now)
	if err == nil && answer.Error == nil {
		switch err = t.delete(ctx); {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			t.undo(ctx, answer.Sequence, now)
		case err != nil:
			t.Fate, t.Why = Both, "the broker has stored it, and the server's message cannot be deleted: "+err.Error()
		}
		return
	}
	t.Fate = Left
	switch {
	case err != nil:
		t.Fate, t.Why = Both, "unknown whether the broker has stored the schedule"
	case answer.Error.ErrCode == jsapi.CodeWrongLast:
		t.Why = "the broker already has a schedule of this subject: end one of them"
	default:
		t.Why = answer.Error.Description
	}
}

// undo cancels the broker's schedule. It is called if a client has replaced or ended the server's schedule during the
// take-over.
func (t *taking) undo(ctx context.Context, generation uint64, now time.Time) {
	s := t.change.Schedule
	end := Change{
		Cancel: true, Schedule: entry.Schedule{Subject: s.Subject, Word: s.Word + " undone"}, Expected: &generation,
	}
	t.Fate, t.Why = Left, "a client replaced or ended it during the take-over: repeat the take-over"
	if answer, err := t.publish(ctx, message.Incoming{}, end, now); err != nil || answer.Error != nil {
		t.Fate, t.Why = Both, "a client replaced or ended it during the take-over, and the broker cannot cancel its copy"
	}
}

// publish carries out a change in the broker, as one step of the take-over.
func (t *taking) publish(ctx context.Context, r message.Incoming, c Change, now time.Time) (ack, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return t.Store.carryOut(ctx, r, c, now)
}
