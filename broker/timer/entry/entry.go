package entry

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"delaybroker/broker/message"
)

// Kind is the kind of an entry of the timers' stream.
type Kind int

// The kinds of entry.
const (
	Set      Kind = iota // also an invalid one
	Cancel               // of a client
	Fired                // ours
	Over                 // ours
	Cursor               // it claims to be the cursor; see timer.ParseCursor
	Unproven             // it claims to be ours, with a seal under an unknown key
	Paused               // ours: a series without a next round
)

// Outcome is the outcome of a timer. Its last entry records it for some time.
type Outcome string

// The outcomes.
const (
	Delivered Outcome = "delivered"
	Retrying  Outcome = "retrying" // refused, or waiting for its turn at its target's rate
	Dead      Outcome = "dead"     // a dead letter
	Missed    Outcome = "missed"   // of the last round of a series: it could not fire in time
)

// Pending is a timer that has not fired.
type Pending struct {
	message.Request
	Word string // of the client that has set it
	// MaxWait is the longest time from the first set of its run until it fires: see Debounced. Zero is no bound.
	MaxWait time.Duration
	Recurs  *Series // nil for a timer that fires once, or for the last time
}

// Entry is an entry of the timers' stream.
type Entry struct {
	Kind Kind
	// Pending has the request of a set or of a fired message, and the word of the client that has set the timer, or that
	// has cancelled it.
	Pending
	Problem    *message.Problem // of a set: why it is invalid
	Generation uint64           // of a firing or an outcome: the generation that fired
	By         string           // the instance that fired it, or its Outcome
	Cancelled  uint64           // the generation that a cancel has certainly cancelled; zero if it expected none
	First      bool             // of a set: its subject had no entry before

	// Of a set or a pause that we wrote for a series: the generation that it replaced, and that round. That round has
	// fired with this entry if By is an instance; otherwise it was missed, moved, or stopped.
	Replaced uint64
	Before   message.Request
}

// Follows returns the generation of the round that has fired with this entry of the next round; zero if none has.
func (e Entry) Follows() uint64 {
	if e.By == "" {
		return 0
	}
	return e.Replaced
}

// Fires reports whether the entry records the firing of a generation.
func (e Entry) Fires(generation uint64) bool {
	return e.Kind == Fired && e.Generation == generation || generation > 0 && e.Follows() == generation
}

// Fired returns the request of the timer or round that has fired with the entry.
func (e Entry) Fired() message.Request {
	if e.Kind == Fired {
		return e.Request
	}
	return e.Before
}

// Stands reports whether the entry is a pending timer, or a paused series.
func (e Entry) Stands() bool { return (e.Kind == Set || e.Kind == Paused) && e.Problem == nil }

// Debounced reports whether the entry is a debounced set. Debounced sets of a subject are a run if no other entry was
// stored between them.
func (e Entry) Debounced() bool { return e.Kind == Set && e.Problem == nil && e.MaxWait > 0 }

// Parse parses an entry of the timers' stream. A meaningless entry is a set with a problem: it has replaced the entry
// before it, so a dead letter must report it.
func Parse(p message.Policy, in message.Incoming) Entry {
	if in.Subject == p.Names.Armed() {
		return Entry{Kind: Cursor}
	}
	_, fired := in.Header[message.HeaderFired]
	_, over := in.Header[message.HeaderOver]
	if fired || over {
		return parseOurs(p, in, fired)
	}
	s, _ := message.SplitHeader(in.Header, false)
	foreign := p.Names.Parse(in.Subject).Schedule() && !ours(p, in)
	if foreign && mayBeOurs(p, in) {
		return unproven()
	}
	if foreign || !cancels(s) || message.Relayed(in.Header) {
		set, problem := ParseSet(p, in)
		if problem != nil {
			problem = replacing(problem, in.Sequence)
		}
		return Entry{
			Pending: set, Problem: problem, Generation: in.Sequence,
			First: slices.Equal(in.Header[message.HeaderExpected], []string{"0"}),
		}
	}
	word, _ := s.One(message.HeaderCancel) // given twice, it cancels all the same
	return Entry{
		Kind: Cancel, Generation: in.Sequence, Cancelled: expected(in.Header),
		Pending: Pending{Request: message.Request{Accepted: in.At, Due: in.At}, Word: message.Reason(word)},
	}
}

// replacing adds to the sentence of an invalid set that the entry before it is gone.
func replacing(problem *message.Problem, generation uint64) *message.Problem {
	return message.Problemf(problem.Code, "%s (generation %d; what it replaced is gone)", problem.Sentence, generation)
}

// cancels reports whether a header cancels, and does nothing else.
func cancels(s message.Block) bool {
	return s.Delay[message.HeaderCancel] != nil && s.First(message.HeaderFor, message.HeaderUntil) == "" && !recurs(s)
}

// CanName reports whether a client can publish on the subject of an entry, and read it, as that of a timer.
func CanName(p message.Policy, subject string) bool {
	addr := p.Names.Parse(subject)
	if addr.Schedule() {
		return CheckSchedule(p, addr.Target) == nil
	}
	return checkKey(addr.Token) == nil && p.CheckTarget(addr.Target) == nil
}

// parseOurs parses an entry that claims to be ours: a firing, with the next round or without one, or an outcome.
func parseOurs(p message.Policy, in message.Incoming, fired bool) Entry {
	switch {
	case message.Relayed(in.Header):
		return forged(p, in)
	case ours(p, in):
	case mayBeOurs(p, in):
		return unproven()
	default:
		return forged(p, in)
	}
	e, name := Entry{Kind: Over}, message.HeaderOver
	if fired {
		e.Kind, name = Fired, message.HeaderFired
	}
	number, rest, _ := strings.Cut(first(in.Header[name]), " ")
	g, err := strconv.ParseUint(number, 10, 64)
	if err != nil || g == 0 || g >= in.Sequence || len(in.Header[name]) != 1 {
		return forged(p, in)
	}
	e.Generation, e.By, e.Word = g, rest, first(in.Header[message.HeaderWord])
	if !fired {
		e.Due, _ = message.ParseTime(first(in.Header[message.HeaderDue]))
		e.ID = first(in.Header[message.HeaderID])
		return e
	}
	target := targetIn(p.Names.Parse(in.Subject), in.Header)
	s, problem := message.SplitHeader(in.Header, true)
	e.Request = message.Request{
		Subject: message.EscapeSubject(in.Subject), Accepted: in.At, Due: in.At, Target: target, User: s.User,
	}
	if e.Problem = problem; problem == nil {
		r, f := p.ReadState(e.Request, s)
		if e.Request, e.Problem = r, f.Problem; e.Problem == nil {
			e.Problem = p.CheckTarget(target)
		}
		e.Hop--
	}
	if _, round := in.Header[message.HeaderFirst]; round {
		return parseRound(p, in, s, e)
	}
	return e
}

// FiredHeader returns the header of the entry that records the firing of a generation by an instance. The entry is
// stored only if that generation is still the last entry.
func (t Pending) FiredHeader(generation uint64, by string) message.Header {
	h := t.HopHeader()
	delete(h, message.HeaderNatsMsgID)
	message.Put(h, message.HeaderFormat, format(t.Origin()))
	if t.Origin().Scheduler != "" { // its subject does not contain the target
		message.Put(h, message.HeaderTarget, t.Target)
	}
	message.Put(h, message.HeaderFired, strings.TrimSpace(strconv.FormatUint(generation, 10)+" "+by))
	message.Put(h, message.HeaderWord, t.Word)
	expect(h, generation)
	return h
}

// OverHeader returns the header of the entry that follows the one at a sequence, if that is still the last. It records
// for some time the outcome of a generation. It has no header of a series, so all brokers can read it.
func (t Pending) OverHeader(generation, follows uint64, what Outcome) message.Header {
	h := make(message.Header, 8)
	message.PutCount(h, message.HeaderFormat, message.FormatOfTimers)
	message.Put(h, message.HeaderOver, strconv.FormatUint(generation, 10)+" "+string(what))
	message.Put(h, message.HeaderID, t.ID)
	message.Put(h, message.HeaderWord, t.Word)
	message.PutTime(h, message.HeaderDue, t.Due)
	expect(h, follows)
	return h
}

// format returns the format of the entries and markers of a timer.
func format(o message.Origin) string {
	if o.Series > 0 || o.Scheduler != "" {
		return strconv.Itoa(message.FormatOfSeries)
	}
	return strconv.Itoa(message.FormatOfTimers)
}

// expect makes the stream store an entry only if a generation is still the last entry.
func expect(h message.Header, generation uint64) {
	h[message.HeaderExpected] = []string{strconv.FormatUint(generation, 10)}
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
