package schedules

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	// margin is the minimum time from the take-over of a schedule to its next firing. All steps of a take-over together
	// must take less time, since both the server and the broker have the schedule meanwhile.
	margin = 5 * time.Second
	// takeOverPrefix begins the token of each take-over's request.
	takeOverPrefix = "of "
)

// TakeOver moves schedules from a stream of the server to the broker. Unless a take-over is interrupted, no occurrence
// fires twice. A schedule is moved in these steps:
//
//  1. Unless the broker has a schedule of the subject, the take-over stores the schedule in the broker, for the
//     server's next firing. If that firing is less than margin ahead, the server keeps the schedule.
//  2. The schedule's message is deleted from the server's stream, by its sequence.
//  3. If that message does not exist any more, a client has replaced or ended the schedule. Then the broker's schedule
//     is cancelled.
//
// If a client has already ended the schedule by a request to the broker, only the message in the server's stream is
// deleted. After an interrupted take-over, both the server and the broker may have the schedule. A second take-over
// before the schedule fires finds the entry by its token, and completes the move. If the interval of a schedule is at
// most twice the margin, the occurrences within the margin are skipped.
type TakeOver struct {
	Store  Store
	Rules  message.ScheduleRules
	DryRun bool // only report, and change nothing
}

// Outcome is the result of the take-over of one schedule.
type Outcome string

const (
	Taken   Outcome = "taken" // the schedule was taken over
	Kept    Outcome = "left"  // the server keeps the schedule
	Ended   Outcome = "ended" // a client ended the schedule in the broker, so it was deleted from the server's stream
	Doubled Outcome = "both"  // the server and the broker have the schedule: repeat the take-over before it fires
)

// Result describes one schedule and the result of its take-over, or the expected result with TakeOver.DryRun.
type Result struct {
	Subject string    `json:"subject"`
	Target  string    `json:"target,omitempty"`
	Pattern string    `json:"when"` // the value of Nats-Schedule
	Due     time.Time `json:"due,omitzero"`
	Outcome Outcome   `json:"fate"`
	Why     string    `json:"why,omitempty"`
}

// MoveAll takes over all schedules of a stream whose subjects belong to a rule. It passes the result of each schedule
// to the function each, and stops if that function returns an error.
func (o TakeOver) MoveAll(ctx context.Context, stream string, each func(Result) error) error {
	info, err := o.Store.Entries().Sample(ctx, stream)
	if err != nil {
		return fmt.Errorf("read the state of %s: %w", stream, err)
	}
	scan := o.Store.Scan
	scan.Stream, scan.Observer, scan.HeadersOnly, scan.To = stream, "schedules", true, info.LastSeq
	for m, err := range scan.All(ctx) {
		if err != nil {
			return fmt.Errorf("read %s: %w", stream, err)
		}
		if _, ours := o.Rules.Lookup(m.Subject); !ours || len(m.Header[jetstream.ScheduleHeader]) == 0 {
			continue
		}
		t := transfer{TakeOver: o, Result: Result{Subject: m.Subject, Outcome: Kept}}
		err := t.run(ctx, stream, m.Sequence)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			continue // the schedule has fired, or was replaced by a later message
		case err != nil:
			return fmt.Errorf("take over %s: %w", m.Subject, err)
		}
		if err := each(t.Result); err != nil {
			return err
		}
	}
	return nil
}

// transfer is the state of the take-over of one schedule.
type transfer struct {
	TakeOver
	Result
	request message.Incoming // the schedule's message in the server's stream
	change  Change           // the change that sets the same schedule in the broker
	exists  bool             // the broker has another schedule of the subject
}

const existsText = "the broker already has a schedule of this subject: end one of them"

// run takes over the schedule of one message.
func (t *transfer) run(ctx context.Context, stream string, sequence uint64) error {
	m, err := t.Store.API.Message(ctx, stream, sequence)
	if err != nil {
		return err
	}
	t.request = m.Incoming(stream)
	t.Pattern = get(t.request.Header, jetstream.ScheduleHeader)
	maps.DeleteFunc(t.request.Header, func(name string, _ []string) bool { // the server has checked these conditions
		return strings.HasPrefix(name, "Nats-Expected-")
	})
	var refusal *Refusal
	t.change, refusal = Judge(t.Rules, t.Store.stream(), t.request, t.request.At)
	s := &t.change.Schedule
	if t.Target = s.Target; refusal != nil {
		t.Why = refusal.Description
		return nil
	}
	s.Token = fmt.Sprintf("%s%s %d %d", takeOverPrefix, t.request.Stream, t.request.Sequence, t.request.At.UnixNano())
	if ended, err := t.deleteEnded(ctx); err != nil || ended {
		return err
	}
	leader, err := t.Store.Entries().Sample(ctx, t.request.Stream)
	if err != nil {
		return err
	}
	now := leader.ServerTime.Add(time.Since(leader.Received))
	if t.Why, err = t.setNext(ctx, s, now); err != nil || t.Why != "" {
		return err
	}
	t.Due = s.At
	if _, problem := entry.ScheduleEntry(t.Store.Policy, *s, t.request.Header, t.request.Data, now); problem != nil {
		t.Why = problem.Sentence
		return nil
	}
	switch t.Outcome = Taken; {
	case !t.DryRun:
		t.move(ctx, now)
	case t.exists:
		t.Outcome, t.Why = Kept, existsText
	}
	return nil
}

// deleteEnded reports whether a client has ended the server's schedule by a request to the broker: the request was a
// cancel, or it set another schedule on the subject, which has ended since. Then deleteEnded deletes the schedule from
// the server's stream. It also sets t.exists.
func (t *transfer) deleteEnded(ctx context.Context) (bool, error) {
	reading, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	subject := t.Store.Policy.Names.ScheduleSubject(t.change.Schedule.Subject)
	found, err := store.LastEntry(reading, t.Store.Entries(), subject, 0)
	if err != nil || found.NoEntry {
		return false, err
	}
	st, ok := subjectStateOf(found)
	t.exists = ok && st.pendingGeneration > 0 && st.token != t.change.Schedule.Token
	if !ok || st.pendingGeneration > 0 || !st.setAt.After(t.request.At) || strings.HasPrefix(st.token, takeOverPrefix) {
		return false, nil // without ok, the entry is sealed with an unknown key, and move stores nothing
	}
	if !t.DryRun {
		err = t.delete(ctx)
	}
	if t.Outcome = Ended; err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		t.Outcome = Kept
		t.Why = "a client has ended the schedule in the broker, and the server's message cannot be deleted: " + err.Error()
	}
	return true, nil
}

// delete deletes the schedule's message from the server's stream. It returns jetstream.ErrMsgNotFound if the message
// does not exist any more.
func (t *transfer) delete(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return t.Store.API.Delete(ctx, t.request.Stream, t.request.Sequence)
}

// setNext sets the schedule's At to the server's next firing, or returns the reason not to take the schedule over.
func (t *transfer) setNext(ctx context.Context, s *entry.Schedule, now time.Time) (why string, err error) {
	next, ok := s.At, true
	earliest := now.Add(margin)
	if s.Every > 0 || s.Cron != "" {
		table := timetable.Table{Every: s.Every, Missed: timetable.One, Last: s.Until}
		var first time.Time
		if s.Cron != "" {
			if table, err = timetable.Parse(timetable.Settings{Cron: s.Cron, Zone: s.Zone, Last: s.Until}); err != nil {
				return err.Error(), nil
			}
		} else if first, err = t.announcedTime(ctx, s.Target); err != nil {
			return "", err
		} else if first.IsZero() {
			first = t.request.At.Round(time.Second).Add(s.Every)
		}
		next, ok = table.Start(now, first)
		if ok && next.Before(earliest) && table.Interval() <= 2*margin {
			next, ok = table.Next(next, earliest)
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

// announcedTime returns the next firing of a schedule with an interval: Nats-Schedule-Next of the last message on the
// target subject. It returns zero if that message is not of this schedule.
func (t *transfer) announcedTime(ctx context.Context, target string) (time.Time, error) {
	m, err := t.Store.API.Last(ctx, t.request.Stream, target)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	h := m.Incoming(t.request.Stream).Header
	next, err := time.Parse(time.RFC3339Nano, get(h, jetstream.ScheduleNextHeader))
	if err != nil || get(h, jetstream.SchedulerHeader) != t.Subject {
		return time.Time{}, nil // the value "purge" is of an earlier schedule, which has ended
	}
	return next, nil
}

// move stores the schedule in the broker, and then deletes the schedule from the server's stream.
func (t *transfer) move(ctx context.Context, now time.Time) {
	t.change.Expected, t.change.Conditions = new(uint64), nil
	answer, err := t.publish(ctx, t.request, t.change, now)
	if err == nil && answer.Error == nil {
		switch err = t.delete(ctx); {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			t.undo(ctx, answer.Sequence, now)
		case err != nil:
			t.Outcome = Doubled
			t.Why = "the broker has stored the schedule, and the server's message cannot be deleted: " + err.Error()
		}
		return
	}
	t.Outcome = Kept
	switch {
	case err != nil:
		t.Outcome, t.Why = Doubled, "unknown whether the broker has stored the schedule"
	case answer.Error.ErrCode == jsapi.CodeWrongLast:
		t.Why = existsText
	default:
		t.Why = answer.Error.Description
	}
}

// undo cancels the broker's schedule. It is called if a client has replaced or ended the server's schedule during the
// take-over.
func (t *transfer) undo(ctx context.Context, generation uint64, now time.Time) {
	s := t.change.Schedule
	end := Change{
		Cancel: true, Schedule: entry.Schedule{Subject: s.Subject, Token: s.Token + " undone"}, Expected: &generation,
	}
	t.Outcome, t.Why = Kept, "a client replaced or ended the schedule during the take-over: repeat the take-over"
	if answer, err := t.publish(ctx, message.Incoming{}, end, now); err != nil || answer.Error != nil {
		t.Outcome = Doubled
		t.Why = "a client replaced or ended the schedule during the take-over, and the broker cannot cancel its copy"
	}
}

// publish carries out a change in the broker, as one step of the take-over.
func (t *transfer) publish(ctx context.Context, r message.Incoming, c Change, now time.Time) (ack, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return t.Store.carryOut(ctx, r, c, now)
}
