package schedules

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/timetable"
)

// next returns the schedule with the server's next firing as its At, or the reason not to take it over.
func (o TakeOver) next(
	ctx context.Context, stream string, m jsapi.Message, s entry.Schedule, now time.Time,
) (entry.Schedule, string, error) {
	const soon = "it fires in a moment: repeat the take-over"
	earliest := now.Add(margin)
	if s.Every == 0 && s.Cron == "" {
		if s.At.Before(earliest) {
			return s, soon, nil
		}
		return s, "", nil
	}
	var table timetable.Table
	var first time.Time
	var err error
	if s.Cron != "" {
		if table, err = timetable.Parse(timetable.Words{Cron: s.Cron, Zone: s.Zone, Last: s.Until}); err != nil {
			return s, err.Error(), nil
		}
	} else {
		table = timetable.Table{Every: s.Every, Missed: timetable.One, Last: s.Until}
		if first, err = o.told(ctx, stream, m.Subject, s.Target); err != nil {
			return s, "", err
		}
		if first.IsZero() {
			first = m.Time.Round(time.Second).Add(s.Every)
		}
	}
	next, ok := table.Start(now, first)
	if ok && next.Before(earliest) && table.Interval() <= 2*margin {
		next, ok = table.After(next, earliest)
	}
	switch {
	case !ok:
		return s, "it has ended", nil
	case next.Before(earliest):
		return s, soon, nil
	}
	s.At = next
	return s, "", nil
}

// told returns the next firing of a schedule with an interval, according to the last message that it sent to the
// target; zero if there is none.
func (o TakeOver) told(ctx context.Context, stream, scheduler, target string) (time.Time, error) {
	m, err := o.Store.API.Last(ctx, stream, target)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	h := m.Incoming(stream).Header
	if by, _ := get(h, hScheduler); by != scheduler {
		return time.Time{}, nil
	}
	next, _ := get(h, hNext)
	at, err := time.Parse(time.RFC3339Nano, next)
	if err != nil {
		return time.Time{}, nil // "purge": an earlier schedule of the same subject has ended
	}
	return at, nil
}

// move stores the schedule in the broker, and then deletes it from the server's stream.
func (o TakeOver) move(
	ctx context.Context, stream string, sequence uint64, r Request, w Change, took Took, now time.Time,
) (Took, error) {
	none := uint64(0)
	w.Expected, w.Also = &none, nil
	storing, cancel := context.WithTimeout(ctx, takeWait)
	answer, err := o.Store.carryOut(storing, r, w, now)
	cancel()
	switch {
	case err != nil:
		took.Fate, took.Why = Both, "unknown whether the schedule is stored here"
		return took, nil
	case answer.Error != nil && answer.Error.ErrCode == jsapi.CodeWrongLast:
		took.Why = "the broker already has a schedule of this subject: end one of them"
		return took, nil
	case answer.Error != nil:
		took.Why = answer.Error.Description
		return took, nil
	}
	deleting, cancel := context.WithTimeout(ctx, takeWait)
	defer cancel()
	err = o.Store.API.Delete(deleting, stream, sequence)
	switch {
	case err == nil:
		took.Fate = Taken
		return took, nil
	case !errors.Is(err, jetstream.ErrMsgNotFound):
		took.Fate, took.Why = Both, "it is stored here, and cannot be deleted there: "+err.Error()
		return took, nil
	}
	return o.undo(ctx, answer.Sequence, w, took, now)
}

// undo cancels the broker's schedule. It is called if a client has replaced or ended the server's schedule during the
// take-over.
func (o TakeOver) undo(
	ctx context.Context, generation uint64, w Change, took Took, now time.Time,
) (Took, error) {
	undoing, cancel := context.WithTimeout(ctx, takeWait)
	defer cancel()
	word := w.Schedule.Word + " " + undoneWord
	end := Change{
		Cancel: true, Schedule: entry.Schedule{Subject: w.Schedule.Subject, Word: word}, Expected: &generation,
	}
	answer, err := o.Store.carryOut(undoing, Request{Subject: w.Schedule.Subject}, end, now)
	if err != nil || answer.Error != nil {
		took.Fate, took.Why = Both, "it was replaced or ended there meanwhile, and what is stored here cannot be cancelled"
		return took, nil
	}
	took.Why = "it was replaced or ended there meanwhile: take it the next time"
	return took, nil
}
