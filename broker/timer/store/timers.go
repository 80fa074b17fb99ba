package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timetable"
)

const (
	// ackWait is how long a publish may take to be answered before the last entry is looked at, and lookWait how long
	// that may take.
	ackWait  = time.Second
	lookWait = 2 * time.Second
	// pause is the time between two looks, or two tries.
	pause = 50 * time.Millisecond
	// untaken is how often in a row a publish may find nobody who listens: a stream has no leader for a moment now and
	// then.
	untaken = 20
)

// Timers are the named timers of a broker, as a client sees them. It is safe for concurrent use.
type Timers struct {
	Policy message.Policy
	API    jsapi.Client
	// Publish publishes on the stream of timers, and returns its answer; an answer that the stream has not written does
	// not count.
	Publish func(ctx context.Context, m *nats.Msg) jsapi.Reply
	Scan    lane.Scan // Conn, JetStream and APIPrefix, for List

	clock clock
}

// Wish is what somebody wants of one timer.
type Wish struct {
	timer.Asked
	// Key and Target are the timer. The name of a schedule stands in place of a key (message.ScheduleName) and says all;
	// a Target beside it must be the schedule's.
	Key, Target string

	// The time of a Move: one of these.
	For   string        // after so long, by the clock of the server that stores it
	Until time.Time     // at that time
	By    time.Duration // so much later, or earlier, than it is due

	Table *timetable.Table // of a Retime, with For or Until if its first round is wanted then

	Header message.Header // of a Set, with its time
	Body   []byte         // of a Set
}

// Answer is what came of a wish.
type Answer struct {
	Outcome    timer.Outcome   `json:"outcome"`
	Key        string          `json:"key,omitempty"`
	Target     string          `json:"target,omitempty"`
	Generation uint64          `json:"generation,omitempty"`
	Due        time.Time       `json:"due,omitzero"`
	Became     message.Outcome `json:"became,omitempty"` // of what has fired and is over
	Why        string          `json:"why,omitempty"`
	Recurring  *Recurring      `json:"recurring,omitempty"` // of a Get; nil for what fires once
	At         time.Time       `json:"at"`                  // when that was so, by the clock of who answers
}

// Do carries out a wish, or says why not. An error says that nothing was done: a *Refusal, or what kept us from asking
// until ctx ended.
func (t *Timers) Do(ctx context.Context, w Wish) (Answer, error) {
	if problem := t.check(w); problem != nil {
		return Answer{}, Refusef(CodeBad, "%s", problem.Sentence)
	}
	if w.Word == "" {
		w.Word = rand.Text()
	}
	a := attempt{Timers: t, Wish: w, subject: t.Policy.Names.Timer(w.Key, w.Target)}
	known, err := a.run(ctx)
	answer := Answer{
		Outcome: known.Outcome, Key: w.Key, Target: cmp.Or(a.scheduleTarget(), w.Target), Generation: known.Generation,
		Due: known.Due, Became: known.Became, Why: known.Why, At: time.Now().UTC(), // for people: nothing is decided by it
	}
	if w.Verb == timer.Get && !a.found.None {
		answer.Recurring = recurring(a.found.Entry)
	}
	return answer, err
}

func (t *Timers) check(w Wish) *message.Problem {
	if subject, ok := message.ScheduleOf(w.Key); ok && w.Verb != timer.Set {
		return t.Policy.CheckSchedule(subject)
	}
	if problem := message.ParseKey(w.Key); problem != nil {
		return problem
	}
	p := t.Policy
	p.Targets = nil // a timer to a target that is not allowed any more can be cancelled; setEntry checks a set itself
	return p.CheckTarget(w.Target)
}

// attempt is a wish that is being carried out.
type attempt struct {
	*Timers
	Wish
	subject string
	doubt   timer.Doubt
	tried   bool   // what was published may be stored: it was not answered, or a leader has refused it that may be none
	expects uint64 // the generation that it expected
	nobody  int    // how often in a row nobody has listened

	found timer.Found
	in    message.Incoming // as it is stored
}

// run looks and publishes, until the answer is final or ctx ends. What needs no look is published first.
func (a *attempt) run(ctx context.Context) (timer.Answer, error) {
	known := unanswered(a.Generation)
	if a.Verb == timer.Set || a.Verb == timer.Cancel && a.Generation > 0 && !a.schedule() {
		if answer, done, err := a.ask(ctx, a.Generation); done {
			return a.ended(answer, err)
		}
	}
	var last error // what keeps it from being decided
	for ctx.Err() == nil {
		next := timer.Look
		if err := a.look(ctx); err != nil {
			if last == nil || ctx.Err() == nil { // that the time is over is not the reason
				last = fmt.Errorf("read the last entry of %s: %w", a.subject, err)
			}
			if errors.Is(err, jetstream.ErrStreamNotFound) && !a.doubt.Any {
				return timer.Answer{}, noStream()
			}
		} else {
			last = nil
			if next, known = timer.Decide(a.Asked, a.found, a.doubt); next == timer.Ask || a.Verb == timer.Get {
				next, known = a.meant(next, known)
			}
		}
		switch next {
		case timer.Say:
			return known, nil
		case timer.Ask:
			answer, done, err := a.ask(ctx, a.found.Sequence)
			if done {
				return a.ended(answer, err)
			}
			last, known = err, unanswered(a.found.Sequence)
		default:
			WaitToRetry(ctx)
		}
	}
	if last != nil && !a.tried {
		return timer.Answer{}, last
	}
	return known, nil
}

func unanswered(generation uint64) timer.Answer {
	return timer.Answer{Outcome: timer.Unknown, Generation: generation, Why: "nothing was answered in time"}
}

// ended is the end of a publish that was answered. A refusal is final only if no other try is in doubt.
func (a *attempt) ended(answer timer.Answer, err error) (timer.Answer, error) {
	if err != nil && a.doubt.Any {
		return timer.Answer{Outcome: timer.Unknown, Generation: a.Generation, Why: err.Error()}, nil
	}
	return answer, err
}

func noStream() *Refusal {
	return Refusef(CodeNone, "there is no stream of timers here: a broker makes it unless DELAY_TIMERS=off")
}

// Entries is what it takes to read their entries.
func (t *Timers) Entries() Entries { return Entries{API: t.API, Policy: t.Policy, Sample: t.sample} }

// sample asks the stream's leader for its state.
func (t *Timers) sample(ctx context.Context, stream string) (lane.Sample, error) {
	var info jetstream.StreamInfo
	if err := t.API.Ask(ctx, "STREAM.INFO."+stream, struct{}{}, &info); err != nil {
		return lane.Sample{}, err
	}
	return lane.SampleOf(&info, time.Now()), nil // to measure how old the answer is
}

// ask publishes what the wish writes, in place of a generation. Done is false when the answer leaves open what is
// stored, and with an error when nothing was published.
func (a *attempt) ask(ctx context.Context, generation uint64) (answer timer.Answer, done bool, err error) {
	m, err := a.entry(ctx, generation)
	if errors.Is(err, errNoTime) {
		WaitToRetry(ctx)
		return timer.Answer{}, false, err
	}
	if err != nil {
		return timer.Answer{}, true, err
	}
	reply := a.publish(ctx, m)
	switch outcome := reply.Outcome(); {
	case a.firesBesides() && (outcome == jsapi.Stored || outcome == jsapi.Duplicate || outcome == jsapi.Conflict):
		return timer.Answer{Outcome: timer.Fired, Generation: generation}, true, nil // by this try, or an earlier one
	case outcome == jsapi.Unknown:
		a.doubt.Note(generation)
		a.tried, a.expects = true, generation
		WaitToRetry(ctx)
		return answer, false, nil
	case outcome == jsapi.Stored && reply.Ack.Sequence > generation:
		return a.stored(ctx, generation, reply.Ack.Sequence), true, nil
	case outcome == jsapi.Conflict:
		again := a.tried && a.expects == generation
		if a.tried, a.expects = true, generation; !again {
			return answer, false, nil
		}
		a.nobody = 0 // it stands there still: of two leaders, one does not know that it is none
	case outcome == jsapi.Unavailable:
		if a.nobody++; a.nobody >= untaken {
			return timer.Answer{}, true, noStream()
		}
	default:
		a.nobody = 0
		if err := refusal(reply); err != nil {
			return timer.Answer{}, true, err
		}
	}
	WaitToRetry(ctx)
	return answer, false, nil
}

// refusal is the error for an answer that says that nothing was stored, and that it is of no use to ask again.
func refusal(reply jsapi.Reply) error {
	switch outcome := reply.Outcome(); {
	case !outcome.Final(), outcome == jsapi.Undecided:
		return nil
	case outcome == jsapi.TooLarge:
		return Refusef(CodeLarge, "with the broker's headers it is larger than the stream of timers takes")
	case outcome.Full():
		return Refusef(CodeRoom, "no room: %s", reply.Ack.Description)
	}
	return Refusef(CodeTrouble, "refused: %v", reply.Problem())
}

func (a *attempt) publish(ctx context.Context, m *nats.Msg) jsapi.Reply {
	ctx, cancel := context.WithTimeout(ctx, ackWait)
	defer cancel()
	return a.Publish(ctx, m)
}

// stored is the answer when the entry is stored at a sequence, in place of a generation.
func (a *attempt) stored(ctx context.Context, generation, sequence uint64) timer.Answer {
	switch a.Verb {
	case timer.Cancel:
		return timer.Answer{Outcome: timer.Cancelled, Generation: generation}
	case timer.Fire:
		return timer.Answer{Outcome: timer.Fired, Generation: sequence}
	case timer.Pause:
		return timer.Answer{Outcome: timer.Paused, Generation: sequence}
	}
	answer := timer.Answer{Outcome: timer.Moved, Generation: sequence, Due: a.Until}
	if a.Verb == timer.Set || a.Verb == timer.Resume {
		answer.Outcome = timer.Pending
	}
	// The server's clock decides when it is due: it is asked. The answer is only told.
	stream := a.Policy.Names.TimersStream()
	if m, err := a.API.Last(ctx, stream, a.subject); err == nil && m.Sequence == sequence {
		answer.Due = a.Policy.ParseTimer(m.Incoming(stream)).Request.Due
	}
	return answer
}

// entry is what the wish writes in place of a generation.
func (a *attempt) entry(ctx context.Context, generation uint64) (*nats.Msg, error) {
	switch {
	case a.Verb == timer.Cancel && a.schedule():
		return a.scheduleCancel(generation)
	case a.Verb == timer.Cancel:
		return &nats.Msg{Subject: a.subject, Header: nats.Header(message.CancelHeader(generation, a.Word))}, nil
	case a.Verb == timer.Set:
		return a.setEntry()
	}
	if problem := a.found.Entry.Problem; problem != nil {
		return nil, Refusef(CodeBad, "what stands there is no timer: %s", problem.Sentence)
	}
	now, err := a.Now(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoTime, err)
	}
	if r := a.found.Entry.Request; r.Recurs != nil {
		return a.seriesEntry(generation, r, now)
	}
	if a.Verb == timer.Pause || a.Verb == timer.Resume || a.Verb == timer.Retime {
		return nil, Refusef(CodeBad, "it fires once: only what recurs can be paused, resumed, or get another table")
	}
	name, value := message.HeaderFor, "0s"
	switch {
	case a.Verb == timer.Fire:
	case a.For != "":
		value = a.For
	case !a.Until.IsZero():
		name, value = message.HeaderUntil, a.Until.UTC().Format(time.RFC3339Nano)
	default:
		name, value = message.HeaderUntil, a.found.Entry.Request.Due.Add(a.By).UTC().Format(time.RFC3339Nano)
	}
	if a.schedule() {
		return a.scheduleMove(generation, name, value, now)
	}
	return a.checked(message.MoveHeader(a.in.Header, name, value, generation, a.Word), a.in.Data, now)
}

// setEntry judges a set by the clock of this host: to be set, a timer needs no right to ask for the leader's time. The
// lane judges it again by the leader's clock, and makes a dead letter of what is due too late.
func (a *attempt) setEntry() (*nats.Msg, error) {
	header := make(message.Header, len(a.Header)+2)
	maps.Copy(header, a.Header)
	header[message.HeaderWord] = []string{a.Word}
	if a.Conditional {
		header[message.HeaderExpected] = []string{strconv.FormatUint(a.Generation, 10)}
	}
	return a.checked(header, a.Body, time.Now())
}

// checked is a set that the broker will understand: a bad one would replace a good one.
func (a *attempt) checked(header message.Header, body []byte, now time.Time) (*nats.Msg, error) {
	in := message.Incoming{At: now, Subject: a.subject, Header: header, Data: body}
	if _, problem := a.Policy.Parse(in); problem != nil {
		return nil, Refusef(CodeBad, "%s", problem.Sentence)
	}
	if e := a.Policy.ParseTimer(in); e.Kind != message.SetEntry || e.Problem != nil {
		return nil, Refusef(CodeBad, "it does not set a timer: leave out the headers that the broker writes")
	}
	return &nats.Msg{Subject: a.subject, Header: nats.Header(header), Data: body}, nil
}

// WaitToRetry lets the time pass between two looks at the stream of timers, or two tries, unless ctx ends before.
func WaitToRetry(ctx context.Context) {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
