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

const (
	Set      Kind = iota // a set, valid or invalid
	Cancel               // a cancel by a client, or by a broker at a client's request
	Fired                // a broker's record of a firing that sets no next round
	Over                 // a broker's record of an outcome
	Cursor               // an entry that contains the cursor; see timer.ParseCursor
	Unproven             // an entry that claims to be a broker's, and has a seal under an unknown key
	Paused               // a broker's entry of a paused series, whose pending round has no due time
)

// Outcome is the outcome of a timer, which an entry of the kind Over records.
type Outcome string

const (
	Delivered Outcome = "delivered"
	Retrying  Outcome = "retrying" // in a retry lane, or waiting because of its target's rate or a pause
	Dead      Outcome = "dead"     // a dead letter
	Missed    Outcome = "missed"   // the last round of a series could not fire in time
)

// Pending is the content of a set.
type Pending struct {
	message.Request
	// Token is the token of the client's request (Delay-Word), by which the client recognises its own entry.
	Token string
	// MaxWait is the maximum time from the first set of the run until the timer fires: see Debounced. Zero means no
	// bound.
	MaxWait time.Duration
	Series  *Series // nil for a timer that does not recur
}

// Entry is an entry of the timers' stream.
type Entry struct {
	Kind Kind
	// Pending contains the request of the set or of the fired message, and the token of the client's set or cancel.
	Pending
	Problem    *message.Problem // the reason why the entry is invalid; nil for a valid one
	Generation uint64           // of Fired and Over, the fired generation; of Set, Paused and Cancel, the entry's own
	Instance   string           // the instance that stored the entry as a firing; empty if the entry records no firing
	Outcome    Outcome          // of Over, the outcome of the timer
	Cancelled  uint64           // the generation that a cancel has replaced; zero if the cancel expected none
	First      bool             // the entry is a set whose publish expected a subject without entries

	// Replaced and ReplacedRequest are the generation and the request of the replaced round, if the entry sets a round of
	// a series in place of another one. That round has fired if Instance is set. Otherwise it was missed, or this entry
	// changes it: a move, for example.
	Replaced        uint64
	ReplacedRequest message.Request
}

// Previous returns the generation of the previous round, if the entry records the firing of that round and sets the
// next one. For any other entry, Previous returns zero.
func (e Entry) Previous() uint64 {
	if e.Instance == "" {
		return 0
	}
	return e.Replaced
}

// Fires reports whether the entry records the firing of a generation.
func (e Entry) Fires(generation uint64) bool {
	return e.Kind == Fired && e.Generation == generation || generation > 0 && e.Previous() == generation
}

// Fired returns the request of the timer or round whose firing the entry records.
func (e Entry) Fired() message.Request {
	if e.Kind == Fired {
		return e.Request
	}
	return e.ReplacedRequest
}

// PendingOrPaused reports whether the entry is a pending timer or a paused series.
func (e Entry) PendingOrPaused() bool { return (e.Kind == Set || e.Kind == Paused) && e.Problem == nil }

// Debounced reports whether the entry is a debounced set. Consecutive debounced sets of a subject are a run.
func (e Entry) Debounced() bool { return e.Kind == Set && e.Problem == nil && e.MaxWait > 0 }

// Parse parses an entry of the timers' stream. A client's entry that cannot be parsed has replaced the previous entry,
// too. So the result is an invalid set, for which the broker writes a dead letter.
func Parse(p message.Policy, in message.Incoming) Entry {
	if in.Subject == p.Names.TimersCursor() {
		return Entry{Kind: Cursor}
	}
	_, fired := in.Header[message.HeaderFired]
	_, over := in.Header[message.HeaderOver]
	if fired || over {
		return parseSealed(p, in, fired)
	}
	s, _ := message.SplitHeader(in.Header, false)
	foreign := p.Names.Parse(in.Subject).IsSchedule() && !sealed(p, in)
	if foreign && maybeSealed(p, in) {
		return unprovenEntry()
	}
	if foreign || !cancels(s) || message.IsServerAnswer(in.Header) {
		set, problem := ParseSet(p, in)
		if problem != nil {
			problem = addReplaced(problem, in.Sequence)
		}
		return Entry{
			Pending: set, Problem: problem, Generation: in.Sequence,
			First: slices.Equal(in.Header[message.HeaderExpected], []string{"0"}),
		}
	}
	token, _ := s.Value(message.HeaderCancel)
	return Entry{
		Kind: Cancel, Generation: in.Sequence, Cancelled: expectedGeneration(in.Header),
		Pending: Pending{Request: message.Request{Accepted: in.At, Due: in.At}, Token: message.Reason(token)},
	}
}

// addReplaced adds to the problem of an invalid set that the set has replaced the previous entry.
func addReplaced(problem *message.Problem, generation uint64) *message.Problem {
	return message.Problemf(problem.Code, "%s (generation %d; the entry before it is replaced)", problem.Sentence,
		generation)
}

// cancels reports whether a header only cancels: it has Delay-Cancel, and neither a time nor a time table.
func cancels(s message.Block) bool {
	return s.Delay[message.HeaderCancel] != nil && !recurs(s) &&
		s.FirstHeader(message.HeaderFor, message.HeaderUntil) == ""
}

// ValidSubject reports whether the subject of an entry has a valid key and target, or is that of a valid schedule.
func ValidSubject(p message.Policy, subject string) bool {
	addr := p.Names.Parse(subject)
	if addr.IsSchedule() {
		return CheckSchedule(p, addr.Target) == nil
	}
	return CheckKey(addr.Token) == nil && p.CheckTarget(addr.Target) == nil
}

// parseSealed parses an entry that claims, by Delay-Fired or Delay-Over, to be a broker's.
func parseSealed(p message.Policy, in message.Incoming, fired bool) Entry {
	switch answer := message.IsServerAnswer(in.Header); {
	case !answer && sealed(p, in):
	case !answer && maybeSealed(p, in):
		return unprovenEntry()
	default:
		return forgedEntry(p, in)
	}
	e, name := Entry{Kind: Over}, message.HeaderOver
	if fired {
		e.Kind, name = Fired, message.HeaderFired
	}
	number, rest, _ := strings.Cut(firstValue(in.Header[name]), " ")
	g, err := strconv.ParseUint(number, 10, 64)
	if err != nil || g == 0 || g >= in.Sequence || len(in.Header[name]) != 1 {
		return forgedEntry(p, in)
	}
	e.Generation, e.Token = g, firstValue(in.Header[message.HeaderWord])
	if !fired {
		e.Outcome = Outcome(rest)
		e.Due, _ = message.ParseTime(firstValue(in.Header[message.HeaderDue]))
		e.ID = firstValue(in.Header[message.HeaderID])
		return e
	}
	e.Instance = rest
	addr := p.Names.Parse(in.Subject)
	target := addr.Target
	if addr.IsSchedule() {
		target = firstValue(in.Header[message.HeaderTarget])
	}
	s, problem := message.SplitHeader(in.Header, true)
	e.Request = message.Request{
		Subject: message.EscapeSubject(in.Subject), Accepted: in.At, Due: in.At, Target: target, User: s.User,
	}
	if e.Problem = problem; problem == nil {
		r, f := p.ReadState(e.Request, s, message.InLane)
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

// FiredHeader returns the header of the entry that records the firing of a generation by an instance. The stream stores
// the entry only if the generation is still the last entry.
func (t Pending) FiredHeader(generation uint64, by string) message.Header {
	h := t.HopHeader()
	delete(h, message.HeaderNatsMsgID)
	if t.Origin().Scheduler != "" { // a schedule: the subject does not contain the target
		message.Put(h, message.HeaderTarget, t.Target)
	}
	message.Put(h, message.HeaderFired, strings.TrimSpace(strconv.FormatUint(generation, 10)+" "+by))
	message.Put(h, message.HeaderWord, t.Token)
	expect(h, generation)
	return h
}

// OverHeader returns the header of the entry that records the outcome of a generation. The stream stores the entry only
// if last is still the sequence of the last entry.
func (t Pending) OverHeader(generation, last uint64, outcome Outcome) message.Header {
	h := make(message.Header, 8)
	message.Put(h, message.HeaderOver, strconv.FormatUint(generation, 10)+" "+string(outcome))
	message.Put(h, message.HeaderID, t.ID)
	message.Put(h, message.HeaderWord, t.Token)
	message.PutTime(h, message.HeaderDue, t.Due)
	expect(h, last)
	return h
}

// expect makes the stream store an entry only if a generation is still the last entry.
func expect(h message.Header, generation uint64) {
	h[message.HeaderExpected] = []string{strconv.FormatUint(generation, 10)}
}

func firstValue(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
