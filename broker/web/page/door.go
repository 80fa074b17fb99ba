package page

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"delaybroker/broker/inspect"
	"delaybroker/broker/operation"
	"delaybroker/broker/text"
)

// This file is the page's door to package operation.

// bounds are the limits of the operations on the page.
var bounds = operation.Bounds{Rows: defaultRows, MaxRows: maxRows, Read: maxRead, MaxRead: maxRead}

const (
	// defaultRows is the default number of rows in a table, and maxRows the maximum.
	defaultRows, maxRows = 50, 200
	// maxRead is the maximum number of messages whose headers a question reads.
	maxRead = 100_000
	// maxNotes is the maximum number of notes about selected objects.
	maxNotes = 20
)

// field is a field of a form.
type field struct {
	Name    string   `json:"name"`
	Label   string   `json:"label"`
	Hint    string   `json:"hint,omitempty"`
	Kind    string   `json:"kind"`
	Choices []string `json:"choices,omitempty"`
	Default string   `json:"default,omitempty"`
	Help    string   `json:"help"`
}

// description is an operation as the scripts know it.
type description struct {
	Name    string             `json:"name"`
	Label   string             `json:"label,omitempty"`
	Noun    string             `json:"noun"`
	Loses   bool               `json:"loses"`
	Facts   bool               `json:"facts"`
	Fields  []field            `json:"fields"`
	Actions []operation.Action `json:"actions"`
}

// operations responds with the descriptions of all operations.
func (p *Page) operations(w http.ResponseWriter, _ *http.Request) {
	var all []description
	for _, o := range operation.All {
		d := description{o.Name, o.Label, o.Noun, o.Loses, o.Facts, []field{}, append([]operation.Action{}, o.Actions...)}
		for _, param := range o.New(bounds).Params {
			if param.Field {
				d.Fields = append(d.Fields, field{
					param.FieldName(), strings.ReplaceAll(param.Name, "-", " "), param.Hint, param.Kind, param.Choices,
					param.Default, param.Help,
				})
			}
		}
		all = append(all, d)
	}
	writeJSON(w, http.StatusOK, all)
}

func (p *Page) desk(i *inspect.Inspector) *operation.Desk {
	return &operation.Desk{Inspector: i, Timers: i.Timers(), Brief: true, HideContent: true}
}

// looked is the answer of a list or a look-up.
type looked struct {
	Shell   string             `json:"shell"` // the equivalent command
	Columns []operation.Column `json:"columns"`
	Rows    []any              `json:"rows"`
	operation.End
}

// look answers a question with the rows of an operation.
func (p *Page) look(w http.ResponseWriter, r *http.Request) {
	o, ok := operation.Find(r.PathValue("name"))
	if !ok || o.New(bounds).Look == nil {
		writeError(w, http.StatusNotFound, "there is no such list: load the page again")
		return
	}
	p.ask(func(ctx context.Context, i *inspect.Inspector, v url.Values) (any, error) {
		return p.lookAt(ctx, i, o, v)
	})(w, r)
}

func (p *Page) lookAt(ctx context.Context, i *inspect.Inspector, o operation.Operation, v url.Values) (looked, error) {
	u := o.New(bounds)
	answer := looked{Columns: o.Columns, Rows: []any{}}
	if err := u.SetValues(v); err != nil {
		return answer, err
	}
	answer.Shell = o.Line(u, false)
	var err error
	answer.End, err = u.Look(ctx, p.desk(i), func(row any) error {
		answer.Rows = append(answer.Rows, row)
		return nil
	})
	if u.Columns != nil {
		answer.Columns = u.Columns
	}
	if answer.At.IsZero() {
		answer.At = time.Now().UTC()
	}
	return answer, err
}

// A plan describes the effect of a change before the execution.
type plan struct {
	operation.Plan
	Shell  string `json:"shell"`
	Ticket string `json:"ticket,omitempty"` // the sealed change; empty if it would change nothing
}

// planChange plans the change of a request, item by item.
func (p *Page) planChange(w http.ResponseWriter, r *http.Request, token Token) {
	var request struct {
		Operation string            `json:"operation"`
		Items     []json.RawMessage `json:"items"`
	}
	if !decode(w, r, &request) {
		return
	}
	o, ok := operation.Find(request.Operation)
	switch {
	case !ok || o.New(bounds).Plan == nil:
		writeError(w, http.StatusBadRequest, fmt.Sprintf("unknown operation %.40q", request.Operation))
		return
	case len(request.Items) == 0 || len(request.Items) > maxRows:
		writeError(w, http.StatusBadRequest, fmt.Sprintf("select 1 to %d objects", maxRows))
		return
	}
	p.withSession(w, r, questionTimeout, func(ctx context.Context, i *inspect.Inspector) (any, error) {
		c := plannedChange{Operation: o.Name}
		var shown plan
		var lines, logged []string
		for _, item := range request.Items {
			u := o.New(bounds)
			if err := u.SetJSON(item); err != nil {
				return nil, err
			}
			planned, err := u.Plan(ctx, p.desk(i))
			if err != nil {
				return nil, err
			}
			if shown.Sentence = planned.Sentence; len(request.Items) > 1 && planned.Count == 0 {
				shown.addNote(planned.Sentence)
			}
			for _, note := range planned.Notes {
				shown.addNote(note)
			}
			if planned.Count == 0 {
				continue
			}
			c.Items, c.Count = append(c.Items, u.Values()), c.Count+planned.Count
			lines, logged = append(lines, o.Line(u, false)), append(logged, o.Line(u, true))
		}
		if len(request.Items) > 1 {
			shown.Sentence = strings.ToLower(o.Label) + " " + english.Plural(int(c.Count), o.Noun, "")
		}
		shown.Count, shown.Shell = c.Count, strings.Join(lines, "\n")
		if c.Count == 0 {
			return shown, nil
		}
		c.Expiry, c.Line = time.Now().Add(planLifetime), strings.Join(logged, "\n")
		for _, item := range c.Items {
			if u := o.New(bounds); u.Param("word") != nil { // a second execution of the ticket has no effect
				item["word"] = []string{rand.Text()}
			}
		}
		shown.Ticket = seal(c, token)
		return shown, nil
	})
}

func (p *plan) addNote(sentence string) {
	if len(p.Notes) < maxNotes {
		p.Notes = append(p.Notes, text.Sentence(sentence))
	}
}

// act executes the change of the ticket in the request.
func (p *Page) act(w http.ResponseWriter, r *http.Request, token Token) {
	var request struct {
		Ticket string `json:"ticket"`
	}
	if !decode(w, r, &request) {
		return
	}
	c, err := unseal(request.Ticket, token, time.Now())
	o, ok := operation.Find(c.Operation)
	if err != nil || !ok {
		writeError(w, http.StatusConflict, errTicket.Error())
		return
	}
	log := p.cfg.Log.With("who", token.Name, "from", clientAddress(r), "operation", o.Name, "does", c.Line,
		"planned", c.Count)
	log.Info("the page executes an action")
	// If the client disconnects, the change continues, so that the plan is not executed in part.
	r = r.WithContext(context.WithoutCancel(r.Context()))
	p.withSession(w, r, actionTimeout, func(ctx context.Context, i *inspect.Inspector) (any, error) {
		done, err := p.execute(ctx, i, o, c)
		log.Info("the page executed an action", "did", done.Sentence, "err", err)
		p.refresh()
		return done, err
	})
}

// execute carries out a change item by item. It stops at the first error. After a change of at least one object, an
// error is only in the notes of the result.
func (p *Page) execute(
	ctx context.Context, i *inspect.Inspector, o operation.Operation, c plannedChange,
) (done operation.Result, err error) {
	good := 0
	for _, item := range c.Items {
		u := o.New(bounds)
		if err := u.SetValues(item); err != nil {
			return done, err
		}
		r, err := u.Act(ctx, p.desk(i))
		if err != nil && good == 0 && r.Sentence == "" {
			return done, err
		}
		switch {
		case len(c.Items) == 1:
			done = r
		case !r.Good && len(done.Notes) < maxNotes:
			done.Notes = append(done.Notes, text.Sentence(r.Sentence))
		}
		if r.Good {
			good++
		}
		if err != nil {
			done.Good = false
			done.Notes = append(done.Notes, text.Sentence("stopped by an error: "+err.Error()))
			break
		}
	}
	if len(c.Items) > 1 {
		done.Good = good == len(c.Items)
		done.Sentence = fmt.Sprintf("%d of %s %s", good, english.Plural(len(c.Items), o.Noun, ""), o.Done)
	}
	return done, nil
}
