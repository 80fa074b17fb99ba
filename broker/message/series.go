package message

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"delaybroker/broker/timer/timetable"
	"delaybroker/levels"
)

// This file reads and writes what a timer that recurs has besides. A client's set starts a series; its generation is
// the name of the series. From then on, the set of each round is an entry of ours, with all that the client wrote: it
// was stored in place of the round before, and is the only evidence of what became of that one.
//
//	set g          round 1 of series g
//	round g → h    round 1 has fired; h is round 2
//	round h → i    without an instance: round 2 was missed, moved or paused; i is round 2 at another time
//	fired i → j    the last round has fired
//
// Of the round before, such an entry is what a plain firing is: Delay-Id, Delay-Due and so on are that round's. What is
// its own stands in Delay-Planned, Delay-Next and Delay-Next-Wait.

// mostBodyRate is how large a body may be that recurs each second, in bytes: the body is stored anew for each round.
const mostBodyRate = 64 << 10

// Series is what the rounds of a timer that recurs have in common, and when the pending one is planned.
type Series struct {
	Table   timetable.Table
	First   time.Time // the planned time of the first round
	Planned time.Time // that of the pending round; it is due then or later, or when it was moved to
	Owner   string    // who looks after it; for people and their tools
}

// tableHeaders are the headers of a table, by the words of package timetable. In is where a word stands, if it is text.
var tableHeaders = []struct {
	word, header string
	in           func(*timetable.Words) *string
}{
	{"every", HeaderEvery, func(w *timetable.Words) *string { return &w.Every }},
	{"cron", HeaderCron, func(w *timetable.Words) *string { return &w.Cron }},
	{"zone", HeaderZone, func(w *timetable.Words) *string { return &w.Zone }},
	{"jitter", HeaderJitter, func(w *timetable.Words) *string { return &w.Jitter }},
	{"rounds", HeaderRounds, func(w *timetable.Words) *string { return &w.Rounds }},
	{"missed", HeaderMissed, func(w *timetable.Words) *string { return &w.Missed }},
	{"last", HeaderLast, nil},
	{"owner", HeaderOwner, nil},
}

// ofTimers is a header that only a named timer may have; empty if there is none.
func (s split) ofTimers() string {
	for _, name := range []string{HeaderCancel, HeaderWord} {
		if s.delay[name] != nil {
			return name
		}
	}
	return s.ofTable()
}

// ofTable is a header of a time table; empty if there is none.
func (s split) ofTable() string {
	for _, t := range tableHeaders {
		if s.delay[t.header] != nil {
			return t.header
		}
	}
	return ""
}

// recurs reports whether there is a time table, or a part of one.
func (s split) recurs() bool { return s.ofTable() != "" }

// table reads the headers of a time table.
func (s split) table() (timetable.Table, *Problem) {
	var w timetable.Words
	for _, t := range tableHeaders {
		if t.in == nil {
			continue
		}
		value, problem := s.one(t.header)
		if problem != nil {
			return timetable.Table{}, problem
		}
		if *t.in(&w) = value; value == "" && s.delay[t.header] != nil {
			return timetable.Table{}, Problemf(BadTimer, "%s is empty: leave it out", t.header)
		}
	}
	last, problem := s.one(HeaderLast)
	if problem == nil && s.delay[HeaderLast] != nil {
		w.Last, problem = parseTime(last)
	}
	switch {
	case problem != nil:
		return timetable.Table{}, problem
	case w.Every == "" && w.Cron == "":
		return timetable.Table{}, Problemf(BadTimer, "%s without Delay-Every or Delay-Cron: they say that it recurs",
			s.ofTable())
	}
	return ParseTable(w)
}

// ParseTable reads a table. Its problem names the header.
func ParseTable(w timetable.Words) (timetable.Table, *Problem) {
	table, err := timetable.Parse(w)
	refused, ok := errors.AsType[*timetable.Error](err)
	if !ok {
		return table, nil
	}
	header := refused.Word
	for _, t := range tableHeaders {
		if t.word == refused.Word {
			header = t.header
		}
	}
	return table, Problemf(BadTimer, "%s: %s", header, refused.Sentence)
}

// series makes a series of a client's set. Asked is when its first round is wanted; zero leaves that open.
func (p Policy) series(r Request, in Incoming, s split, asked time.Time) (Request, time.Time, *Problem) {
	table, problem := s.table()
	if problem != nil {
		return r, in.At, problem
	}
	owner, problem := s.one(HeaderOwner)
	if problem != nil {
		return r, in.At, problem
	}
	if problem := p.CheckRecurring(table, len(in.Data)); problem != nil {
		return r, in.At, problem
	}
	first, ok := table.Start(in.At, asked)
	if !ok {
		return r, in.At, Problemf(BadTimer, "no round is left before Delay-Last %s", s.delay[HeaderLast][0])
	}
	r.Series, r.Round = in.Sequence, 1
	r.Recurs = &Series{Table: table, First: first, Planned: first, Owner: reason(owner)}
	due := table.Round(timetable.Series{ID: in.Sequence, First: first}, 1, first).Due
	return r, due, nil // what is asked for is bounded, and what a cron makes of it is not
}

// CheckRecurring judges the interval of what recurs, and the size of its body. An interval is a delay for which
// somebody asks, so the policy bounds it. A cron names times of the calendar: they may be years apart.
func (p Policy) CheckRecurring(table timetable.Table, size int) *Problem {
	if p.MaxDelay > 0 && table.Every > p.MaxDelay {
		return Problemf(TooFar, "every %s: more than %s between two rounds (DELAY_MAX_DELAY)",
			levels.FormatDuration(table.Every), levels.FormatDuration(p.MaxDelay))
	}
	if most := mostBodyRate * table.Interval().Seconds(); float64(size) > most {
		return Problemf(TooLarge, "%d bytes are stored anew for each round: at most %d for %s", size, int64(most), table)
	}
	return nil
}

// Options are the request headers with which another message is delivered as this one is.
func (r Request) Options() Header {
	h := make(Header, 4)
	set(h, HeaderDeliver, string(r.Mode))
	if set(h, HeaderTTL, r.TTL); r.TTL != "" && r.TTL != "never" {
		set(h, HeaderTTL, r.TTL+"s")
	}
	if !r.Expires.IsZero() {
		set(h, HeaderExpires, levels.FormatDuration(r.Expires.Sub(r.Due)))
	}
	setCount(h, HeaderMaxAttempts, r.MaxAttempts)
	set(h, HeaderRateKey, r.RateKey)
	return h
}

// Said is how a timer recurs, for people: "every 15m, round 7". It is empty for one that does not, or not any more.
func (r Request) Said() string {
	if r.Recurs == nil {
		return ""
	}
	return r.Recurs.Table.String() + ", round " + strconv.Itoa(r.Round)
}

// RoundOf is the pending round of a timer that recurs, for the decisions of its table.
func (r Request) RoundOf() (timetable.Series, timetable.Round) {
	return timetable.Series{ID: r.Series, First: r.Recurs.First},
		timetable.Round{Number: r.Round, Planned: r.Recurs.Planned, Due: r.Due}
}

// Next is a round that takes the place of another one, in the same entry.
type Next struct {
	By    string          // the instance that fires the other one; empty if nobody does
	Round timetable.Round // its Due is zero for a pause
	Wait  time.Time       // it does not fire before that; zero for no such time
	Table timetable.Table // of the series from then on
	First time.Time       // likewise
	Word  string          // of the client that asks for it
}

// RoundHeader is the header of the entry that takes the place of a pending round, if that is still the last entry. It
// is the only evidence of what became of that round.
func (r Request) RoundHeader(generation uint64, n Next) Header {
	owner := r.Recurs.Owner
	if r.Word = n.Word; r.Due.IsZero() { // it is paused
		r.Due = r.Recurs.Planned
		if !r.Expires.IsZero() {
			r.Expires = r.Due.Add(r.Expires.Sub(time.Time{}))
		}
	}
	h := r.FiredHeader(generation, n.By)
	set(h, HeaderFired, strings.TrimSpace(strconv.FormatUint(generation, 10)+" "+n.By))
	w := n.Table.Words()
	for _, t := range tableHeaders {
		if t.in != nil {
			set(h, t.header, *t.in(&w))
		}
	}
	set(h, HeaderOwner, owner)
	setTime(h, HeaderLast, w.Last)
	setTime(h, HeaderFirst, n.First)
	setTime(h, HeaderPlanned, n.Round.Planned)
	setTime(h, HeaderNext, n.Round.Due)
	setTime(h, HeaderNextWait, n.Wait)
	return h
}

// parseRound reads the result of RoundHeader, which is proven to be ours, and of which e has what a firing has. It must
// fit what it was stored in place of.
func (p Policy) parseRound(in Incoming, s split, e Entry, forged func() Entry) Entry {
	before, f := e.Request, fields{split: s}
	next := Series{
		First: f.moment(HeaderFirst, required), Planned: f.moment(HeaderPlanned, required), Owner: f.text(HeaderOwner),
	}
	due, wait := f.moment(HeaderNext, optional), f.moment(HeaderNextWait, optional)
	table, problem := s.table()
	next.Table = table
	switch {
	case e.Problem != nil && e.Problem.Code == NewerFormat:
		return e
	case f.problem != nil, problem != nil, before.Series == 0, before.Series > e.Generation, before.Round == 0,
		expected(in.Header) != e.Generation:
		return forged()
	}
	r := before
	r.ID = ID{Stream: in.Stream, Sequence: in.Sequence, At: in.At}.String()
	r.Due, r.RetryAt, r.Hop, r.Paced, r.Released = due, wait, 0, "", ""
	if !before.Expires.IsZero() {
		r.Expires = due.Add(before.Expires.Sub(before.Due))
	}
	r.Recurs, r.Timer = &next, Timer{Key: p.Names.Parse(in.Subject).Token, Size: len(in.Data)}
	if e.By != "" {
		r.Round++
	}
	r = r.withNext()
	entry := Entry{
		Kind: SetEntry, Request: r, Problem: e.Problem, Generation: in.Sequence, By: e.By, Word: e.Word,
		Replaced: e.Generation, Before: before,
	}
	if due.IsZero() {
		entry.Kind = PausedEntry
	}
	return entry
}
