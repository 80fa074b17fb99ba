package message

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"delaybroker/levels"
)

// This file reads and writes the entries of the timers' stream. A named timer is a subject, delaytimer.<key>.<target…>,
// and the last entry of the subject is the timer's state:
//
//	set     a client's: Delay-For, Delay-Until, Delay-Every or Delay-Cron, with the body
//	round   ours, of a series: the firing of one round and the set of the next, see series.go
//	cancel  a client's: Delay-Cancel
//	fired   ours: Delay-Fired, with the body; it is on its way to the target
//	over    ours: Delay-Over; what became of it
//
// The sequence of a set is its generation.

// maxKey is the longest key, in bytes.
const maxKey = 128

const (
	// RepeatKey begins the key of a timer that is one delivery besides a series. The rest is made of the request's word.
	RepeatKey = "fire-"
	// RepeatTime is how long the last entry of such a timer tells that it has fired, whatever the history of others: for
	// so long, the request may be repeated and fires nothing more.
	RepeatTime = 5 * time.Minute
)

// Repeats reports whether a timer's subject is that of one delivery besides a series.
func (n Names) Repeats(subject string) bool {
	return strings.HasPrefix(n.Parse(subject).Token, RepeatKey)
}

// Timer is what a request has of a named timer that is still pending. The zero Timer is none.
type Timer struct {
	Key  string
	Size int // bytes of the body, which a marker does not have with it
}

// Pending reports whether the request is that of a timer whose firing is not decided yet.
func (t Timer) Pending() bool { return t.Key != "" }

// EntryKind is what an entry of the timers' stream is.
type EntryKind int

// The kinds of entry.
const (
	SetEntry      EntryKind = iota // also one that cannot be read
	CancelEntry                    // of a client
	FiredEntry                     // ours
	OverEntry                      // ours
	CursorEntry                    // it says that it is the cursor; see ParseCursor
	UnprovenEntry                  // it says that it is ours, under a seal of an unknown key
	PausedEntry                    // ours: a series without a next round
)

// Outcome is what became of a timer, as its last entry tells for a while.
type Outcome string

// The outcomes.
const (
	OutcomeDelivered Outcome = "delivered"
	OutcomeRetrying  Outcome = "retrying" // refused, or to be delivered at its target's rate
	OutcomeDead      Outcome = "dead"     // a dead letter
	OutcomeMissed    Outcome = "missed"   // of the last round of a series: it could not fire in time
)

// Entry is one of the timers' stream.
type Entry struct {
	Kind       EntryKind
	Request    Request  // of a set, or of the fired message
	Problem    *Problem // of a set, why it is none
	Generation uint64   // of what fired or is over
	By         string   // the instance that fired it, or what became of it: an Outcome
	Word       string   // of the client that cancelled it, or that set what is pending, has fired or is over
	Cancelled  uint64   // the generation that a cancel has cancelled for certain; zero where it expected none
	First      bool     // of a set: there was none on its subject

	// Of a set or a pause that we wrote of a series: the generation that it was stored in place of, and that round. It has
	// fired with this entry if By is an instance; otherwise it was missed, moved, or stopped.
	Replaced uint64
	Before   Request
}

// Follows is the generation of the round that has fired with the entry, which is the next one; zero where none has.
func (e Entry) Follows() uint64 {
	if e.By == "" {
		return 0
	}
	return e.Replaced
}

// Fires reports whether the entry says that a generation has fired.
func (e Entry) Fires(generation uint64) bool {
	return e.Kind == FiredEntry && e.Generation == generation || generation > 0 && e.Follows() == generation
}

// Fired is the request of what has fired with the entry.
func (e Entry) Fired() Request {
	if e.Kind == FiredEntry {
		return e.Request
	}
	return e.Before
}

// ParseTimer reads an entry of the timers' stream. Clients may publish there, so an entry of ours counts only with a
// seal. An entry that nobody can have meant is a set with a problem: it has replaced what was there, and somebody must
// be told.
func (p Policy) ParseTimer(in Incoming) Entry {
	if in.Subject == p.Names.Armed() {
		return Entry{Kind: CursorEntry}
	}
	_, fired := in.Header[HeaderFired]
	_, over := in.Header[HeaderOver]
	if fired || over {
		return p.parseVerdict(in, fired)
	}
	s, _ := splitHeader(in.Header, false)
	foreign := p.Names.Parse(in.Subject).Schedule() && !p.ours(in)
	if foreign && p.mayBeOurs(in) {
		return unproven()
	}
	if foreign || !s.cancels() || Relayed(in.Header) {
		r, problem := p.Parse(in)
		if problem != nil {
			problem = replacing(problem, in.Sequence)
		}
		return Entry{
			Request: r, Problem: problem, Generation: in.Sequence, Word: r.Word,
			First: slices.Equal(in.Header[HeaderExpected], []string{"0"}),
		}
	}
	word, _ := s.one(HeaderCancel) // given twice, it cancels all the same
	return Entry{
		Kind: CancelEntry, Generation: in.Sequence, Request: Request{Accepted: in.At, Due: in.At},
		Word: reason(word), Cancelled: expected(in.Header),
	}
}

// mayBeOurs reports whether an entry without a known seal of ours may have one all the same: its key is still to be
// read.
func (p Policy) mayBeOurs(in Incoming) bool {
	return !in.KeysRead && p.Keys.UseOfMessage(in.Header) == OtherKey
}

func unproven() Entry {
	return Entry{Kind: UnprovenEntry, Problem: Problemf(UnknownKey, "the key of its seal is not known yet")}
}

// cancels reports whether it cancels, and does nothing else.
func (s split) cancels() bool {
	return s.delay[HeaderCancel] != nil && s.delay[HeaderFor] == nil && s.delay[HeaderUntil] == nil && !s.recurs()
}

// CanName reports whether the subject of an entry can be published on, and asked for, as that of a timer.
func (p Policy) CanName(subject string) bool {
	addr := p.Names.Parse(subject)
	if addr.Schedule() {
		return p.CheckSchedule(addr.Target) == nil
	}
	return checkKey(addr.Token) == nil && p.CheckTarget(addr.Target) == nil
}

// ProvenCursor reports whether an entry is a cursor of ours.
func (p Policy) ProvenCursor(in Incoming) bool {
	return in.Subject == p.Names.Armed() && !Relayed(in.Header) && p.Keys.Trusts(in, SealedAlways)
}

// parseVerdict reads what says that it is ours.
func (p Policy) parseVerdict(in Incoming, fired bool) Entry {
	forged := func() Entry {
		r, _ := p.Parse(Incoming{Stream: in.Stream, Sequence: in.Sequence, At: in.At, Subject: in.Subject})
		return Entry{Request: r, Generation: in.Sequence, Problem: replacing(Problemf(BadInternal,
			"it says that the broker wrote it, and the broker did not: leave Delay-Fired and Delay-Over out"), in.Sequence)}
	}
	if Relayed(in.Header) {
		return forged()
	}
	switch {
	case p.ours(in):
	case p.mayBeOurs(in):
		return unproven()
	default:
		return forged()
	}
	e := Entry{Kind: OverEntry}
	name := HeaderOver
	if fired {
		e.Kind, name = FiredEntry, HeaderFired
	}
	number, rest, _ := strings.Cut(first(in.Header[name]), " ")
	g, err := strconv.ParseUint(number, 10, 64)
	if err != nil || g == 0 || g >= in.Sequence || len(in.Header[name]) != 1 {
		return forged()
	}
	e.Generation, e.By, e.Word = g, rest, first(in.Header[HeaderWord])
	if due, problem := parseTime(first(in.Header[HeaderDue])); problem == nil {
		e.Request.Due = due
	}
	e.Request.ID = first(in.Header[HeaderID])
	if fired {
		addr := p.Names.Parse(in.Subject)
		target := addr.timerTarget(in.Header)
		s, problem := splitHeader(in.Header, true)
		r := Request{Subject: escapeSubject(in.Subject), Accepted: in.At, Due: in.At, Target: target, User: s.user}
		if problem == nil {
			r, problem = p.parseInternal(r, s, p.CheckTarget(target))
			r.Hop--
		}
		e.Request, e.Problem = r, problem
		if _, round := in.Header[HeaderFirst]; round {
			return p.parseRound(in, s, e, forged)
		}
	}
	return e
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// Relayed reports whether the server put the message there as an answer, to whoever asked for another one: NATS checks
// no permission for where an answer goes.
func Relayed(h Header) bool {
	for _, name := range []string{"Nats-Stream", "Nats-Sequence", "Nats-Time-Stamp", "Nats-Subject"} {
		if _, ok := h[name]; ok {
			return true
		}
	}
	return false
}

// checkKey judges the key of a timer. The server stores any token.
func checkKey(key string) *Problem {
	switch {
	case len(key) > maxKey:
		return Problemf(BadTimer, "the key %s has %d bytes: at most %d", excerpt(key), len(key), maxKey)
	case key == "" || key[0] == '_':
		return Problemf(BadTimer, "the key %s: want one token that does not begin with _", excerpt(key))
	}
	for i := range len(key) {
		if c := key[i]; c <= ' ' || c >= 0x7f || c == '*' || c == '>' {
			return Problemf(BadTimer, "the key %s holds byte 0x%02x: printable ASCII without * and >", excerpt(key), c)
		}
	}
	return nil
}

// timerDue is the time of a set: the header says when, the subject does not.
func (p Policy) timerDue(in Incoming, s split) (time.Time, *Problem) {
	wait, problem := s.one(HeaderFor)
	if problem != nil {
		return in.At, problem
	}
	until, problem := s.one(HeaderUntil)
	if problem != nil {
		return in.At, problem
	}
	switch hasFor, hasUntil := s.delay[HeaderFor] != nil, s.delay[HeaderUntil] != nil; {
	case s.delay[HeaderCancel] != nil:
		return in.At, Problemf(TimeTwice, "it sets a timer and cancels it: Delay-Cancel, or a time")
	case hasFor && hasUntil:
		return in.At, Problemf(TimeTwice, "Delay-For and Delay-Until: one of them")
	case hasUntil:
		due, problem := parseTime(until)
		if problem != nil {
			return in.At, problem
		}
		return due, p.CheckDelay(in.At, due)
	case !hasFor && s.recurs():
		return time.Time{}, nil
	case !hasFor:
		return in.At, Problemf(BadTimer, "it neither sets a timer nor cancels it: Delay-For, Delay-Until, Delay-Every, "+
			"Delay-Cron or Delay-Cancel")
	}
	d, err := levels.ParseDuration(wait)
	if err != nil {
		return in.At, Problemf(BadTime, "Delay-For: %v", err)
	}
	return in.At.Add(d), p.CheckDelay(in.At, in.At.Add(d))
}

// checkSet judges what is special about a set; the rest is that of every request.
func (p Policy) checkSet(in Incoming, addr Address) *Problem {
	switch {
	case Relayed(in.Header):
		return Problemf(BadInternal,
			"the server put it there as the answer to somebody's question for another message, which is no request")
	case addr.Schedule():
		return p.checkScheduleSet(in, addr)
	case in.Header[headerNatsTTL] != nil:
		return Problemf(BadOption, "with Nats-TTL the server forgets the timer before it fires: leave it out, or take "+
			"Delay-Expires or Delay-TTL")
	}
	return checkKey(addr.Token)
}

// replacing says in the sentence of a bad set that what it replaced is gone.
func replacing(problem *Problem, generation uint64) *Problem {
	return Problemf(problem.Code, "%s (generation %d; what it replaced is gone)", problem.Sentence, generation)
}

// markerHeader is the header of a timer's marker on its next publish into a level.
func (r Request) markerHeader() Header {
	h := make(Header, 12)
	r.identify(h, r.NatsMsgID(r.Hop+1)+"/timer") // a message that has fired may be in the same level, under the other id
	set(h, HeaderFormat, r.timerFormat())
	set(h, HeaderSubject, r.Subject)
	set(h, HeaderHop, strconv.Itoa(r.Hop+1))
	set(h, HeaderTimer, r.Timer.Key)
	set(h, HeaderTarget, r.Target)
	setCount(h, HeaderTimerSize, r.Timer.Size)
	set(h, HeaderScheduler, r.Scheduler)
	return h
}

// timerFormat is the format of all that stands for a timer.
func (r Request) timerFormat() string {
	if r.Series > 0 || r.Scheduler != "" {
		return strconv.Itoa(formatOfSeries)
	}
	return strconv.Itoa(formatOfTimers)
}

// parseMarker reads what the headers of a hop say if it is a marker.
func (f *fields) parseMarker(in Request) Request {
	if in.Timer.Key = f.text(HeaderTimer); in.Timer.Key == "" {
		return in
	}
	in.Timer.Size = f.count(HeaderTimerSize, optional)
	if in.Timer.Key != ScheduleKey && checkKey(in.Timer.Key) != nil {
		f.refuse(HeaderTimer, excerpt(in.Timer.Key))
	}
	if in.Target = f.text(HeaderTarget); len(in.Target) > maxTarget {
		f.refuse(HeaderTarget, excerpt(in.Target))
	}
	return in
}

// FiredHeader is the header of the entry that says that an instance has fired a generation. It is stored only if that
// generation is still the last entry.
func (r Request) FiredHeader(generation uint64, by string) Header {
	r.Timer = Timer{}
	h := r.HopHeader()
	delete(h, headerNatsMsgID)
	set(h, HeaderFormat, r.timerFormat())
	if r.Scheduler != "" { // its subject does not name the target
		set(h, HeaderTarget, r.Target)
	}
	set(h, HeaderFired, strconv.FormatUint(generation, 10)+" "+by)
	set(h, HeaderWord, r.Word)
	set(h, HeaderExpected, strconv.FormatUint(generation, 10))
	return h
}

// OverHeader is the header of the entry that follows the one at a sequence, if that is still the last. It tells for a
// while what became of a generation. It has nothing of a series, and all read it.
func (r Request) OverHeader(generation, follows uint64, what Outcome) Header {
	h := make(Header, 8)
	set(h, HeaderFormat, strconv.Itoa(formatOfTimers))
	set(h, HeaderOver, strconv.FormatUint(generation, 10)+" "+string(what))
	set(h, HeaderID, r.ID)
	set(h, HeaderWord, r.Word)
	setTime(h, HeaderDue, r.Due)
	set(h, HeaderExpected, strconv.FormatUint(follows, 10))
	return h
}
