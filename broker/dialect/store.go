package dialect

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
	"delaybroker/broker/timer/store"
)

const (
	// ackWait is how long a publish may take to be answered before the last entry is looked at, and lookWait how long
	// that may take.
	ackWait  = time.Second
	lookWait = time.Second
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

// Store is where schedules are kept: the stream of timers.
type Store struct {
	Policy  message.Policy
	Entries store.Entries
	// Publish publishes on that stream, and returns its answer; an answer that the stream has not written does not count.
	Publish func(context.Context, *nats.Msg) jsapi.Reply
}

// stream is its name.
func (s Store) stream() string { return s.Policy.Names.TimersStream() }

// attempt is a wish that is being carried out.
type attempt struct {
	Store
	Wish
	Request
	now     time.Time // by the clock of a server, when it was begun
	subject string    // of its entries
	word    string    // by which its entry is known

	doubt bool // a publish was not answered
}

// carryOut stores what a request asks for, until that is certain or ctx ends. Now is the time of a stream's leader. Its
// error is errUnknown.
func (s Store) carryOut(ctx context.Context, r Request, w Wish, now time.Time) (ack, error) {
	a := attempt{
		Store: s, Wish: w, Request: r, now: now, subject: s.Policy.Names.ScheduleSubject(w.Schedule.Subject),
		word: cmp.Or(w.Schedule.Word, rand.Text()),
	}
	if w.Schedule.MsgID != "" && w.Schedule.Word == "" && !w.Cancel {
		a.word = wordOf(w.Schedule.MsgID)
	}
	// What depends on what stands there is stored in its place, or not at all.
	if w.Expected != nil || w.Schedule.MsgID != "" {
		return a.inPlace(ctx)
	}
	return a.whatever(ctx)
}

// wordOf is the word of what was asked for with an id.
func wordOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "id-" + base64.RawURLEncoding.EncodeToString(sum[:16])
}

// whatever stores it in place of whatever stands there. It is sent once: a second copy might take the place of what
// somebody else has stored meanwhile.
func (a *attempt) whatever(ctx context.Context) (ack, error) {
	for ctx.Err() == nil {
		m, refused := a.entry()
		if refused != nil {
			return a.refused(refused), nil
		}
		answer, done := a.publish(ctx, m)
		if done {
			return answer, nil
		}
		if a.doubt {
			return a.find(ctx)
		}
		store.WaitToRetry(ctx)
	}
	return ack{}, errUnknown
}

// find looks for an entry that may be stored.
func (a *attempt) find(ctx context.Context) (ack, error) {
	for ctx.Err() == nil {
		if see, err := a.look(ctx); err == nil && see.word == a.word {
			return a.stored(see.generation), nil
		}
		store.WaitToRetry(ctx)
	}
	return ack{}, errUnknown
}

// inPlace stores it in place of what it has looked at.
func (a *attempt) inPlace(ctx context.Context) (ack, error) {
	for ctx.Err() == nil {
		see, err := a.look(ctx)
		if err != nil {
			store.WaitToRetry(ctx)
			continue
		}
		if a.knows(see) {
			answer := a.stored(see.generation)
			answer.Duplicate = !a.doubt
			return answer, nil
		}
		if a.Expected != nil && *a.Expected != see.visible {
			if a.doubt {
				return ack{}, errUnknown // ours may have been there before
			}
			return a.refused(wrongLast(see.visible)), nil
		}
		m, refused := a.entry()
		if refused != nil {
			return a.refused(refused), nil
		}
		m.Header.Set(message.HeaderExpected, strconv.FormatUint(see.sequence, 10))
		if answer, done := a.publish(ctx, m); done {
			return answer, nil
		}
		store.WaitToRetry(ctx)
	}
	return ack{}, errUnknown
}

// knows reports whether what stands there is of this request, or of one with the same id.
func (a *attempt) knows(see sight) bool {
	if a.Wish.Schedule.Word != "" { // nobody else has it
		return see.word == a.word
	}
	id := a.Wish.Schedule.MsgID
	return (see.word == a.word || id != "" && see.msgID == id && !a.Cancel) && a.now.Sub(see.set) < remembered
}

// sight is what stands on the subject of a schedule.
type sight struct {
	sequence   uint64 // of the last entry; zero for none
	visible    uint64 // of the schedule, to who knows only the server's scheduling; zero where it is over
	generation uint64
	set        time.Time
	word       string
	msgID      string // of the client; not known of what is over
}

// look reads the last entry from the leader.
func (a *attempt) look(ctx context.Context) (sight, error) {
	ctx, cancel := context.WithTimeout(ctx, lookWait)
	defer cancel()
	found, _, err := store.LastEntry(ctx, a.Entries, a.subject, 0)
	if err != nil || found.None {
		return sight{}, err
	}
	e, r := found.Entry, found.Entry.Request
	see := sight{
		sequence: found.Sequence, generation: found.Sequence, set: found.At, word: e.Word, msgID: r.MsgID,
	}
	switch e.Kind {
	case message.UnprovenEntry:
		return sight{}, errUnknown // until its key is known
	case message.FiredEntry, message.OverEntry:
		see.generation = e.Generation
		if id, err := message.ParseID(r.ID); err == nil {
			see.set = id.At
		}
	}
	if r.Series > 0 { // who asked for it knows the sequence of its first round
		see.generation, see.set = r.Series, r.Accepted
	}
	if moved := r.Series == 0 && e.Word != wordOf(r.MsgID) && !strings.HasPrefix(e.Word, takenWord); moved {
		see.msgID = "" // by an operator: that is not what was asked for with the id, nor was it then
	}
	if (e.Kind == message.SetEntry || e.Kind == message.PausedEntry) && e.Problem == nil {
		see.visible = see.generation
	}
	return see, nil
}

// entry is what the wish writes.
func (a *attempt) entry() (*nats.Msg, *Refusal) {
	if a.Cancel {
		return &nats.Msg{
			Subject: a.subject, Header: a.conditions(a.Policy.ScheduleCancel(a.Wish.Schedule.Subject, a.word, a.now)),
		}, nil
	}
	schedule := a.Schedule
	schedule.Word = a.word
	header, _, problem := a.Policy.ScheduleEntry(schedule, a.Header, a.Body, a.now)
	if problem != nil {
		return nil, refusalFor(problem)
	}
	return &nats.Msg{Subject: a.subject, Header: a.conditions(header), Data: a.Body}, nil
}

func (a *attempt) conditions(h message.Header) nats.Header {
	for name, values := range a.Also {
		h[name] = values
	}
	return nats.Header(h)
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

// publish sends an entry. It is done when the answer is certain: stored, or refused for good.
func (a *attempt) publish(ctx context.Context, m *nats.Msg) (answer ack, done bool) {
	ctx, cancel := context.WithTimeout(ctx, ackWait)
	defer cancel()
	reply := a.Publish(ctx, m)
	switch outcome := reply.Outcome(); {
	case outcome == jsapi.Stored:
		return a.stored(reply.Ack.Sequence), true
	case !outcome.Final():
		a.doubt = true
		return ack{}, false
	case outcome == jsapi.Unavailable, outcome == jsapi.Undecided:
		return ack{}, false // the stream has no leader for a moment, or stores another entry
	case outcome == jsapi.Conflict && a.Also[hLastSeq] == nil:
		return ack{}, false // what stands there has changed: look again
	case a.doubt:
		return ack{}, false // this try is refused, but not the one before
	case outcome == jsapi.TooLarge:
		return a.refused(&tooLarge), true
	}
	return a.refused(&Refusal{reply.Ack.Status, reply.Ack.Code, reply.Ack.Description}), true
}

func (a *attempt) stored(sequence uint64) ack { return ack{Stream: a.stream(), Sequence: sequence} }

func (s Store) refused(r *Refusal) ack { return ack{Error: r, Stream: s.stream()} }
