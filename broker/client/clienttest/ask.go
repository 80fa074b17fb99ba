package clienttest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
	"delaybroker/levels"
)

// Ask answers the requests pause, resume, fire and move as the broker's service does.
func (s store) Ask(ctx context.Context, subject string, body []byte) (*nats.Msg, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		return nil, s.failure
	}
	for _, verb := range []string{"pause", "resume", "fire", "move"} {
		rest, ok := strings.CutPrefix(subject, s.policy.Names.TimerCall(verb))
		if !ok {
			continue
		}
		key, target, _ := strings.Cut(rest, ".")
		var request callBody
		if err := json.Unmarshal(body, &request); err != nil {
			return nil, err
		}
		a, refusal := s.execute(verb, s.policy.Names.Timer(key, target), request)
		if refusal != "" {
			return &nats.Msg{Header: nats.Header{micro.ErrorHeader: {refusal}, micro.ErrorCodeHeader: {"400"}}}, nil
		}
		data, err := json.Marshal(a)
		return &nats.Msg{Data: data}, err
	}
	return nil, nats.ErrNoResponders
}

// callBody is the body of a request.
type callBody struct {
	By    string // the shift of a move
	Token string `json:"word"`
}

// answer is the reply to a request.
type answer struct {
	Outcome string    `json:"outcome"`
	Due     time.Time `json:"due,omitzero"`
}

// execute executes a request. Refusal is the reason of a bad request, or empty.
func (f *Fake) execute(verb, subject string, request callBody) (reply answer, refusal string) {
	lastEntry, _ := f.lastEntry(subject)
	e := entry.Parse(f.policy, lastEntry.Incoming)
	if err := entry.CheckToken(request.Token); err != nil {
		return reply, err.Error()
	}
	switch {
	case lastEntry.Sequence == 0 || e.Kind == entry.Cancel:
		return answer{Outcome: "not_found"}, ""
	case e.Kind != entry.Set && e.Kind != entry.Paused:
		return answer{Outcome: "too_late"}, ""
	case verb == "move" && request.Token != "" && e.Token == request.Token: // a repeated request
		return answer{Outcome: "moved", Due: e.Request.Due}, ""
	case verb == "move":
		return f.postpone(lastEntry.Incoming, e, request)
	case verb == "fire":
		return answer{Outcome: "fired"}, f.fireNow(lastEntry.Incoming, e, request.Token)
	case e.Series == nil:
		return reply, "the timer fires once: only a recurring timer can be paused, resumed, or get another table"
	}
	reply.Outcome = f.changeSeries(verb, lastEntry.Incoming, e)
	return reply, ""
}

func (f *Fake) postpone(last message.Incoming, e entry.Entry, request callBody) (reply answer, refusal string) {
	text, negative := strings.CutPrefix(request.By, "-")
	shift, err := levels.ParseDuration(text)
	if err != nil {
		return reply, err.Error()
	}
	if negative {
		shift = -shift
	}
	reply = answer{Outcome: "moved", Due: e.Request.Due.Add(shift)}
	problem := f.policy.CheckDelay(f.now, reply.Due)
	switch {
	case e.Kind == entry.Paused:
		return answer{}, "the series is paused, and no round is due: resume it first, and then move the round"
	case shift > 0 && problem != nil:
		return answer{}, problem.Sentence
	case e.Series == nil:
		until := reply.Due.UTC().Format(time.RFC3339Nano)
		h := entry.MoveHeader(last.Header, message.HeaderUntil, until, last.Sequence, request.Token)
		f.replace(last.Stream, last.Subject, h, last.Data)
	default:
		series, round := e.Round()
		round.Due = reply.Due
		next := entry.Next{Round: round, Table: e.Series.Table, First: series.First, Token: request.Token}
		f.replace(last.Stream, last.Subject, e.RoundHeader(last.Sequence, next), last.Data)
	}
	return reply, ""
}

func (f *Fake) changeSeries(verb string, last message.Incoming, e entry.Entry) (outcome string) {
	series, round := e.Round()
	next := entry.Next{Round: round, Table: e.Series.Table, First: series.First}
	differs := e.Kind != entry.Paused
	if outcome, next.Round.Due = "paused", (time.Time{}); verb == "resume" {
		outcome, next.Round.Due = "pending", next.Table.Round(series, round.Number, round.Planned).Due
		differs = e.Kind != entry.Set
	}
	if differs {
		f.replace(last.Stream, last.Subject, e.RoundHeader(last.Sequence, next), last.Data)
	}
	return outcome
}

// extraDelivery identifies a request that adds a delivery to a series.
type extraDelivery struct{ subject, token string }

// fireNow makes a timer due immediately. For a series, it adds a delivery instead, once for each token.
func (f *Fake) fireNow(last message.Incoming, e entry.Entry, token string) (refusal string) {
	if e.Series == nil {
		h := entry.MoveHeader(last.Header, message.HeaderFor, "0s", last.Sequence, "")
		f.replace(last.Stream, last.Subject, h, last.Data)
		return ""
	}
	extra := extraDelivery{last.Subject, token}
	if token != "" && f.extras[extra] {
		return ""
	}
	h := e.Options()
	maps.Copy(h, e.Request.User)
	h[message.HeaderFor] = []string{"0s"}
	key := fmt.Sprint("fire-", f.stream(last.Stream).lastSequence)
	in := f.newMessage(last.Stream, f.policy.Names.Timer(key, e.Request.Target), h, last.Data)
	parsed, problem := entry.ParseAny(f.policy, in)
	if problem != nil {
		return problem.Sentence
	}
	f.extras[extra] = true
	f.addPending(in, parsed)
	return ""
}
