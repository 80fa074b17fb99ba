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
	// margin is the minimum time from the take-over of a schedule to its next firing: during the take-over, both the
	// server and the broker have the schedule.
	margin = 5 * time.Second
	// takenWord is the prefix of the request tokens of take-overs.
	takenWord = "of "
	// undoneWord is the suffix of the request tokens that cancel a schedule which was taken over.
	undoneWord = "undone"
	// takeWait is the timeout for each step of a take-over. All steps together must take less than the margin.
	takeWait = time.Second
)

// TakeOver moves schedules from a stream of the server to the broker. Each occurrence fires once, by the server or by
// the broker. A schedule is moved in these steps:
//
//  1. If the broker has no schedule of the subject, it stores the schedule for the server's next firing. If that is
//     less than margin ahead, the schedule is left to the next take-over.
//  2. The schedule's message is deleted from the server's stream, by its sequence.
//  3. If that message does not exist any more, a client has replaced or ended the schedule: the broker's schedule is
//     cancelled.
//
// A client may already have sent the broker a request that cancels or replaces the schedule. If the last entry of the
// subject still shows that, and no schedule is pending, the message in the server's stream is deleted, and nothing is
// stored.
//
// After an interrupted take-over, both the server and the broker have the schedule. If the take-over is repeated before
// the schedule fires, it finds the entry by its token, and completes the move. A schedule with an interval of at most
// twice the margin skips the occurrences within the margin.
type TakeOver struct {
	Store   Store
	Grounds message.Grounds
	Dry     bool // only report, and change nothing
}

// Fate is the result of the take-over of one schedule.
type Fate string

// The results.
const (
	Taken Fate = "taken" // the schedule was taken over
	Left  Fate = "left"  // the server keeps the schedule
	Ended Fate = "ended" // a client ended the schedule in the broker, so it was deleted from the server's stream
	Both  Fate = "both"  // the server and the broker have the schedule: repeat the take-over before it fires
)

// Took describes one schedule and the result of its take-over. With TakeOver.Dry, the result is that of a real
// take-over.
type Took struct {
	Subject string    `json:"subject"`
	Target  string    `json:"target,omitempty"`
	When    string    `json:"when"` // the value of Nats-Schedule
	Due     time.Time `json:"due,omitzero"`
	Fate    Fate      `json:"fate"`
	Why     string    `json:"why,omitempty"`
}

// Stream takes over all schedules of a stream whose subjects belong to a ground. It calls each with every result.
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
			continue // the schedule has fired, or was replaced by a later message
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
	for name := range in.Header { // the server has checked these conditions
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

// ended reports whether a client has ended a schedule of the server by a request to the broker: the client has
// cancelled the schedule, or replaced it by one that has fired. Set is when the server stored the schedule. A cancel by
// a take-over does not count.
func (o TakeOver) ended(ctx context.Context, s entry.Schedule, set time.Time) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	found, err := store.LastEntry(ctx, o.Store.Entries(), o.Store.Policy.Names.ScheduleSubject(s.Subject), 0)
	if err != nil || found.None {
		return false, err
	}
	st, ok := subjectStateOf(found)
	if !ok {
		return false, nil // the following step, storing the schedule, fails
	}
	return st.visible == 0 && st.set.After(set) && !strings.HasPrefix(st.word, takenWord), nil
}

// end deletes a schedule that a client has ended from the server's stream. If err is not nil, it only returns err.
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

// now returns the present time by the clock of the stream's leader.
func (o TakeOver) now(ctx context.Context, stream string) (time.Time, error) {
	s, err := o.Store.Entries().Sample(ctx, stream)
	if err != nil {
		return time.Time{}, err
	}
	return s.ServerTime.Add(time.Since(s.Received)), nil
}
