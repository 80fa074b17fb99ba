package change

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/timetable"
	"delaybroker/levels"
)

const (
	// readTimeout is the timeout for reading the last entry, and for reading the leader's time.
	readTimeout = 2 * time.Second
	// maxUnavailable is the number of consecutive publishes without a listener after which an attempt ends. An election
	// causes fewer such publishes.
	maxUnavailable = 20
)

// Timers reads and changes the named timers of one stream. It is safe for concurrent use.
type Timers struct {
	Policy message.Policy
	API    jsapi.Client
	Reader Reader // reads the stream of timers; if nil, API reads it
	// Publish publishes on the stream of timers, and returns the stream's answer.
	Publish func(ctx context.Context, m *nats.Msg) jsapi.Reply

	mu         sync.Mutex // guards leaderTime; not held during a request
	leaderTime leaderTime // the latest answer of the stream's leader
}

// Change is a requested change of one timer.
type Change struct {
	timer.Call
	// Key and Target identify the timer. For a schedule, Key is the schedule's name (message.ScheduleName), and Target is
	// empty or the schedule's target.
	Key, Target string

	// One of the following fields is the time of a Move.
	For   string        // a delay from now, by the clock of the server that stores the entry
	Until time.Time     // the new due time
	By    time.Duration // added to the due time; may be negative

	Table *timetable.Table // the new table of a Retime; For or Until may give the time of its first round

	Reason string // of a Fail: the reason of the dead letter

	Header message.Header // the header of a Set, including a header for the due time
	Body   []byte         // the body of a Set
}

// Answer is the result of a change.
type Answer struct {
	Outcome    timer.Outcome `json:"outcome"`
	Key        string        `json:"key,omitempty"`
	Target     string        `json:"target,omitempty"`
	Generation uint64        `json:"generation,omitempty"`
	Due        time.Time     `json:"due,omitzero"`
	Delivery   entry.Outcome `json:"became,omitempty"` // the outcome of a fired timer; empty until it is recorded
	Why        string        `json:"why,omitempty"`
	Recurring  *Recurring    `json:"recurring,omitempty"` // only for a Get; nil for a timer that fires once
	At         time.Time     `json:"at"`                  // the time of the answer, by the clock of the answering host

	// Already means that another request had cancelled the timer before.
	Already bool `json:"already,omitempty"`

	Changed bool `json:"-"` // this request has made the change
	InDoubt bool `json:"-"` // of Unknown: the change may have been made, or may still be made
}

// Recurring describes a recurring timer.
type Recurring struct {
	Table   string    `json:"table"`            // for people
	Round   int       `json:"round"`            // the number of the pending round, from 1
	Series  uint64    `json:"series"`           // the generation of the set that began the series
	Planned time.Time `json:"planned,omitzero"` // the time by the table; with jitter, the round is due a little later
	Paused  bool      `json:"paused,omitempty"`
	Set     string    `json:"set,omitempty"` // the Delay-Owner of the series

	Definition entry.Series `json:"-"`
}

// RecurringOf returns the Recurring of an entry; nil if the entry is neither a pending round nor a paused series.
func RecurringOf(e entry.Entry) *Recurring {
	if e.Series == nil || !e.PendingOrPaused() {
		return nil
	}
	r, origin := *e.Series, e.Origin()
	return &Recurring{
		Table: r.Table.String(), Round: origin.Round, Series: origin.Series, Planned: r.Planned,
		Paused: e.Kind == entry.Paused, Set: r.Owner, Definition: r,
	}
}

// Do carries out a change. After an error, nothing was changed. The error is an *Error, or the reason why the change
// was not published before ctx ended.
func (t *Timers) Do(ctx context.Context, c Change) (Answer, error) {
	if problem := t.check(c); problem != nil {
		return Answer{}, Refuse(problem)
	}
	if c.ID == "" {
		c.ID = rand.Text()
	}
	a := t.attempt(c)
	err := a.Run(ctx, a, c.Verb == timer.Set || c.Verb == timer.Cancel && c.Generation > 0 && !a.isSchedule())
	if err != nil && !a.mayBeStored {
		return Answer{}, err
	}
	if err != nil { // a refusal is final only if no earlier publish may be stored
		a.answer = timer.Verdict{Outcome: timer.Unknown, Generation: c.Generation, Why: err.Error()}
	}
	answer := Answer{
		Changed: a.stored || a.State.Entry.Token == c.ID, InDoubt: a.mayBeStored || a.State.Sequence == 0 && !a.State.NoEntry,
		Outcome: a.answer.Outcome, Key: c.Key, Target: cmp.Or(a.scheduleTarget(), c.Target), Generation: a.answer.Generation,
		Due: a.answer.Due, Delivery: a.answer.Delivery, Why: a.answer.Why,
		At: time.Now().UTC(), // for people: no decision uses it
	}
	if c.Verb == timer.Cancel && answer.Outcome == timer.Cancelled && !answer.Changed {
		answer.Already, answer.Why = true, cmp.Or(answer.Why, "another request had cancelled it before")
	}
	if c.Verb == timer.Get && !a.State.NoEntry {
		answer.Recurring = RecurringOf(a.State.Entry)
	}
	return answer, nil
}

// Check returns the error with which Do would refuse a change of a timer in the given state, or nil. It publishes
// nothing.
func (t *Timers) Check(ctx context.Context, c Change, state timer.State) error {
	a := t.attempt(c)
	a.State = state
	_, err := a.Entry(ctx, state.Sequence)
	return err
}

// Read reads the state of a timer.
func (t *Timers) Read(ctx context.Context, key, target string) (timer.State, error) {
	c := Change{Call: timer.Call{Verb: timer.Get}, Key: key, Target: target}
	if problem := t.check(c); problem != nil {
		return timer.State{}, Refuse(problem)
	}
	a := t.attempt(c)
	err := a.Run(ctx, a, false)
	if err == nil && a.State.Sequence == 0 && !a.State.NoEntry {
		err = ctx.Err() // ctx had ended before the first read
	}
	return a.State, err
}

func (t *Timers) check(c Change) *message.Problem {
	if subject, ok := message.ParseScheduleName(c.Key); ok && c.Verb != timer.Set {
		return entry.CheckSchedule(t.Policy, subject)
	}
	if problem := entry.CheckKey(c.Key); problem != nil {
		return problem
	}
	p := t.Policy
	p.Targets = nil // a timer can be cancelled even if its target is no longer allowed; setEntry checks a set
	return p.CheckTarget(c.Target)
}

// attempt carries out one change.
type attempt struct {
	*Timers
	Change
	Attempt
	answer      timer.Verdict
	unavailable int  // the number of consecutive publishes without a listener
	stored      bool // the stream has acknowledged the entry
	pauses      bool // the entry pauses the series

	extra           *nats.Msg // the last message that extraDelivery returned, or nil
	extraGeneration uint64    // the series' generation at that time
}

func (t *Timers) attempt(c Change) *attempt {
	return &attempt{
		Timers: t, Change: c, answer: unknownAnswer(c.Generation),
		Attempt: Attempt{
			Timers: t, Subject: t.Policy.Names.Timer(c.Key, c.Target), Generation: c.Generation, ReadTimeout: readTimeout,
			// They have nothing to do if a series is what they want. A deposed leader may say so of one that has changed since.
			Elected: c.Verb == timer.Pause || c.Verb == timer.Resume,
		},
	}
}

// Decide implements rules. It repeats a publish of an extra delivery if the stream did not answer, even if the series
// has changed: the entries of the series do not show whether the extra delivery was stored.
func (a *attempt) Decide() (next timer.Next) {
	if a.extra != nil && a.Doubt.Unanswered {
		return timer.Publish
	}
	next, a.answer = timer.Decide(a.Call, a.State, a.Doubt)
	target := a.scheduleTarget()
	if (next == timer.Publish || a.Verb == timer.Get) && target != "" && a.Target != "" && a.Target != target {
		// The client means another schedule.
		a.answer = timer.Verdict{
			Outcome: timer.Conflict, Generation: a.State.Sequence, Due: a.State.Entry.Request.Due,
			Why: "the schedule's target is " + target,
		}
		return timer.Reply
	}
	return next
}

// Decisive implements rules.
func (a *attempt) Decisive(e entry.Entry) bool {
	switch g := a.Change.Generation; {
	case e.Token != "" && e.Token == a.ID, a.Verb == timer.Get:
		return true
	case a.Verb == timer.Set || g == 0: // only the last entry shows the outcome
		return false
	case e.Kind == entry.Cancel:
		return e.Cancelled == g
	case e.Kind == entry.Over:
		return e.Generation == g
	default:
		return e.Kind == entry.Unproven || e.Fires(g)
	}
}

func unknownAnswer(generation uint64) timer.Verdict {
	return timer.Verdict{
		Outcome: timer.Unknown, Generation: generation, Why: "the stream of timers did not answer in time",
	}
}

// Judge implements rules.
func (a *attempt) Judge(ctx context.Context, generation uint64, reply jsapi.Reply) (Meaning, error) {
	outcome := reply.Outcome()
	if outcome != jsapi.Unavailable {
		a.unavailable = 0
	}
	switch {
	case a.extra != nil && (outcome == jsapi.Stored || outcome == jsapi.Duplicate || outcome == jsapi.Conflict):
		a.answer = timer.Verdict{Outcome: timer.Fired, Generation: a.extraGeneration} // by this publish, or an earlier one
		return Final, nil
	case outcome == jsapi.Unknown:
		return Doubtful, nil
	case a.extra != nil && a.Doubt.Unanswered: // the earlier publish may have been stored
		return Retry, nil
	case outcome == jsapi.Stored && reply.Ack.Sequence > generation:
		a.stored, a.answer = true, a.storedAnswer(ctx, generation, reply.Ack.Sequence)
		return Final, nil
	case outcome == jsapi.Conflict:
		return Replaced, nil
	case outcome == jsapi.Unavailable:
		if a.unavailable++; a.unavailable >= maxUnavailable {
			return Final, NoStream()
		}
	case outcome == jsapi.TooLarge:
		return Final, Refusef(CodeTooLarge, "with the broker's headers, the entry is larger than the stream of timers allows")
	case outcome.Full():
		return Final, Refusef(CodeNoRoom, "the stream of timers has no room: %s", reply.Ack.Description)
	case outcome.NotStored() && outcome != jsapi.Undecided:
		return Final, Refusef(CodeUnavailable, "the stream of timers refuses the entry: %v", reply.Failure())
	}
	return Retry, nil
}

// storedAnswer returns the answer for an entry that the stream has stored at a sequence, in place of a generation.
func (a *attempt) storedAnswer(ctx context.Context, generation, sequence uint64) timer.Verdict {
	switch a.Verb {
	case timer.Cancel:
		return timer.Verdict{Outcome: timer.Cancelled, Generation: generation}
	case timer.Fire, timer.Pause, timer.Fail:
		answer := a.Success(sequence, time.Time{})
		if a.pauses {
			answer.Outcome = timer.Paused
		}
		return answer
	}
	answer := a.Success(sequence, a.Until)
	// The server's clock decides the due time, so it is read from the stored entry.
	if in, err := a.reader().Last(ctx, a.Subject); err == nil && in.Sequence == sequence {
		answer.Due = entry.Parse(a.Policy, in).Request.Due
	}
	return answer
}

// Entry implements rules.
func (a *attempt) Entry(ctx context.Context, generation uint64) (*nats.Msg, error) {
	if a.extra != nil && a.Doubt.Unanswered {
		return a.extra, nil
	}
	a.extra, a.extraGeneration = nil, 0
	a.answer = unknownAnswer(generation)
	switch {
	case a.Verb == timer.Cancel:
		header := entry.CancelHeader(generation, a.ID)
		err := a.sealSchedule(a.Subject, header, nil, time.Now())
		return &nats.Msg{Subject: a.Subject, Header: nats.Header(header)}, err
	case a.Verb == timer.Set:
		return a.setEntry()
	}
	if problem := a.State.Entry.Problem; problem != nil {
		return nil, Refusef(CodeBadRequest, "the last entry is not a valid timer: %s", problem.Sentence)
	}
	t, readTime := a.State.Entry.Pending, a.Now
	if t.Series != nil && a.For != "" { // the round's delay begins now
		readTime = a.exactNow
	}
	now, err := readTime(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoTime, err)
	}
	if t.Series != nil {
		return a.seriesEntry(generation, t, now)
	}
	if a.Verb == timer.Pause || a.Verb == timer.Resume || a.Verb == timer.Retime {
		return nil, Refusef(CodeBadRequest,
			"the timer fires once: only a recurring timer can be paused, resumed, or get another table")
	}
	name, value := message.HeaderFor, "0s"
	switch {
	case a.Verb == timer.Fire:
	case a.For != "":
		value = a.For
	case !a.Until.IsZero():
		name, value = message.HeaderUntil, a.Until.UTC().Format(time.RFC3339Nano)
	default:
		name, value = message.HeaderUntil, a.State.Entry.Request.Due.Add(a.By).UTC().Format(time.RFC3339Nano)
	}
	header := entry.MoveHeader(a.State.Message.Header, name, value, generation, a.ID)
	if err := a.sealSchedule(a.Subject, header, a.State.Message.Data, now); err != nil {
		return nil, err
	}
	return a.newSet(a.Subject, header, a.State.Message.Data, now)
}

// setEntry returns the entry of a set, checked by the clock of this host. The timers' lane checks the set again by the
// leader's clock. If that check finds the due time beyond the maximum delay, the set becomes a dead letter.
func (a *attempt) setEntry() (*nats.Msg, error) {
	header := make(message.Header, len(a.Header)+2)
	maps.Copy(header, a.Header)
	header[message.HeaderWord] = []string{a.ID}
	if a.Conditional {
		header[message.HeaderExpected] = []string{strconv.FormatUint(a.Generation, 10)}
	}
	return a.newSet(a.Subject, header, a.Body, time.Now())
}

// newSet returns a set, or an error if the broker would not accept it: an invalid set would replace a valid one.
func (a *attempt) newSet(subject string, header message.Header, body []byte, now time.Time) (*nats.Msg, error) {
	in := message.Incoming{At: now, Subject: subject, Header: header, Data: body}
	if _, problem := entry.ParseSet(a.Policy, in); problem != nil {
		return nil, Refuse(problem)
	}
	if e := entry.Parse(a.Policy, in); e.Kind != entry.Set || e.Problem != nil {
		return nil, Refusef(CodeBadRequest, "the message does not set a timer: leave out the headers that the broker writes")
	}
	return &nats.Msg{Subject: subject, Header: nats.Header(header), Data: body}, nil
}

// ParseShift parses a duration with an optional sign, as in +5m or -5m.
func ParseShift(text string) (time.Duration, error) {
	if rest, earlier := strings.CutPrefix(text, "-"); earlier {
		d, err := levels.ParseDuration(rest)
		return -d, err
	}
	return levels.ParseDuration(strings.TrimPrefix(text, "+"))
}
