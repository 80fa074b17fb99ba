package entry

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/timer/timetable"
	"delaybroker/levels"
)

// maxBodyRate is the maximum size of a recurring timer's body, in bytes for each second of its interval.
const maxBodyRate = 64 << 10

// Series has the common fields of all rounds of a recurring timer, and the planned time of the pending round.
type Series struct {
	Table   timetable.Table
	First   time.Time // the planned time of the first round
	Planned time.Time // the planned time of the pending round; with jitter, or after a move, the due time may differ
	Owner   string    // free text about the owner of the series, for people and their tools
}

// setting is a field of timetable.Settings that is a string.
type setting struct {
	name, header string
	value        *string
}

func settingsOf(w *timetable.Settings) []setting {
	return []setting{
		{"every", message.HeaderEvery, &w.Every}, {"cron", message.HeaderCron, &w.Cron},
		{"zone", message.HeaderZone, &w.Zone}, {"jitter", message.HeaderJitter, &w.Jitter},
		{"rounds", message.HeaderRounds, &w.Rounds}, {"missed", message.HeaderMissed, &w.Missed},
	}
}

// firstTableHeader returns the name of the first header of a time table that a message has; empty if it has none.
func firstTableHeader(s message.Block) string {
	return s.FirstHeader(SeriesHeaders...)
}

// SeriesHeaders are the request headers that only a recurring timer may have.
var SeriesHeaders = slices.DeleteFunc(message.HeadersOf(message.InSeries), func(name string) bool {
	return slices.Contains(message.HeadersOf(message.InPlain|message.InTimer), name)
})

// recurs reports whether a message has a header of a time table.
func recurs(s message.Block) bool { return firstTableHeader(s) != "" }

func parseTable(s message.Block) (timetable.Table, *message.Problem) {
	var w timetable.Settings
	for _, t := range settingsOf(&w) {
		value, problem := s.Value(t.header)
		if problem != nil {
			return timetable.Table{}, problem
		}
		if *t.value = value; value == "" && s.Delay[t.header] != nil {
			return timetable.Table{}, message.Problemf(message.BadTimer, "%s is empty: give a value, or leave it out", t.header)
		}
	}
	last, problem := s.Value(message.HeaderLast)
	if problem == nil && s.Delay[message.HeaderLast] != nil {
		w.Last, problem = message.ParseTime(last)
	}
	switch {
	case problem != nil:
		return timetable.Table{}, problem
	case w.Every == "" && w.Cron == "":
		return timetable.Table{}, message.Problemf(message.BadTimer,
			"%s without Delay-Every or Delay-Cron: add one of them, or leave it out", firstTableHeader(s))
	}
	table, err := timetable.Parse(w)
	refused, ok := errors.AsType[*timetable.Error](err)
	if !ok {
		return table, nil
	}
	header := refused.Setting
	for _, t := range settingsOf(&w) {
		if t.name == refused.Setting {
			header = t.header
		}
	}
	return table, message.Problemf(message.BadTimer, "%s: %s", header, refused.Sentence)
}

// startSeries returns the series that a client's set starts, and the due time of its first round. Requested is the
// requested time of the first round; zero if the client requests none. The caller has checked requested against
// DELAY_MAX_DELAY.
func startSeries(
	p message.Policy, in message.Incoming, s message.Block, requested time.Time,
) (series *Series, due time.Time, problem *message.Problem) {
	table, problem := parseTable(s)
	if problem != nil {
		return nil, due, problem
	}
	owner, problem := s.Value(message.HeaderOwner)
	if problem = cmp.Or(problem, CheckRecurring(p, table, len(in.Data))); problem != nil {
		return nil, due, problem
	}
	first, ok := table.Start(in.At, requested)
	if !ok {
		return nil, due, message.Problemf(message.BadTimer, "the time table has no round before Delay-Last %s",
			s.Delay[message.HeaderLast][0])
	}
	series = &Series{Table: table, First: first, Planned: first, Owner: message.Reason(owner)}
	return series, table.Round(timetable.Series{ID: in.Sequence, First: first}, 1, first).Due, nil
}

// maxPauseAfter is the maximum of Delay-Pause-After.
const maxPauseAfter = 1000

// pauseAfter returns the Delay-Pause-After of a set, or zero if the set has none. The key of a failed round is in the
// Delay-Subject of its message, so that header must have the whole subject.
func pauseAfter(r message.Request, s message.Block) (int, *message.Problem) {
	value, problem := s.Value(message.HeaderPauseAfter)
	if problem != nil || s.Delay[message.HeaderPauseAfter] == nil {
		return 0, problem
	}
	n, err := strconv.Atoi(value)
	switch {
	case err != nil || n < 1 || n > maxPauseAfter:
		return 0, message.Problemf(message.BadTimer, "Delay-Pause-After %s: want a whole number from 1 to %d",
			message.Excerpt(value), maxPauseAfter)
	case message.UnescapeSubject(r.Subject) == "":
		return 0, message.Problemf(message.BadTimer,
			"Delay-Pause-After with a key and a target that are too long together: choose a shorter key")
	}
	return n, nil
}

// AddFailure records in the pending round that an earlier round of its series has become a dead letter. It reports
// whether the series is to be paused. LastError is then the reason of the pause.
func (t *Pending) AddFailure(round int, reason string) (pause bool) {
	origin := t.Origin()
	if origin.FailedRound != round-1 { // a round between the two did not fail
		origin.Failures = 0
	}
	origin.Failures, origin.FailedRound = origin.Failures+1, round
	if pause = origin.Failures >= origin.PauseAfter; pause {
		t.LastError = message.Reason(fmt.Sprintf("paused after dead letters in a row (%d): %s", origin.Failures, reason))
	}
	t.Request = t.WithOrigin(origin)
	return pause
}

// ClearFailures ends the row of dead letters. A letter that is counted twice does not begin another row.
func (t *Pending) ClearFailures() {
	origin := t.Origin()
	origin.Failures, t.LastError = 0, ""
	t.Request = t.WithOrigin(origin)
}

// checkExpires refuses a Delay-Expires that is not a duration: a time would be in the past for later rounds.
func checkExpires(s message.Block) *message.Problem {
	expires, problem := s.Value(message.HeaderExpires)
	if _, err := levels.ParseDuration(expires); problem != nil || expires == "" || err == nil {
		return problem
	}
	return message.Problemf(message.BadOption,
		"Delay-Expires %s of a recurring timer: want a duration after the due time of each round, such as 10m",
		message.Excerpt(expires))
}

// CheckRecurring returns the problem of a recurring timer's interval, or of the size of its body. The maximum delay
// bounds an interval. It does not bound a cron expression, whose times may be years apart.
func CheckRecurring(p message.Policy, table timetable.Table, size int) *message.Problem {
	if p.MaxDelay > 0 && table.Every > p.MaxDelay {
		return message.Problemf(message.TooFar, "every %s: the interval is longer than %s (DELAY_MAX_DELAY)",
			levels.FormatDuration(table.Every), levels.FormatDuration(p.MaxDelay))
	}
	if limit := maxBodyRate * table.Interval().Seconds(); float64(size) > limit {
		return message.Problemf(message.TooLarge,
			"the body of %d bytes is stored again for each round: want at most %d for %s", size, int64(limit), table)
	}
	return nil
}

// Summary describes the time table for people: "every 15m, round 7". The result is empty for a timer that does not
// recur.
func (t Pending) Summary() string {
	if t.Series == nil {
		return ""
	}
	return t.Series.Table.String() + ", round " + strconv.Itoa(t.Origin().Round)
}

// Round returns the pending round of a recurring timer, as package timetable represents it.
func (t Pending) Round() (timetable.Series, timetable.Round) {
	origin := t.Origin()
	return timetable.Series{ID: origin.Series, First: t.Series.First},
		timetable.Round{Number: origin.Round, Planned: t.Series.Planned, Due: t.Due}
}

// Next is the round that an entry sets in place of the pending one.
type Next struct {
	Instance string          // the instance that fires the pending round; empty if the round does not fire
	Round    timetable.Round // the new round; its Due is zero for a pause
	Wait     time.Time       // the earliest time at which the new round may fire; zero if that is its due time
	Table    timetable.Table // the time table of the series from now on
	First    time.Time       // Series.First from now on
	Token    string          // the token of the client's request; for a firing, the token of the pending round
}

// RoundHeader returns the header of the entry that replaces the pending round. The stream stores the entry only if the
// generation is still the last entry.
func (t Pending) RoundHeader(generation uint64, n Next) message.Header {
	if t.Token = n.Token; t.Due.IsZero() { // the series is paused, so Expires counts from the zero time
		t.Due = t.Series.Planned
		if !t.Expires.IsZero() {
			t.Expires = t.Due.Add(t.Expires.Sub(time.Time{}))
		}
	}
	h := t.FiredHeader(generation, n.Instance)
	w := n.Table.Settings()
	for _, s := range settingsOf(&w) {
		message.Put(h, s.header, *s.value)
	}
	message.Put(h, message.HeaderOwner, t.Series.Owner)
	message.PutTime(h, message.HeaderLast, w.Last)
	message.PutTime(h, message.HeaderFirst, n.First)
	message.PutTime(h, message.HeaderPlanned, n.Round.Planned)
	message.PutTime(h, message.HeaderNext, n.Round.Due)
	message.PutTime(h, message.HeaderNextWait, n.Wait)
	return h
}

// parseRound parses an entry with a RoundHeader, whose seal was checked. E is the result of parsing the entry as a
// firing. The publish of a valid entry expected the generation that the entry replaced.
func parseRound(p message.Policy, in message.Incoming, s message.Block, e Entry) Entry {
	if e.Problem != nil && e.Problem.Code == message.NewerFormat {
		return e
	}
	replaced, f := e.Request, message.Fields{Block: s}
	table, problem := parseTable(s)
	next := Series{
		Table:   table,
		First:   f.Moment(message.HeaderFirst, message.Required),
		Planned: f.Moment(message.HeaderPlanned, message.Required),
		Owner:   f.Text(message.HeaderOwner),
	}
	due, wait := f.Moment(message.HeaderNext, message.Optional), f.Moment(message.HeaderNextWait, message.Optional)
	origin := replaced.Origin()
	if f.Problem != nil || problem != nil || origin.Series == 0 || origin.Series > e.Generation || origin.Round == 0 ||
		expectedGeneration(in.Header) != e.Generation {
		return forgedEntry(p, in)
	}
	r := replaced
	r.ID = message.ID{Stream: in.Stream, Sequence: in.Sequence, At: in.At}.String()
	r.Due, r.RetryAt, r.Hop, r.Reservation, r.ResumedPause = due, wait, 0, "", ""
	if !replaced.Expires.IsZero() {
		r.Expires = due.Add(replaced.Expires.Sub(replaced.Due))
	}
	if e.Instance != "" {
		origin.Round++
	}
	if origin.Scheduler != "" {
		origin.ScheduleNext = nextFiring(&next, origin.Round)
	}
	entry := Entry{
		Kind: Set, Pending: Pending{Request: r.WithOrigin(origin), Token: e.Token, Series: &next},
		Problem: e.Problem, Generation: in.Sequence, Instance: e.Instance, Replaced: e.Generation, ReplacedRequest: replaced,
	}
	if due.IsZero() {
		entry.Kind = Paused
	}
	return entry
}
