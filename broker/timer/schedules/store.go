package schedules

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/entry"
)

const (
	// stepTimeout is the timeout of a read, and of a request for the target's stream.
	stepTimeout = time.Second
	// duplicateWindow is the time for which a Nats-Msg-Id counts as used: the server's default duplicate window.
	duplicateWindow = 2 * time.Minute
)

// errUnknown is returned if it cannot be determined whether a request was stored. Then the request gets no answer.
var errUnknown = errors.New("unknown whether the schedule is stored")

// ack is JetStream's answer to a publish.
type ack struct {
	Error     *refusal `json:"error,omitempty"`
	Stream    string   `json:"stream"`
	Sequence  uint64   `json:"seq"`
	Duplicate bool     `json:"duplicate,omitempty"`
}

// Store stores schedules among the timers.
type Store struct{ *change.Timers }

func (s Store) stream() string { return s.Policy.Names.TimersStream() }

// checkStorable returns a refusal if the schedule's subject is invalid, or if the target's stream would refuse the
// schedule's message; otherwise nil. Only a message with a TTL or a rollup needs the check of the stream. If the
// broker finds no such stream, or cannot ask for it, checkStorable returns nil: the stream may be in another account.
func (s Store) checkStorable(ctx context.Context, c Instruction) *refusal {
	if problem := entry.CheckSchedule(s.Policy, c.Schedule.Subject); problem != nil {
		return &refusal{400, jsapi.CodeStoreFailed, problem.Sentence}
	}
	ttl, rollup := c.Schedule.TTL != "", c.Schedule.Rollup
	if c.Cancel || !ttl && !rollup {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	var found struct {
		Streams []jetstream.StreamInfo `json:"streams"`
	}
	query := map[string]string{"subject": c.Schedule.Target}
	if err := s.API.Ask(ctx, "STREAM.LIST", query, &found); err != nil {
		return nil
	}
	listens := func(subjects string) bool { return message.Match(subjects, c.Schedule.Target) }
	for _, info := range found.Streams {
		switch cfg := info.Config; {
		case !slices.ContainsFunc(cfg.Subjects, listens):
		case ttl && !cfg.AllowMsgTTL:
			return noTTL.withReason("the target's stream %s does not have allow_msg_ttl", cfg.Name)
		case rollup && !cfg.AllowRollup:
			return badRollup.withReason("the target's stream %s does not have allow_rollup_hdrs", cfg.Name)
		}
	}
	return nil
}

// attempt carries out one change.
type attempt struct {
	Store
	Instruction
	change.Attempt
	request message.Incoming
	now     time.Time // when the attempt began, by the clock of a leader: see carryOut
	token   string    // the token of the request, which the entry contains
	// inPlace means that the stream refuses each publish if the last entry is not the one that was read. If inPlace is
	// false, and the entry may be stored already, the attempt does not publish again: a second copy might replace another
	// client's entry.
	inPlace bool
	answer  ack // the answer; zero until it is certain
}

// carryOut stores the change of a request. It returns when the result is certain or ctx ends. Now is the present time
// of the leader of the timers' stream. The only error is errUnknown.
func (s Store) carryOut(ctx context.Context, r message.Incoming, c Instruction, now time.Time) (ack, error) {
	a := attempt{
		Store: s, Instruction: c, request: r, now: now, token: rand.Text(),
		inPlace: c.Expected != nil || c.Schedule.MsgID != "",
		Attempt: change.Attempt{
			Timers: s.Timers, Subject: s.Policy.Names.ScheduleSubject(c.Schedule.Subject), ReadTimeout: stepTimeout,
		},
	}
	if c.Schedule.MsgID != "" && !c.Cancel {
		a.token = tokenOf(c.Schedule.MsgID)
	}
	err := a.Run(ctx, &a, !a.inPlace)
	if refused, ok := errors.AsType[*refusal](err); ok {
		return s.refusalAck(refused), nil
	}
	if err != nil || a.answer == (ack{}) {
		return ack{}, errUnknown
	}
	return a.answer, nil
}

// tokenOf returns the token of a request with a Nats-Msg-Id.
func tokenOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "id-" + base64.RawURLEncoding.EncodeToString(sum[:16])
}

// Decide implements a rule of change.Attempt.
func (a *attempt) Decide() timer.Next {
	st, ok := subjectStateOf(a.State)
	doubt := a.Doubt.Unanswered
	switch {
	case !ok:
		return timer.ReadAgain
	case a.isOwn(st), !a.inPlace && st.token == a.token:
		a.answer = a.storedAck(st.generation)
		a.answer.Duplicate = !doubt
		return timer.Reply
	case !a.inPlace && doubt:
		return timer.ReadAgain
	case a.Expected != nil && *a.Expected != st.pendingGeneration:
		if !doubt { // in doubt, our entry may have been stored, and then replaced
			why := fmt.Sprintf("wrong last sequence: %d", st.pendingGeneration)
			a.answer = a.refusalAck(&refusal{400, jsapi.CodeWrongLast, why})
		}
		return timer.Reply
	}
	return timer.Publish
}

// Decisive implements a rule of change.Attempt. Every last entry is decisive.
func (a *attempt) Decisive(entry.Entry) bool { return true }

// isOwn reports whether this request, or one with the same Nats-Msg-Id, has stored the last entry within the duplicate
// window.
func (a *attempt) isOwn(st subjectState) bool {
	id := a.Schedule.MsgID
	return (st.token == a.token || id != "" && st.msgID == id && !a.Cancel) && a.now.Sub(st.setAt) < duplicateWindow
}

// subjectState is the state of a schedule's subject.
type subjectState struct {
	pendingGeneration uint64    // generation, if the schedule is pending or paused; otherwise zero
	generation        uint64    // the sequence by which a client knows the schedule; for a series, that of its first round
	setAt             time.Time // when that generation was stored
	token             string    // the token of the request in the last entry
	msgID             string    // the client's Nats-Msg-Id; empty if unknown
}

// subjectStateOf returns the state that the last entry represents. ok is false if the entry is sealed with an unknown
// key.
func subjectStateOf(found timer.State) (st subjectState, ok bool) {
	if found.NoEntry {
		return subjectState{}, true
	}
	e, r := found.Entry, found.Entry.Request
	st = subjectState{generation: found.Sequence, setAt: found.At, token: e.Token, msgID: r.MsgID}
	switch e.Kind {
	case entry.Unproven:
		return subjectState{}, false
	case entry.Fired, entry.Over:
		st.generation = e.Generation
		if id, err := message.ParseID(r.ID); err == nil {
			st.setAt = id.At
		}
	}
	series := e.Origin().Series
	if series > 0 { // the client knows the sequence of the first round
		st.generation, st.setAt = series, r.Accepted
	}
	if moved := series == 0 && e.Token != tokenOf(r.MsgID); moved {
		st.msgID = "" // an operator moved the schedule, so the id does not identify it any more
	}
	if e.PendingOrPaused() {
		st.pendingGeneration = st.generation
	}
	return st, true
}

// Entry implements a rule of change.Attempt.
func (a *attempt) Entry(_ context.Context, generation uint64) (*nats.Msg, error) {
	schedule, body := a.Schedule, a.request.Data
	schedule.Token = a.token
	header, problem := message.Header(nil), (*message.Problem)(nil)
	if a.Cancel {
		header, body = message.Header{message.HeaderCancel: {a.token}}, nil
		a.Policy.Keys.SealMessage(a.Subject, header, nil)
	} else if header, problem = entry.ScheduleEntry(a.Policy, schedule, a.request.Header, body, a.now); problem != nil {
		return nil, refusalFor(problem)
	}
	maps.Copy(header, a.Conditions)
	if a.inPlace {
		header[message.HeaderExpected] = []string{strconv.FormatUint(generation, 10)}
	}
	return &nats.Msg{Subject: a.Subject, Header: nats.Header(header), Data: body}, nil
}

// refusalFor returns the refusal for a problem. If the server has no such rule, the refusal has the code of a stream
// that cannot store a message, so that clients treat it as a refusal by the stream.
func refusalFor(p *message.Problem) *refusal {
	switch p.Code {
	case message.BadTarget:
		return badTarget.withReason("%s", p.Sentence)
	case message.BadTime, message.TooFar, message.BadTimer:
		return badPattern.withReason("%s", p.Sentence)
	}
	return &refusal{400, jsapi.CodeStoreFailed, p.Sentence}
}

// Judge implements a rule of change.Attempt.
func (a *attempt) Judge(_ context.Context, _ uint64, reply jsapi.Reply) (change.Meaning, error) {
	switch outcome := reply.Outcome(); {
	case outcome == jsapi.Stored:
		a.answer = a.storedAck(reply.Ack.Sequence)
		return change.Final, nil
	case !outcome.NotStored():
		return change.Doubtful, nil
	case outcome == jsapi.Unavailable, outcome == jsapi.Undecided:
		return change.Retry, nil // the stream has no leader at the moment, or is storing another entry
	case outcome == jsapi.Conflict && a.Conditions[jetstream.ExpectedLastSeqHeader] == nil:
		return change.Replaced, nil
	case a.Doubt.Unanswered:
		return change.Retry, nil // this publish is refused, but an earlier one may be stored
	case outcome == jsapi.TooLarge:
		return change.Final, &tooLarge
	}
	return change.Final, &refusal{reply.Ack.Status, reply.Ack.Code, reply.Ack.Description}
}

func (a *attempt) storedAck(sequence uint64) ack { return ack{Stream: a.stream(), Sequence: sequence} }

func (s Store) refusalAck(r *refusal) ack { return ack{Error: r, Stream: s.stream()} }
