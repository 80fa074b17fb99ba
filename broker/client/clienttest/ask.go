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
)

// Ask replies as the broker's service does, to pause, resume and fire.
func (s store) Ask(ctx context.Context, subject string, _ []byte) (*nats.Msg, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		return nil, s.failure
	}
	for _, verb := range []string{"pause", "resume", "fire"} {
		rest, ok := strings.CutPrefix(subject, s.policy.Names.TimerCall(verb))
		if !ok {
			continue
		}
		key, target, _ := strings.Cut(rest, ".")
		outcome, refused := s.do(verb, s.policy.Names.Timer(key, target))
		if refused != "" {
			return &nats.Msg{Header: nats.Header{micro.ErrorHeader: {refused}, micro.ErrorCodeHeader: {"400"}}}, nil
		}
		body, err := json.Marshal(map[string]string{"outcome": outcome})
		return &nats.Msg{Data: body}, err
	}
	return nil, nats.ErrNoResponders
}

// do executes a request with the given verb.
func (f *Fake) do(verb, subject string) (outcome, refused string) {
	stands, _ := f.last(subject)
	e := entry.Parse(f.policy, stands.Incoming)
	switch {
	case stands.Sequence == 0 || e.Kind == entry.Cancel:
		return "not_found", ""
	case e.Kind != entry.Set && e.Kind != entry.Paused:
		return "too_late", ""
	case verb == "fire":
		return "fired", f.fireNow(stands.Incoming, e)
	case e.Recurs == nil:
		return "", "it fires once: only what recurs can be paused, resumed, or get another table"
	}
	series, round := e.Round()
	next := entry.Next{Round: round, Table: e.Recurs.Table, First: series.First}
	if outcome = "paused"; verb == "resume" {
		outcome, next.Round.Due = "pending", next.Table.Round(series, round.Number, round.Planned).Due
		if e.Kind == entry.Set {
			return outcome, ""
		}
	} else if next.Round.Due = (time.Time{}); e.Kind == entry.Paused {
		return outcome, ""
	}
	f.replace(stands.Stream, subject, e.RoundHeader(stands.Sequence, next), stands.Data)
	return outcome, ""
}

// fireNow makes a timer due immediately. For a series it adds a delivery instead.
func (f *Fake) fireNow(stands message.Incoming, e entry.Entry) (refused string) {
	if e.Recurs == nil {
		at := entry.MoveHeader(stands.Header, message.HeaderFor, "0s", stands.Sequence, "")
		f.replace(stands.Stream, stands.Subject, at, stands.Data)
		return ""
	}
	h := e.Options()
	maps.Copy(h, e.Request.User)
	h[message.HeaderFor] = []string{"0s"}
	key := fmt.Sprint("fire-", f.stream(stands.Stream).last)
	in := f.stored(stands.Stream, f.policy.Names.Timer(key, e.Request.Target), h, stands.Data)
	as, problem := entry.ParseAny(f.policy, in)
	if problem != nil {
		return problem.Sentence
	}
	f.pend(in, as)
	return ""
}
