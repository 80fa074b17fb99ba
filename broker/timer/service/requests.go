package service

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/store"
	"delaybroker/broker/timer/timetable"
	"delaybroker/levels"
)

// TimerBody is the body of a request about one timer. All fields are optional. The verb determines the valid fields.
type TimerBody struct {
	Generation uint64    `json:"generation,omitempty"` // the generation to change; zero for any
	Token      string    `json:"word,omitempty"`       // identifies the request, so that the client can repeat it
	Series     uint64    `json:"series,omitempty"`     // only this series, whichever round is pending; zero for any
	For        string    `json:"for,omitempty"`        // move, retime: the delay of the timer or of the first round
	Until      time.Time `json:"until,omitzero"`       // move, retime: the time of the timer or of the first round

	tableBody // retime

	By string `json:"by,omitempty"` // move: added to the due time, as in 5m or -5m
}

// SelectionBody is the body of a request about many timers. All fields are optional. TimerBody has no dry_run, so a
// request about one timer with dry_run is refused.
type SelectionBody struct {
	By     string `json:"by,omitempty"`     // shift: added to the due times, as in 5m or -5m
	Target string `json:"target,omitempty"` // a pattern of targets; it begins with the target tokens of the subject
	store.Filter
	store.Page
	DryRun bool `json:"dry_run,omitempty"`
}

// tableBody is a time table. The fields have the same values as Delay-Every, Delay-Cron and the related headers.
type tableBody struct {
	Every  string    `json:"every,omitempty"`
	Cron   string    `json:"cron,omitempty"`
	Zone   string    `json:"time_zone,omitempty"`
	Jitter string    `json:"jitter,omitempty"`
	Missed string    `json:"missed,omitempty"`
	Rounds int       `json:"rounds,omitempty"`
	Last   time.Time `json:"last,omitzero"`
}

func (t tableBody) table() (*timetable.Table, error) {
	settings := timetable.Settings{
		Every: t.Every, Cron: t.Cron, Zone: t.Zone, Jitter: t.Jitter, Missed: t.Missed, Last: t.Last,
	}
	if t.Rounds != 0 {
		settings.Rounds = strconv.Itoa(t.Rounds)
	}
	table, err := timetable.Parse(settings)
	if err != nil {
		return nil, BadRequest("%v", err)
	}
	return &table, nil
}

func (s *Service) changeTimer(ctx context.Context, r request) (any, error) {
	var a TimerBody
	if err := Decode(r.Data, &a); err != nil {
		return nil, err
	}
	key, target, _ := strings.Cut(strings.TrimPrefix(r.Subject, r.endpoint.root), ".")
	if key == message.ScheduleKey { // the subject of the request gives the right, whatever the schedule's target
		key, target = message.ScheduleName(target), ""
	}
	change := store.Change{
		Request: timer.Request{Verb: r.endpoint.verb, Generation: a.Generation, Series: a.Series, ID: a.Token},
		Key:     key, Target: target,
	}
	if a.Generation > 0 && a.Series > 0 {
		return nil, BadRequest("generation and series exclude each other: give one of them")
	}
	if change.ID == "" {
		change.ID = r.Header.Get(message.HeaderWord)
	}
	if err := entry.CheckToken(change.ID); err != nil {
		return nil, BadRequest("%v", err)
	}
	if err := copyDetails(&change, a, r); err != nil {
		return nil, err
	}
	return s.Timers.Do(ctx, change)
}

// copyDetails copies the fields for the request's verb into the change, and refuses the fields for other verbs.
func copyDetails(change *store.Change, a TimerBody, r request) (err error) {
	hasTime := a.For != "" || !a.Until.IsZero()
	switch {
	case change.Verb != timer.Retime && a.tableBody != tableBody{}:
		return BadRequest("a time table (every, cron and so on) is only for retime")
	case change.Verb == timer.Move:
		return copyTime(change, a, r)
	case change.Verb == timer.Retime && a.By == "":
		hasHeader := r.Header.Get(message.HeaderFor) != "" || r.Header.Get(message.HeaderUntil) != ""
		if change.Table, err = a.table(); err == nil && (hasTime || hasHeader) {
			err = copyTime(change, a, r)
		}
		return err
	case hasTime || a.By != "":
		return BadRequest("for and until are only for move and retime, and by is only for move")
	}
	return nil
}

// copyTime copies the time of a move, or of the first round of a retime, into the change.
func copyTime(change *store.Change, a TimerBody, r request) (err error) {
	wait, until := r.Header.Get(message.HeaderFor), r.Header.Get(message.HeaderUntil)
	count := 0
	for _, isSet := range []bool{a.For != "", !a.Until.IsZero(), a.By != "", wait != "", until != ""} {
		if isSet {
			count++
		}
	}
	if count != 1 {
		return BadRequest("want one time, as for, until, by, Delay-For or Delay-Until; got %d", count)
	}
	switch change.For, change.Until = a.For+wait, a.Until; {
	case until != "":
		if change.Until, err = time.Parse(time.RFC3339Nano, until); err != nil {
			return BadRequest("Delay-Until %.40q: want RFC 3339 with a zone", until)
		}
	case change.For != "":
		if _, err := levels.ParseDuration(change.For); err != nil {
			return BadRequest("for: %v", err)
		}
	case a.By != "":
		if change.By, err = store.ParseShift(a.By); err != nil {
			return BadRequest("by: %v", err)
		}
	}
	return nil
}

// decodeMany reads a request about many timers. It sets the filter's targets from the body, and its prefix from the
// subject.
func (r request) decodeMany() (a SelectionBody, err error) {
	if err := Decode(r.Data, &a); err != nil {
		return a, err
	}
	prefix := strings.TrimPrefix(strings.TrimPrefix(r.Subject, r.endpoint.root), ".")
	switch {
	case strings.ContainsAny(prefix, "*>"): // a permission for orders.* would allow orders.>, too
		return a, BadRequest("%s: want the first tokens of the targets, without wildcards", r.Subject)
	case a.Target != "":
		if prefix != "" && a.Target != prefix && !strings.HasPrefix(a.Target, prefix+".") {
			return a, BadRequest("target %q: want one that begins with %s, as the subject does", a.Target, prefix)
		}
		a.Targets = []string{a.Target}
	}
	a.Prefix = prefix
	return a, nil
}

func (s *Service) list(ctx context.Context, r request) (any, error) {
	a, err := r.decodeMany()
	if err != nil {
		return nil, err
	}
	if a.By != "" || a.DryRun {
		return nil, BadRequest("by is only for shift, and dry_run only for shift and cancel-all")
	}
	return s.Timers.List(ctx, a.Filter, a.Page)
}

// bulk answers a request for a page of cancel-all or shift. A shift needs up_to, except in a dry run. Without up_to, if
// the answer to the first page is lost, a repeated request would shift the timers twice.
func (s *Service) bulk(ctx context.Context, r request) (any, error) {
	a, err := r.decodeMany()
	if err != nil {
		return nil, err
	}
	a.Limit = cmp.Or(a.Limit, store.MaxLimit) // for the server, the start of a page costs as much as some hundred timers
	b := store.Bulk{Verb: r.endpoint.verb, DryRun: a.DryRun, Filter: a.Filter, Page: a.Page}
	switch {
	case a.Recurring || a.Set != "":
		return nil, BadRequest("recurring and set are only for lists")
	case a.State != "" && a.State != timer.Pending:
		return nil, BadRequest("state %q: only pending timers can be changed", a.State)
	case b.Verb == timer.Cancel && a.By != "":
		return nil, BadRequest("by is only for shift")
	case b.Verb == timer.Move && !b.DryRun && a.UpTo == 0:
		return nil, BadRequest("up_to is missing: first send the request with dry_run, and copy up_to from the answer; " +
			"then a repeated page shifts no timer twice")
	case b.Verb == timer.Move:
		if b.By, err = store.ParseShift(a.By); err != nil {
			return nil, BadRequest("by: %v", err)
		}
	}
	return s.Timers.Bulk(ctx, b)
}

// BadRequest returns the error for an invalid request.
func BadRequest(format string, args ...any) *store.Refusal {
	return store.Refusef(store.CodeBadRequest, format, args...)
}

// Decode decodes the body of a request. Fields that the body lacks keep their values. An unknown field is an error: a
// request with "dryrun" in place of "dry_run" must not cancel timers.
func Decode(body []byte, into any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return BadRequest("the request is not understood: %v", err)
	}
	if _, err := d.Token(); err != io.EOF { // d.More would accept a bracket
		return BadRequest("the request is not understood: want one JSON object, and nothing behind it")
	}
	return nil
}
