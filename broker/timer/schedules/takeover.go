package schedules

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/store"
)

const (
	// margin is the minimum time between the take-over of a schedule and its firing: until the take-over ends, it is in
	// both places.
	margin = 5 * time.Second
	// takenWord is the prefix of the words of the schedules that were taken over.
	takenWord = "of "
	// undoneWord is the suffix of the words that cancel a take-over.
	undoneWord = "undone"
	// takeWait is the timeout for each of its steps: all together less than the margin.
	takeWait = time.Second
)

// TakeOver moves the schedules of a stream of the server into the broker, so that each fires once: here or there.
//
//  1. The schedule is stored here, if its subject has none, for the time at which the server would fire it next. That
//     is at least margin ahead; a schedule that fires sooner is left to the next take-over.
//  2. Its message there is deleted, by its sequence.
//  3. If that message no longer exists, it was replaced or ended meanwhile: the schedule that was stored here is
//     cancelled.
//
// A client that cancelled or replaced it after the broker began to answer for its subject has ended it: if the last
// entry here still shows that, its message there is deleted, and nothing is stored.
//
// A take-over that stops in between leaves the schedule in both places. If it is repeated before the schedule fires, it
// finds the entry by its word, and completes the move. A repeating schedule with an interval of less than twice the
// margin skips the server's firings within the margin.
type TakeOver struct {
	Store   Store
	Grounds message.Grounds
	Dry     bool
}

// Fate is the result for a schedule.
type Fate string

// The results.
const (
	Taken Fate = "taken" // it was taken over; with Dry, it would be
	Left  Fate = "left"  // it is unchanged
	Ended Fate = "ended" // a client ended it here, and it was deleted there; with Dry, it would be
	Both  Fate = "both"  // it is in both places: repeat the take-over before it fires
)

// Took is the result for one schedule.
type Took struct {
	Subject string    `json:"subject"`
	Target  string    `json:"target,omitempty"`
	When    string    `json:"when"` // its pattern
	Due     time.Time `json:"due,omitzero"`
	Fate    Fate      `json:"fate"`
	Why     string    `json:"why,omitempty"`
}

// Stream goes through a stream, and reports the result for each schedule on a subject of the grounds.
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
			continue // it has fired, or was replaced by a message that comes later
		case err != nil:
			return fmt.Errorf("take over %s: %w", m.Subject, err)
		}
		if err := each(took); err != nil {
			return err
		}
	}
	return nil
}

// one takes over the schedule of one message.
func (o TakeOver) one(ctx context.Context, stream string, sequence uint64) (Took, error) {
	m, err := o.Store.API.Message(ctx, stream, sequence)
	if err != nil {
		return Took{}, err
	}
	in := m.Incoming(stream)
	when, _ := get(in.Header, hSchedule)
	took := Took{Subject: m.Subject, When: when, Fate: Left}
	for name := range in.Header { // its conditions on the stream were met then
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
// replaced it by one that has fired. A cancel by a take-over itself does not count.
func (o TakeOver) ended(ctx context.Context, s entry.Schedule, set time.Time) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	found, err := store.LastEntry(ctx, o.Store.Entries(), o.Store.Policy.Names.ScheduleSubject(s.Subject), 0)
	if err != nil || found.None {
		return false, err
	}
	st, ok := subjectStateOf(found)
	if !ok {
		return false, nil // storing it here fails, too
	}
	return st.visible == 0 && st.set.After(set) && !strings.HasPrefix(st.word, takenWord), nil
}

// end deletes there a schedule that a client ended here, unless there was an error.
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

// now returns the time of the stream's leader.
func (o TakeOver) now(ctx context.Context, stream string) (time.Time, error) {
	s, err := o.Store.Entries().Sample(ctx, stream)
	if err != nil {
		return time.Time{}, err
	}
	return s.ServerTime.Add(time.Since(s.Received)), nil
}
