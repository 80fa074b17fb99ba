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
	// readTimeout is how long the last entry may take to be read.
	readTimeout = time.Second
	// remembered is how long an id counts as used: the server's window, unless a stream has another.
	remembered = 2 * time.Minute
)

// errUnknown is returned when nothing tells whether a request was stored. Then it is not answered.
var errUnknown = errors.New("nothing tells whether it is stored")

// ack is what JetStream answers to a publish.
type ack struct {
	Error     *Refusal `json:"error,omitempty"`
	Stream    string   `json:"stream"`
	Sequence  uint64   `json:"seq"`
	Duplicate bool     `json:"duplicate,omitempty"`
}

// Store is where schedules are kept: among the timers.
type Store struct{ *store.Timers }

// stream is its name.
func (s Store) stream() string { return s.Policy.Names.TimersStream() }

// attempt is a change that is being carried out.
type attempt struct {
	Store
	Change
	Request
	store.Attempt
	now  time.Time // by the clock of a server, when it was begun
	word string    // by which its entry is known
	// inPlace says that what stands there counts, so it is stored in its place, or not at all. Otherwise it is published
	// until it may be stored, and not once more: a second copy might take the place of what somebody else has stored.
	inPlace bool
	known   *ack // once it is certain
}

// carryOut stores what a request asks for, until that is certain or ctx ends. Now is the time of a stream's leader. Its
// error is errUnknown.
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

// settle notes the answer, which is certain.
func (a *attempt) settle(answer ack) { a.known = &answer }

// wordOf is the word of what was asked for with an id.
func wordOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "id-" + base64.RawURLEncoding.EncodeToString(sum[:16])
}

// Decide implements store.Rules.
func (a *attempt) Decide() timer.Next {
	see, ok := sightOf(a.State)
	doubt := a.Doubt.Any
	switch {
	case !ok:
		return timer.Look
	case a.knows(see), !a.inPlace && see.word == a.word:
		answer := a.stored(see.generation)
		answer.Duplicate = !doubt
		a.settle(answer)
		return timer.Say
	case !a.inPlace && doubt:
		return timer.Look
	case a.Expected != nil && *a.Expected != see.visible:
		if !doubt { // otherwise ours may have been there before
			a.settle(a.refused(wrongLast(see.visible)))
		}
		return timer.Say
	}
	return timer.Ask
}

// Decisive implements store.Rules: the last entry decides.
func (a *attempt) Decisive(entry.Entry) bool { return true }

// knows reports whether what stands there is of this request, or of one with the same id.
func (a *attempt) knows(see sight) bool {
	if a.Change.Schedule.Word != "" { // nobody else has it
		return see.word == a.word
	}
	id := a.Change.Schedule.MsgID
	return (see.word == a.word || id != "" && see.msgID == id && !a.Cancel) && a.now.Sub(see.set) < remembered
}

// sight is what stands on the subject of a schedule.
type sight struct {
	visible    uint64 // of the schedule, to who knows only the server's scheduling; zero where it is over
	generation uint64
	set        time.Time
	word       string
	msgID      string // of the client; not known of what is over
}

// sightOf is what an entry says. Ok is false until the entry's key is known.
func sightOf(found timer.State) (see sight, ok bool) {
	if found.None {
		return sight{}, true
	}
	e, r := found.Entry, found.Entry.Request
	see = sight{generation: found.Sequence, set: found.At, word: e.Word, msgID: r.MsgID}
	switch e.Kind {
	case entry.Unproven:
		return sight{}, false
	case entry.Fired, entry.Over:
		see.generation = e.Generation
		if id, err := message.ParseID(r.ID); err == nil {
			see.set = id.At
		}
	}
	series := e.Origin().Series
	if series > 0 { // who asked for it knows the sequence of its first round
		see.generation, see.set = series, r.Accepted
	}
	if moved := series == 0 && e.Word != wordOf(r.MsgID) && !strings.HasPrefix(e.Word, takenWord); moved {
		see.msgID = "" // by an operator: that is not what was asked for with the id, nor was it then
	}
	if e.Stands() {
		see.visible = see.generation
	}
	return see, true
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

// refusalFor is a refusal of ours in the server's words.
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
		return store.Again, nil // the stream has no leader for a moment, or stores another entry
	case outcome == jsapi.Conflict && a.Also[hLastSeq] == nil:
		return store.Replaced, nil
	case a.Doubt.Any:
		return store.Again, nil // this try is refused, but not the one before
	case outcome == jsapi.TooLarge:
		return store.Final, &tooLarge
	}
	return store.Final, &Refusal{reply.Ack.Status, reply.Ack.Code, reply.Ack.Description}
}

func (a *attempt) stored(sequence uint64) ack { return ack{Stream: a.stream(), Sequence: sequence} }

func (s Store) refused(r *Refusal) ack { return ack{Error: r, Stream: s.stream()} }
