package operation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
)

// A Use is one use of an operation. Its parameters are set first. Of Look, Plan and Act, a list or a look-up has only
// Look, and a change only the other two.
type Use struct {
	Params []*Param
	// Check checks the parameters together. It sends no request. It may be nil.
	Check func() error
	// Offline reports whether Look needs no connection. It may be nil.
	Offline func() bool
	// Look calls show for each row, until show returns an error.
	Look func(ctx context.Context, d *Desk, show func(row any) error) (End, error)
	// Plan counts what Act would change. It fixes the parameters: see [Use.Values].
	Plan func(ctx context.Context, d *Desk) (Plan, error)
	// Act changes what the parameters select.
	Act func(ctx context.Context, d *Desk) (Result, error)
	// Columns replace the columns of the operation, unless nil.
	Columns []Column
}

// An End is what a list has besides its rows.
type End struct {
	Value any               `json:"end,omitempty"`  // further facts, as JSON
	Notes []string          `json:"notes"`          // for people: counts, gaps
	Next  map[string]string `json:"next,omitempty"` // parameters of the next page, by field; empty on the last page
	At    time.Time         `json:"at,omitzero"`    // of the rows, by the server's clock
	Empty string            `json:"empty"`          // the text for a list without rows
	// Answer is the answer of the service; without it, the answer is the only row.
	Answer any   `json:"-"`
	Exit   error `json:"-"` // the error of a look-up that found nothing; the output says so already
}

// A Plan says what an Act would change.
type Plan struct {
	Count    uint64   `json:"count"` // zero if Act would change nothing
	Sentence string   `json:"sentence"`
	Notes    []string `json:"notes,omitempty"` // about the objects that Act would not change
	Result   Result   `json:"-"`               // what a dry run reports
}

// A Result is what an Act has changed.
type Result struct {
	Sentence string    `json:"sentence"`
	Notes    []string  `json:"notes,omitempty"` // about the objects that were not changed
	Good     bool      `json:"good"`            // everything was changed
	Empty    bool      `json:"-"`               // an object that was named does not exist
	Outcomes []Outcome `json:"-"`               // by count; nil for a change of one object
	Value    any       `json:"value,omitempty"` // all facts, as JSON
	Row      any       `json:"-"`               // a change of one object: its row of the operation's columns; or nil
}

// Exit returns the exit code of the result: that of its worst outcome.
func (r Result) Exit() (code int) {
	if r.Empty {
		return 1
	}
	for _, o := range r.Outcomes {
		code = max(code, exits[o.Outcome])
	}
	return code
}

// An Outcome counts the objects with one outcome and one reason.
type Outcome = inspect.Outcome

// An InvalidError is returned for parameters that cannot be used. Nothing was read or changed.
type InvalidError struct {
	Param    string // the name of the only parameter that is wrong; empty if there are several
	Sentence string
}

func (e *InvalidError) Error() string {
	if e.Param == "" {
		return e.Sentence
	}
	return fieldName(e.Param) + ": " + e.Sentence
}

// StatusCode returns the status of an answer with the error.
func (e *InvalidError) StatusCode() int { return http.StatusBadRequest }

func invalid(format string, args ...any) error { return invalidParam("", format, args...) }

func invalidParam(name, format string, args ...any) error {
	return &InvalidError{Param: name, Sentence: fmt.Sprintf(format, args...)}
}

// showAll shows rows, at most limit; zero means all.
func showAll[T any](rows []T, limit int, show func(row any) error) error {
	for n, row := range rows {
		if limit > 0 && n == limit {
			break
		}
		if err := show(row); err != nil {
			return err
		}
	}
	return nil
}

// Param returns the parameter with a name, or nil.
func (u *Use) Param(name string) *Param {
	for _, p := range u.Params {
		if p.Name == name || fieldName(p.Name) == name {
			return p
		}
	}
	return nil
}

// Fix sets a parameter to a text that the operation itself has made.
func (u *Use) fix(name, text string) {
	p := u.Param(name)
	p.texts = nil
	if err := p.Set(text); err != nil {
		panic("bug: " + name + ": " + err.Error())
	}
}

// Values returns the texts of all parameters that are set, by field.
func (u *Use) Values() map[string][]string {
	values := make(map[string][]string)
	for _, p := range u.Params {
		if p.Given() {
			values[fieldName(p.Name)] = p.texts
		}
	}
	return values
}

// SetValues sets parameters to texts, by field, and checks them together.
func (u *Use) SetValues(values map[string][]string) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		p := u.Param(name)
		if p == nil {
			return invalid("unknown field %q", name)
		}
		for _, text := range values[name] {
			if err := p.Set(text); err != nil {
				return invalidParam(name, "%.100q: %v", text, err)
			}
		}
	}
	return u.Validate()
}

// Validate checks the parameters together. It sends no request.
func (u *Use) Validate() error {
	if u.Check == nil {
		return nil
	}
	return u.Check()
}

// SetJSON sets parameters from a JSON object, and checks them together. An unknown field is an error.
func (u *Use) SetJSON(body []byte) error {
	values, err := parseJSON(body)
	if err != nil {
		return err
	}
	return u.SetValues(values)
}

// parseJSON returns the texts of a JSON object's fields: a text, a number and a boolean stand for themselves, and an
// array for a list.
func parseJSON(body []byte) (map[string][]string, error) {
	values := make(map[string][]string)
	if len(bytes.TrimSpace(body)) == 0 {
		return values, nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil {
		return nil, invalid("the request is not understood: %v", err)
	}
	if _, err := d.Token(); err != io.EOF { // d.More would accept a bracket
		return nil, invalid("the request is not understood: want one JSON object, and nothing after it")
	}
	for name, v := range object {
		items, isList := v.([]any)
		if !isList {
			items = []any{v}
		}
		for _, item := range items {
			switch item.(type) {
			case string, json.Number, bool:
				values[name] = append(values[name], fmt.Sprint(item))
			case nil:
			default:
				return nil, invalid("%s: want a text, a number, true or false, or a list of these", name)
			}
		}
	}
	return values, nil
}

// Line returns the command with the same effect, for a shell. If private is set, it leaves out the values of private
// parameters.
func (o Operation) Line(u *Use, private bool) string {
	line := []string{"delaybroker", cmp.Or(o.Command, o.Name)}
	last := 0 // the number of words
	for n, name := range o.Words {
		if u.Param(name).Given() {
			last = n + 1
		}
	}
	if slices.ContainsFunc(o.Words[:last], func(name string) bool { return !u.Param(name).Given() }) || u.isMany() {
		last = 0
	}
	for _, p := range u.Params {
		if p.Hidden || !p.Given() || slices.Contains(o.Words[:last], p.Name) ||
			p.String() == p.Default && p.Kind != "string" {
			continue
		}
		if p.Kind == "bool" {
			if p.texts[0] == "true" {
				line = append(line, "--"+p.Name)
			}
			continue
		}
		for _, value := range p.texts {
			if p.Body {
				value = "-"
			}
			if key, _, ok := strings.Cut(value, ":"); private && p.Private && ok {
				value = key + ": …"
			}
			line = append(line, "--"+p.Name, text.ShellQuote(value))
		}
	}
	words := o.Words[:last]
	if slices.ContainsFunc(words, func(name string) bool { return strings.HasPrefix(u.Param(name).String(), "-") }) {
		line = append(line, "--")
	}
	for _, name := range words {
		line = append(line, text.ShellQuote(u.Param(name).String()))
	}
	return strings.Join(line, " ")
}

// isMany reports whether the use is about all objects that match.
func (u *Use) isMany() bool {
	all := u.Param("all")
	return all != nil && all.String() == "true"
}
