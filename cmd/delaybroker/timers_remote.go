package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/text"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/store"
	"delaybroker/levels"
)

// errNoAnswer is returned if a broker may have received a request, and has not answered it.
var errNoAnswer = errors.New("no broker answered in time")

// remoteTimers asks a broker (see "Requests to the broker" in PROTOCOL.md), instead of JetStream. A tenant may publish
// requests about its own timers, but may not read the stream of all timers.
type remoteTimers struct {
	session *inspect.Session
	names   message.Names
}

// Do asks a broker to change one timer. The request has the change's id, so the broker recognizes a change that this
// command has already made.
func (r remoteTimers) Do(ctx context.Context, c change.Change) (answer change.Answer, err error) {
	body := remoteRequest{Word: c.ID, Generation: c.Generation, In: c.For, At: c.Until, By: formatShift(c.By)}
	name := c.Key + "." + c.Target
	if _, isNATSSchedule := message.ParseScheduleName(c.Key); isNATSSchedule {
		name = c.Key
	}
	subject := r.names.TimerCall(string(c.Verb)) + name
	if c.Verb == timer.Set {
		err = r.send(ctx, setMessage(subject, c), &answer)
	} else {
		err = r.ask(ctx, subject, body, &answer)
	}
	if c.Verb == timer.Set && err != nil || errors.Is(err, errNoAnswer) && c.Verb != timer.Get { // it may have been made
		return change.Answer{
			Outcome: timer.Unknown, Key: c.Key, Target: c.Target, Generation: c.Generation, Why: err.Error(),
			At: time.Now().UTC(),
		}, nil
	}
	return answer, err
}

// setMessage returns the request to set a timer: the message that would be published.
func setMessage(subject string, c change.Change) *nats.Msg {
	m := &nats.Msg{Subject: subject, Header: nats.Header(maps.Clone(c.Header)), Data: c.Body}
	m.Header.Set(message.HeaderWord, c.ID)
	if c.Conditional {
		m.Header.Set(message.HeaderExpected, strconv.FormatUint(c.Generation, 10))
	}
	return m
}

// Read is not possible: no request returns the entry of a timer.
func (r remoteTimers) Read(context.Context, string, string) (timer.State, error) {
	return timer.State{}, errMayNotRead
}

// remoteRequest is the body of a request. A broker refuses fields that a request does not have.
type remoteRequest struct {
	Word       string        `json:"word,omitempty"`
	Generation uint64        `json:"generation,omitempty"`
	In         string        `json:"in,omitempty"`
	At         time.Time     `json:"at,omitzero"`
	By         string        `json:"by,omitempty"`
	Limit      int           `json:"limit,omitempty"`
	Key        string        `json:"key,omitempty"`
	Set        string        `json:"set,omitempty"`
	Target     string        `json:"target,omitempty"`
	State      timer.Outcome `json:"state,omitempty"`
	After      uint64        `json:"after,omitempty"`
	UpTo       uint64        `json:"up_to,omitempty"`
	DueAfter   time.Time     `json:"due_after,omitzero"`
	DueBefore  time.Time     `json:"due_before,omitzero"`
	Once       bool          `json:"once,omitempty"`
	Recurring  bool          `json:"recurring,omitempty"`
	Order      string        `json:"order,omitempty"`
	DryRun     bool          `json:"dry_run,omitempty"`
}

// requestOf returns the body of a request about the timers of a filter, and the end of its subject. This end has the
// tokens of the target before the first wildcard, since the server checks the user's permission by the subject.
func requestOf(f store.Filter, p store.Page) (body remoteRequest, suffix string) {
	body = remoteRequest{
		Limit: max(1, p.Limit), Key: f.Key, Set: f.Set, Target: strings.Join(f.Targets, ""), After: p.Start,
		UpTo: p.UpTo, DueAfter: f.DueFrom, DueBefore: f.DueTo, Once: f.OneShot,
	}
	for token := range strings.SplitSeq(body.Target, ".") {
		if token == "*" || token == ">" || token == "" {
			break
		}
		suffix += "." + token
	}
	return body, suffix
}

// List asks a broker for a page of timers.
func (r remoteTimers) List(ctx context.Context, f store.Filter, p store.Page) (l store.Listing, err error) {
	body, suffix := requestOf(f, p)
	body.State, body.Recurring = f.State, f.Recurring
	if p.ByDue {
		body.Order = "due"
	}
	err = r.ask(ctx, r.names.TimersCall()+suffix, body, &l)
	return l, err
}

// ListRecurring asks a broker for all recurring timers. It yields each timer once, even if a round fires meanwhile.
func (r remoteTimers) ListRecurring(ctx context.Context, f store.Filter) iter.Seq2[store.Row, error] {
	f.Recurring = true
	return func(yield func(store.Row, error) bool) {
		yielded := make(map[string]bool) // by key and target
		for p := (store.Page{Limit: store.MaxLimit}); ; {
			l, err := r.List(ctx, f, p)
			if err != nil {
				yield(store.Row{}, err)
				return
			}
			for _, row := range l.Timers {
				name := row.Key + " " + row.Target
				if !yielded[name] && !yield(row, nil) {
					return
				}
				yielded[name] = true
			}
			if l.Next == 0 {
				return
			}
			p.Start, p.UpTo = l.Next, l.UpTo
		}
	}
}

// Bulk asks a broker to cancel or shift a page of timers. A shift needs an upper bound of the sequences, so that no
// timer is shifted twice. A dry run of the first page gives the bound.
func (r remoteTimers) Bulk(ctx context.Context, b store.Bulk) (d store.BulkResult, err error) {
	body, suffix := requestOf(b.Filter, b.Page)
	body.DryRun = b.DryRun
	subject := r.names.CancelAllCall() + suffix
	if b.Verb == timer.Move {
		subject, body.By = r.names.ShiftCall()+suffix, formatShift(b.By)
	}
	if b.Verb == timer.Move && !b.DryRun && b.Page.UpTo == 0 {
		body.DryRun = true
		if err := r.ask(ctx, subject, body, &d); err != nil {
			return d, err
		}
		body.DryRun, body.UpTo, d = false, d.UpTo, store.BulkResult{}
	}
	err = r.ask(ctx, subject, body, &d)
	return d, err
}

// formatShift formats the duration of a move, with its sign; empty for zero.
func formatShift(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d < 0:
		return "-" + levels.FormatDuration(-d)
	}
	return levels.FormatDuration(d)
}

// ask sends a request to a broker, and decodes the answer.
func (r remoteTimers) ask(ctx context.Context, subject string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("bug: encode a request: %w", err)
	}
	return r.send(ctx, &nats.Msg{Subject: subject, Data: body}, answer)
}

func (r remoteTimers) send(ctx context.Context, request *nats.Msg, answer any) error {
	subject := request.Subject
	ctx, cancel := r.session.WithRefusal(ctx)
	defer cancel()
	limited, cancelWait := context.WithTimeout(ctx, timersTimeout)
	defer cancelWait()
	m, err := r.session.Conn.RequestMsgWithContext(limited, request)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("%w, and no broker answers on %s", errMayNotRead, subject)
	case inspect.RefusalOf(ctx) != nil:
		return fmt.Errorf("%w, nor ask a broker: grant the user permission to publish to %s, or to read that stream: %w",
			errMayNotRead, subject, inspect.RefusalOf(ctx))
	case err != nil:
		return fmt.Errorf("%w, and %w on %s: %w", errMayNotRead, errNoAnswer, subject, err)
	}
	if sentence := m.Header.Get(micro.ErrorHeader); sentence != "" {
		problem := text.Sentence(sentence)
		if m.Header.Get(micro.ErrorCodeHeader) == "400" {
			return fmt.Errorf("%w: %s", errUsage, problem)
		}
		return fmt.Errorf("a broker refused the request on %s: %s", subject, problem)
	}
	if err := json.Unmarshal(m.Data, answer); err != nil {
		return fmt.Errorf("decode the answer on %s, which may not be a broker's: %w", subject, err)
	}
	return nil
}
