package schedules

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/store"
	"delaybroker/broker/timer/timetable"
)

const (
	// margin is how long before a schedule fires it is taken over at the latest: until then, it stands in both places.
	margin = 5 * time.Second
	// takenWord begins the words of what was taken over.
	takenWord = "of "
	// undoneWord ends the words with which what was taken over is cancelled.
	undoneWord = "undone"
	// takeWait is how long each step of it may take: all together less than the margin.
	takeWait = time.Second
)

// TakeOver takes the schedules of a stream of the server's into the broker, so that each fires once: here or there.
//
//  1. It is stored here, if there is none of its subject, for the time at which the server would fire it next. That is
//     at least margin ahead; what fires sooner is left, to be taken the next time.
//  2. Its message there is deleted, by its sequence.
//  3. Where that message is not there any more, it was replaced or ended meanwhile: what was stored here is cancelled.
//
// A client that cancelled or replaced it after the broker had begun to answer for its subject has ended it: where the
// last entry here still says so, its message there is deleted, and nothing is stored.
//
// What ends in between leaves it in both places. Done again before it fires, that is found by the word of the entry,
// and ended there. A repeating one that fires more often than twice the margin leaves out what the server would have
// fired in the margin.
type TakeOver struct {
	Store   Store
	Grounds message.Grounds
	Dry     bool
}

// Fate is what became of a schedule.
type Fate string

// The fates.
const (
	Taken Fate = "taken" // with Dry, it would be
	Left  Fate = "left"  // it is as it was
	Ended Fate = "ended" // a client ended it here, and it was deleted there; with Dry, it would be
	Both  Fate = "both"  // it stands in both places: to be taken again, before it fires
)

// Took is what became of one schedule.
type Took struct {
	Subject string    `json:"subject"`
	Target  string    `json:"target,omitempty"`
	When    string    `json:"when"` // as it was asked for
	Due     time.Time `json:"due,omitzero"`
	Fate    Fate      `json:"fate"`
	Why     string    `json:"why,omitempty"`
}

// Stream goes through a stream, and says what became of each schedule on a subject of the grounds.
func (o TakeOver) Stream(ctx context.Context, stream string, each func(Took) error) error {
	info, err := o.Store.Entries().Sample(ctx, stream)
	if err != nil {
		return fmt.Errorf("look at %s: %w", stream, err)
	}
	scan := o.Store.Scan
	scan.Stream, scan.For, scan.HeadersOnly, scan.To = stream, "schedules", true, info.LastSeq
	for m, err := range scan.All(ctx) {
		if err != nil {
			return fmt.Errorf("read %s: %w", stream, err)
		}
		if _, ours := o.Grounds.Of(m.Subject); !ours || len(m.Header[hSchedule]) == 0 {
			continue
		}
		took, err := o.one(ctx, stream, m.Sequence)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			continue // it has fired, or was replaced: that one comes later
		case err != nil:
			return fmt.Errorf("take over %s: %w", m.Subject, err)
		}
		if err := each(took); err != nil {
			return err
		}
	}
	return nil
}

// one takes over the schedule of a message.
func (o TakeOver) one(ctx context.Context, stream string, sequence uint64) (Took, error) {
	m, err := o.Store.API.Message(ctx, stream, sequence)
	if err != nil {
		return Took{}, err
	}
	in := m.Incoming(stream)
	when, _ := get(in.Header, hSchedule)
	took := Took{Subject: m.Subject, When: when, Fate: Left}
	for name := range in.Header { // what it expected of the stream, it expected then
		if strings.HasPrefix(name, "Nats-Expected-") {
			delete(in.Header, name)
		}
	}
	r := Request{Subject: m.Subject, Header: in.Header, Body: in.Data}
	w, refused := Judge(o.Grounds, o.Store.stream(), r, m.Time)
	took.Target = w.Schedule.Target
	switch {
	case in.Undecodable:
		took.Why = "its headers cannot be decoded"
		return took, nil
	case refused != nil:
		took.Why = refused.Description
		return took, nil
	}
	w.Schedule.Word = fmt.Sprintf("%s%s %d %d", takenWord, stream, sequence, m.Time.UnixNano())
	if ended, err := o.ended(ctx, w.Schedule, m.Time); err != nil || ended {
		return o.end(ctx, stream, sequence, took, err)
	}
	now, err := o.now(ctx, stream)
	if err != nil {
		return took, err
	}
	if w.Schedule, took.Why, err = o.next(ctx, stream, m, w.Schedule, now); err != nil || took.Why != "" {
		return took, err
	}
	took.Due = w.Schedule.At
	if _, _, problem := entry.ScheduleEntry(o.Store.Policy, w.Schedule, r.Header, r.Body, now); problem != nil {
		took.Why = problem.Sentence
		return took, nil
	}
	if o.Dry {
		took.Fate = Taken
		return took, nil
	}
	return o.move(ctx, stream, sequence, r, w, took, now)
}

// ended reports whether the last entry here ended a schedule that was set there at a time: a client cancelled it, or
// replaced it by one that has fired. What an import itself cancelled says nothing of it.
func (o TakeOver) ended(ctx context.Context, s entry.Schedule, set time.Time) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	found, err := store.LastEntry(ctx, o.Store.Entries(), o.Store.Policy.Names.ScheduleSubject(s.Subject), 0)
	if err != nil || found.None {
		return false, err
	}
	see, ok := sightOf(found)
	if !ok {
		return false, nil // to store it here fails, too
	}
	return see.visible == 0 && see.set.After(set) && !strings.HasPrefix(see.word, takenWord), nil
}

// end deletes there what a client ended here, unless there was an error.
func (o TakeOver) end(ctx context.Context, stream string, sequence uint64, took Took, err error) (Took, error) {
	if err != nil {
		return took, err
	}
	if o.Dry {
		took.Fate = Ended
		return took, nil
	}
	deleting, cancel := context.WithTimeout(ctx, takeWait)
	defer cancel()
	switch err := o.Store.API.Delete(deleting, stream, sequence); {
	case err == nil || errors.Is(err, jetstream.ErrMsgNotFound):
		took.Fate = Ended
	default:
		took.Why = "its client ended it here, and it cannot be deleted there: " + err.Error()
	}
	return took, nil
}

// now is the time of the stream's leader.
func (o TakeOver) now(ctx context.Context, stream string) (time.Time, error) {
	s, err := o.Store.Entries().Sample(ctx, stream)
	if err != nil {
		return time.Time{}, err
	}
	return s.ServerTime.Add(time.Since(s.Received)), nil
}

// next says when the server would fire a schedule next, as its At; or why it is to be left.
func (o TakeOver) next(
	ctx context.Context, stream string, m jsapi.Message, s entry.Schedule, now time.Time,
) (entry.Schedule, string, error) {
	const soon = "it fires in a moment: take it the next time"
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

// told is when an interval fires next, as its last message at the target says; zero if there is none.
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
		return time.Time{}, nil // "purge", of another schedule that was on the subject
	}
	return at, nil
}

// move stores it here, and then deletes it there.
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
		took.Fate, took.Why = Both, "nothing tells whether it is stored here"
		return took, nil
	case answer.Error != nil && answer.Error.ErrCode == jsapi.CodeWrongLast:
		took.Why = "the broker has a schedule of this subject: end one of them"
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

// undo cancels what was stored here, since the one there is another by now.
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
