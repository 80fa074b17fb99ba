package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"delaybroker/broker/inspect"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/text"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/store"
	"delaybroker/cmd/delaybroker/settings"
	"delaybroker/levels"
)

// This file sends requests to a broker, on delayctl, in place of requests to JetStream. A tenant may publish the
// requests about its own timers, and may not read the stream of all timers.

// errMayNotRead is returned when the user may not ask JetStream about the stream of timers.
var errMayNotRead = errors.New("this user may not read the stream of timers")

// mayNotRead reports whether ctx, of [inspect.Session.Allowed], ended because the server refused a request to
// JetStream. A publish on a timer's own subject is no such request.
func mayNotRead(ctx context.Context, timers *store.Timers) bool {
	subject, _ := jsapi.Forbidden(context.Cause(ctx))
	return strings.HasPrefix(subject, timers.API.API+".")
}

// timerAsked is the body of a request about one timer: see PROTOCOL.md.
type timerAsked struct {
	Generation uint64    `json:"generation,omitempty"`
	Word       string    `json:"word,omitempty"`
	For        string    `json:"for,omitempty"`
	Until      time.Time `json:"until,omitzero"`
	By         string    `json:"by,omitempty"`
}

// askTimer makes a broker change one timer. The request has the change's id, so that the broker recognises a change
// that was made before the user proved not to be allowed to read.
func (a *app) askTimer(ctx context.Context, w store.Change) error {
	var answer store.Answer
	asked := timerAsked{Generation: w.Generation, Word: w.ID, For: w.For, Until: w.Until, By: shift(w.By)}
	subjectOf := func(n message.Names) string { return n.TimerCall(string(w.Verb)) + w.Key + "." + w.Target }
	if err := a.askBroker(ctx, subjectOf, asked, &answer); err != nil {
		return err
	}
	return a.showTimer(answer)
}

// shift formats the duration of a move, with its sign.
func shift(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d < 0:
		return "-" + levels.FormatDuration(-d)
	}
	return levels.FormatDuration(d)
}

// timersAsked is the body of a request for a list of timers.
type timersAsked struct {
	Target  string        `json:"target,omitempty"`
	Key     string        `json:"key,omitempty"`
	DueFrom time.Time     `json:"due_from,omitzero"`
	DueTo   time.Time     `json:"due_to,omitzero"`
	State   timer.Outcome `json:"state,omitempty"`
	After   uint64        `json:"after,omitempty"`
	UpTo    uint64        `json:"up_to,omitempty"`
	Limit   int           `json:"limit,omitempty"`
}

// askList makes a broker list timers. The subject has the tokens of the target before its first wildcard; by it the
// server decides whether the user may send the request.
func (a *app) askList(ctx context.Context, f store.Filter, p store.Page) (l store.Listing, err error) {
	asked := timersAsked{
		Key: f.Key, DueFrom: f.DueFrom, DueTo: f.DueTo, State: f.State, After: p.After, UpTo: p.UpTo, Limit: p.Limit,
	}
	begin := ""
	if len(f.Targets) > 0 {
		asked.Target = f.Targets[0]
		for token := range strings.SplitSeq(asked.Target, ".") {
			if token == "*" || token == ">" {
				break
			}
			begin += "." + token
		}
	}
	err = a.askBroker(ctx, func(n message.Names) string { return n.TimersCall() + begin }, asked, &l)
	return l, err
}

// askBroker sends a request to a broker, and decodes the answer.
func (a *app) askBroker(ctx context.Context, subjectOf func(message.Names) string, asked, into any) error {
	c, err := settings.ReadClient()
	if err != nil {
		return err
	}
	body, err := json.Marshal(asked)
	if err != nil {
		return fmt.Errorf("bug: encode a request: %w", err)
	}
	subject := subjectOf(c.Policy.Names)
	return a.withSession(ctx, c, func(ctx context.Context, s *inspect.Session) error {
		ctx, cancel := s.Allowed(ctx)
		defer cancel()
		limited, cancelWait := context.WithTimeout(ctx, timersPatience)
		defer cancelWait()
		m, err := s.Conn.RequestMsgWithContext(limited, &nats.Msg{Subject: subject, Data: body})
		switch {
		case errors.Is(err, nats.ErrNoResponders):
			return fmt.Errorf("%w, and no broker answers on %s", errMayNotRead, subject)
		case inspect.Forbidden(ctx) != nil:
			return fmt.Errorf("%w, nor ask a broker: grant it %s, or a right to read: %w", errMayNotRead, subject,
				inspect.Forbidden(ctx))
		case err != nil:
			return fmt.Errorf("%w, and no broker answered on %s: the outcome is unknown: %w", errMayNotRead, subject, err)
		}
		if sentence := m.Header.Get(micro.ErrorHeader); sentence != "" {
			said := text.Printable(sentence, 600)
			if m.Header.Get(micro.ErrorCodeHeader) == "400" {
				return fmt.Errorf("%w: %s", errUsage, said)
			}
			return fmt.Errorf("a broker answers on %s: %s", subject, said)
		}
		if err := json.Unmarshal(m.Data, into); err != nil {
			return fmt.Errorf("decode the answer on %s, which may not be a broker's: %w", subject, err)
		}
		return nil
	})
}
