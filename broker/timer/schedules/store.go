package schedules

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/store"
)

const (
	// readTimeout is the timeout for reading the last entry.
	readTimeout = time.Second
	// remembered is the time for which an id counts as used: the server's default window for duplicates.
	remembered = 2 * time.Minute
)

// errUnknown is returned when it cannot be determined whether a request was stored. Then it is not answered.
var errUnknown = errors.New("unknown whether the schedule is stored")

// ack is JetStream's answer to a publish.
type ack struct {
	Error     *Refusal `json:"error,omitempty"`
	Stream    string   `json:"stream"`
	Sequence  uint64   `json:"seq"`
	Duplicate bool     `json:"duplicate,omitempty"`
}

// Store stores schedules among the timers.
type Store struct{ *store.Timers }

// stream returns the name of the timers' stream.
func (s Store) stream() string { return s.Policy.Names.TimersStream() }

// attempt is the carrying out of a change.
type attempt struct {
	Store
	Change
	Request
	store.Attempt
	now  time.Time // by the clock of a server, when the attempt began
	word string    // the request ID in its entry
	// inPlace means that the change depends on the last entry, so it is stored in its place, or not at all. Otherwise it
	// is published until it may be stored, and never again: a second copy might replace another client's entry.
	inPlace bool
	known   *ack // nil until it is certain
}

// carryOut stores the change of a request, until the result is certain or ctx ends. Now is the time of a stream's
// leader. Its only error is errUnknown.
func (s Store) carryOut(ctx context.Context, r Request, c Change, now time.Time) (ack, error) {
	a := attempt{
		Store: s, Change: c, Request: r, now: now, word: cmp.Or(c.Schedule.Word, rand.Text()),
		inPlace: c.Expected != nil || c.Schedule.MsgID != "",
		Attempt: store.Attempt{
			Timers: s.Timers, Subject: s.Policy.Names.ScheduleSubject(c.Schedule.Subject), ReadTimeout: readTimeout,
		},
	}
	if c.Schedule.MsgID != "" && c.Schedule.Word == "" && !c.Cancel {
		a.word = wordOf(c.Schedule.MsgID)
	}
	err := a.Run(ctx, &a, !a.inPlace)
	if refused, ok := errors.AsType[*Refusal](err); ok {
		return s.refused(refused), nil
	}
	if err != nil || a.known == nil {
		return ack{}, errUnknown
	}
	return *a.known, nil
}

// settle notes the certain answer.
func (a *attempt) settle(answer ack) { a.known = &answer }

// wordOf returns the request ID of a request with a message id.
func wordOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "id-" + base64.RawURLEncoding.EncodeToString(sum[:16])
}

// Decide implements store.Rules.
func (a *attempt) Decide() timer.Next {
	st, ok := subjectStateOf(a.State)
	doubt := a.Doubt.Any
	switch {
	case !ok:
		return timer.Look
	case a.knows(st), !a.inPlace && st.word == a.word:
		answer := a.stored(st.generation)
		answer.Duplicate = !doubt
		a.settle(answer)
		return timer.Say
	case !a.inPlace && doubt:
		return timer.Look
	case a.Expected != nil && *a.Expected != st.visible:
		if !doubt { // otherwise our entry may have been there before
			a.settle(a.refused(wrongLast(st.visible)))
		}
		return timer.Say
	}
	return timer.Ask
}

// Decisive implements store.Rules: the last entry decides.
func (a *attempt) Decisive(entry.Entry) bool { return true }

// knows reports whether the last entry is of this request, or of one with the same id.
func (a *attempt) knows(st subjectState) bool {
	if a.Change.Schedule.Word != "" { // no other request has it
		return st.word == a.word
	}
	id := a.Change.Schedule.MsgID
	return (st.word == a.word || id != "" && st.msgID == id && !a.Cancel) && a.now.Sub(st.set) < remembered
}

// subjectState is the state of a schedule's subject.
type subjectState struct {
	visible    uint64 // sequence of the schedule for clients of the server's scheduling; zero if it is over
	generation uint64
	set        time.Time
	word       string
	msgID      string // of the client; unknown for a schedule that is over
}

// subjectStateOf returns the state that an entry represents. Ok is false until the entry's key is known.
func subjectStateOf(found timer.State) (st subjectState, ok bool) {
	if found.None {
		return subjectState{}, true
	}
	e, r := found.Entry, found.Entry.Request
	st = subjectState{generation: found.Sequence, set: found.At, word: e.Word, msgID: r.MsgID}
	switch e.Kind {
	case entry.Unproven:
		return subjectState{}, false
	case entry.Fired, entry.Over:
		st.generation = e.Generation
		if id, err := message.ParseID(r.ID); err == nil {
			st.set = id.At
		}
	}
	series := e.Origin().Series
	if series > 0 { // its client knows the sequence of its first round
		st.generation, st.set = series, r.Accepted
	}
	if moved := series == 0 && e.Word != wordOf(r.MsgID) && !strings.HasPrefix(e.Word, takenWord); moved {
		st.msgID = "" // an operator moved it: it is not what the id requested, nor when
	}
	if e.Stands() {
		st.visible = st.generation
	}
	return st, true
}

// Entry implements store.Rules.
func (a *attempt) Entry(_ context.Context, generation uint64) (*nats.Msg, error) {
	schedule, body := a.Schedule, a.Body
	schedule.Word = a.word
	header, problem := message.Header(nil), (*message.Problem)(nil)
	if a.Cancel {
		header, body = entry.ScheduleCancel(a.Policy, schedule.Subject, a.word, a.now), nil
	} else if header, _, problem = entry.ScheduleEntry(a.Policy, schedule, a.Header, body, a.now); problem != nil {
		return nil, refusalFor(problem)
	}
	for name, values := range a.Also {
		header[name] = values
	}
	if a.inPlace {
		header[message.HeaderExpected] = []string{strconv.FormatUint(generation, 10)}
	}
	return &nats.Msg{Subject: a.Attempt.Subject, Header: nats.Header(header), Data: body}, nil
}

// refusalFor returns a refusal of ours in the server's words. A rule that the server does not have gets the code of a
// stream that stores nothing, so clients treat it as a refusal by the stream.
func refusalFor(p *message.Problem) *Refusal {
	switch p.Code {
	case message.BadTarget:
		return badTarget.because("%s", p.Sentence)
	case message.BadTime, message.TooFar, message.BadTimer:
		return badPattern.because("%s", p.Sentence)
	}
	return &Refusal{400, jsapi.CodeNotStored, p.Sentence}
}

// Judge implements store.Rules.
func (a *attempt) Judge(_ context.Context, _ uint64, reply jsapi.Reply) (store.Meaning, error) {
	switch outcome := reply.Outcome(); {
	case outcome == jsapi.Stored:
		a.settle(a.stored(reply.Ack.Sequence))
		return store.Final, nil
	case !outcome.Final():
		return store.Doubtful, nil
	case outcome == jsapi.Unavailable, outcome == jsapi.Undecided:
		return store.Again, nil // the stream has no leader for a moment, or is storing another entry
	case outcome == jsapi.Conflict && a.Also[hLastSeq] == nil:
		return store.Replaced, nil
	case a.Doubt.Any:
		return store.Again, nil // this publish is refused, but the one before may be stored
	case outcome == jsapi.TooLarge:
		return store.Final, &tooLarge
	}
	return store.Final, &Refusal{reply.Ack.Status, reply.Ack.Code, reply.Ack.Description}
}

func (a *attempt) stored(sequence uint64) ack { return ack{Stream: a.stream(), Sequence: sequence} }

func (s Store) refused(r *Refusal) ack { return ack{Error: r, Stream: s.stream()} }
