package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"delaybroker/broker/inspect"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/text"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/service"
	"delaybroker/broker/timer/store"
	"delaybroker/cmd/delaybroker/settings"
	"delaybroker/levels"
)

// The functions in this file send requests to a broker (see "Requests to the broker" in PROTOCOL.md), instead of
// requests to JetStream. A tenant may publish requests about its own timers, but may not read the stream of all timers.

var (
	// errMayNotRead is returned if the user may not send requests about the stream of timers to JetStream.
	errMayNotRead = errors.New("this user may not read the stream of timers")
	// errNoAnswer is returned if a broker may have received a request, and has not answered it.
	errNoAnswer = errors.New("no broker answered in time")
)

// mayNotRead reports whether ctx, from [inspect.Session.WithRefusal], ended because the server refused a request to the
// JetStream API. A refused publish on a timer's own subject does not count.
func mayNotRead(ctx context.Context, timers *store.Timers) bool {
	subject, _ := jsapi.RefusedSubject(context.Cause(ctx))
	return strings.HasPrefix(subject, timers.API.API+".")
}

// fallBackToBroker calls ask, which asks a broker, if err is errMayNotRead. It returns any other err.
func (a *app) fallBackToBroker(err error, ask func() error) error {
	if !errors.Is(err, errMayNotRead) {
		return err
	}
	fmt.Fprintf(a.Err, "%s; asking a broker\n", errMayNotRead)
	return ask()
}

// unknownSetReason explains why the outcome of a set is unknown to a user without permission to read.
func unknownSetReason(change store.Change) string {
	condition := ""
	if change.Conditional {
		condition = ", and whether the condition held"
	}
	return fmt.Sprintf("%s, so it is unknown whether the timer was set%s: run delaybroker timers show %s %s, which asks"+
		" a broker", errMayNotRead, condition, change.Key, change.Target)
}

// askTimer sends a request about one timer to a broker, and prints the answer. The request has the change's id, so the
// broker recognizes a change that this command has already made.
func (a *app) askTimer(ctx context.Context, change store.Change) error {
	var answer store.Answer
	request := service.TimerBody{
		Generation: change.Generation, Token: change.ID, For: change.For, Until: change.Until, By: formatShift(change.By),
	}
	name := change.Key + "." + change.Target
	if _, isNATSSchedule := message.ParseScheduleName(change.Key); isNATSSchedule {
		name = change.Key
	}
	subjectOf := func(n message.Names) string { return n.TimerCall(string(change.Verb)) + name }
	switch err := a.askBroker(ctx, subjectOf, request, &answer); {
	case errors.Is(err, errNoAnswer) && change.Verb != timer.Get: // a broker may have made the change
		answer = store.Answer{
			Outcome: timer.Unknown, Key: change.Key, Target: change.Target, Generation: change.Generation, Why: err.Error(),
			At: time.Now().UTC(),
		}
	case err != nil:
		return err
	}
	return a.showTimer(answer)
}

// formatShift formats the duration of a move, with its sign.
func formatShift(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d < 0:
		return "-" + levels.FormatDuration(-d)
	}
	return levels.FormatDuration(d)
}

// newRequest returns the body of a request about the timers of a filter, and the end of its subject. This end has the
// tokens of the target before the first wildcard, since the server checks the user's permission by the subject.
func newRequest(f store.Filter, p store.Page) (request service.SelectionBody, suffix string) {
	request.Filter, request.Page = f, p
	if len(f.Targets) == 0 {
		return request, ""
	}
	request.Target = f.Targets[0]
	for token := range strings.SplitSeq(request.Target, ".") {
		if token == "*" || token == ">" {
			break
		}
		suffix += "." + token
	}
	return request, suffix
}

func (a *app) askList(ctx context.Context, f store.Filter, p store.Page) (l store.Listing, err error) {
	request, suffix := newRequest(f, p)
	err = a.askBroker(ctx, func(n message.Names) string { return n.TimersCall() + suffix }, request, &l)
	return l, err
}

// askRecurring makes a broker list the recurring timers, as [store.Timers.ListRecurring] does. It yields each timer
// once, even if a round fires meanwhile.
func (a *app) askRecurring(ctx context.Context, f store.Filter) iter.Seq2[store.Row, error] {
	f.Recurring = true
	return func(yield func(store.Row, error) bool) {
		yielded := make(map[string]bool) // by key and target
		p := store.Page{Limit: store.MaxLimit}
		for {
			l, err := a.askList(ctx, f, p)
			if err != nil {
				yield(store.Row{}, err)
				return
			}
			for _, r := range l.Timers {
				name := r.Key + " " + r.Target
				if !yielded[name] && !yield(r, nil) {
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

// askBulk makes a broker cancel or shift a page of timers. A shift needs an upper bound of the sequences, so that no
// timer is shifted twice. A dry run of the first page gives the bound.
func (a *app) askBulk(ctx context.Context, b store.Bulk) (d store.BulkResult, err error) {
	request, suffix := newRequest(b.Filter, b.Page)
	request.By, request.DryRun = formatShift(b.By), b.DryRun
	call := message.Names.CancelAllCall
	if b.Verb == timer.Move {
		call = message.Names.ShiftCall
	}
	subjectOf := func(n message.Names) string { return call(n) + suffix }
	if b.Verb == timer.Move && !b.DryRun && b.Page.UpTo == 0 {
		dryRun := request
		dryRun.DryRun = true
		if err := a.askBroker(ctx, subjectOf, dryRun, &d); err != nil {
			return d, err
		}
		request.UpTo, d = d.UpTo, store.BulkResult{}
	}
	err = a.askBroker(ctx, subjectOf, request, &d)
	return d, err
}

// askBroker sends a request to a broker, and decodes the answer.
func (a *app) askBroker(ctx context.Context, subjectOf func(message.Names) string, request, answer any) error {
	c, err := settings.ReadClient()
	if err != nil {
		return err
	}
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("bug: encode a request: %w", err)
	}
	subject := subjectOf(c.Policy.Names)
	return a.withSession(ctx, c, func(ctx context.Context, s *inspect.Session) error {
		ctx, cancel := s.WithRefusal(ctx)
		defer cancel()
		limited, cancelWait := context.WithTimeout(ctx, timersTimeout)
		defer cancelWait()
		m, err := s.Conn.RequestMsgWithContext(limited, &nats.Msg{Subject: subject, Data: body})
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
			problem := text.Printable(sentence, 600)
			if m.Header.Get(micro.ErrorCodeHeader) == "400" {
				return fmt.Errorf("%w: %s", errUsage, problem)
			}
			return fmt.Errorf("a broker refused the request on %s: %s", subject, problem)
		}
		if err := json.Unmarshal(m.Data, answer); err != nil {
			return fmt.Errorf("decode the answer on %s, which may not be a broker's: %w", subject, err)
		}
		return nil
	})
}
