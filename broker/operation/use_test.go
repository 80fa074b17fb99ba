package operation

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

func ExampleOperation_Line() {
	for _, use := range []struct{ name, body string }{
		{"timers cancel", `{"key":"order-42","target":"orders.expire"}`},
		{"timers cancel", `{"generation":7,"key":"-h","target":"orders.expire"}`},
		{"timers cancel", `{"all":true,"target":"orders.>","once":true}`},
		{"dead resend", `{"id":[1,2],"header":["A: it's"],"body":"long","now":true}`},
	} {
		o, _ := Find(use.name)
		u := o.New(Bounds{})
		if err := u.SetJSON([]byte(use.body)); err != nil {
			fmt.Println(err)
		}
		fmt.Println(o.Line(u, true))
	}
	// Output:
	// delaybroker timers cancel order-42 orders.expire
	// delaybroker timers cancel --generation 7 -- '-h' orders.expire
	// delaybroker timers cancel --target 'orders.>' --once --all
	// delaybroker dead resend --id 1 --id 2 --now --header 'A: …' --body '-'
}

// TestInvalidParameters: each wrong parameter is an error that names it, and has the status of an invalid request.
func TestInvalidParameters(t *testing.T) {
	for _, test := range []struct{ name, body, want string }{
		{"dead rm", `{}`, "want --code"},
		{"dead rm", `{"all":true,"code":"expired"}`, "--all excludes"},
		{"dead rm", `{"cod":"expired"}`, `unknown field "cod"`},
		{"dead rm", `{"id":{"x":1}}`, "id: want a text"},
		{"dead rm", `{"id":1} {}`, "nothing after it"},
		{"dead ls", `{"since":"1h","until":"2h"}`, "--since is not before --until"},
		{"dead ls", `{"code":"lost"}`, "code: \"lost\""},
		{"timers move", `{"key":"k","target":"t","in":"1m","by":"1m"}`, "want one of in, at and by; got 2"},
		{"timers move", `{"all":true,"target":"t","in":"1m"}`, "--all needs --by"},
		{"timers cancel", `{"key":"k","target":"t","generation":1,"series":2}`, "exclude each other"},
		{"timers cancel", `{"key":"k","target":"t","once":true}`, "need --all"},
		{"timers cancel", `{"all":1,"target":"orders.>"}`, "all: \"1\": want true or false"},
		{"timers ls", `{"due_before":"tomorrow"}`, "due_before: "},
		{"ahead", `{"for":"25h","by":"minute"}`, "at most 1d"},
		{"pause", `{"pattern":"a..b"}`, "pattern: "},
		{"where", `{}`, "want the Delay-Id"},
	} {
		o, ok := Find(test.name)
		if !ok {
			t.Fatalf("there is no operation %s", test.name)
		}
		err := o.New(Bounds{}).SetJSON([]byte(test.body))
		wrong, isInvalid := errors.AsType[*InvalidError](err)
		if !isInvalid || wrong.StatusCode() != http.StatusBadRequest || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %s: got %v, want %q", test.name, test.body, err, test.want)
		}
	}
}

// TestRequestSelectsOnlyByItsSubject: the subject of a request is the right to make it. So a body that selects other
// timers is refused: with "all", a request to cancel one timer would cancel those of other tenants.
func TestRequestSelectsOnlyByItsSubject(t *testing.T) {
	one := func(p *Param) bool { return p.Selects }
	many := func(p *Param) bool { return p.Single || p.Name == "prefix" || p.Name == "all" }
	for _, test := range []struct {
		name, field string
		denied      func(*Param) bool
	}{
		{"timers cancel", "all", one}, {"timers cancel", "key", one}, {"timers move", "target", one},
		{"timers cancel", "up_to", one}, {"timers cancel", "limit", one}, {"schedules pause", "name", one},
		{"timers cancel", "prefix", many}, {"timers cancel", "all", many}, {"timers move", "generation", many},
		{"timers ls", "prefix", many}, {"timers ls", "dry_run", many},
	} {
		o, _ := Find(test.name)
		if _, err := o.New(requestBounds).bodyOf(fmt.Appendf(nil, `{%q:true}`, test.field), test.denied); err == nil {
			t.Errorf("%s accepts %s in a body", test.name, test.field)
		}
	}
}

// TestPlansFixParameters: the values of a use, set in another use, make the same line.
func TestPlansFixParameters(t *testing.T) {
	o, _ := Find("timers cancel")
	u := o.New(Bounds{})
	if err := u.SetJSON([]byte(`{"all":true,"target":"orders.>","due_before":"10m"}`)); err != nil {
		t.Fatal(err)
	}
	u.fix("due-before", "2026-12-24T18:00:00Z")
	u.fix("up-to", "7")
	again := o.New(Bounds{})
	if err := again.SetValues(u.Values()); err != nil {
		t.Fatal(err)
	}
	if got, want := o.Line(again, false), o.Line(u, false); got != want || again.Param("up-to").String() != "7" {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestProtocolHasEachField: the table of the requests names each field that a request may have.
func TestProtocolHasEachField(t *testing.T) {
	protocol, err := os.ReadFile("../message/PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(protocol), "| request | JSON body")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, o := range All {
		if o.Message || o.Endpoint+o.ManyEndpoint+o.Call == "" {
			continue
		}
		for _, p := range o.New(requestBounds).Params {
			isName := slices.Contains(o.Words, p.Name) || p.Name == "all" || p.Name == "prefix" // in the subject
			if !isName && !strings.Contains(table, "`"+p.FieldName()+"`") {
				t.Errorf("PROTOCOL.md does not name the field %s of %s", p.FieldName(), o.Name)
			}
		}
	}
}

// TestOperationsAreComplete: each change has its button and its participle, each action exists, and each column names
// its field.
func TestOperationsAreComplete(t *testing.T) {
	for _, o := range All {
		u := o.New(Bounds{})
		if u.Act != nil && u.Plan != nil && (o.Label == "" || o.Done == "") || (u.Look == nil) == (u.Act == nil) {
			t.Errorf("%s lacks its label or its function", o.Name)
		}
		if o.Loses && !o.Final {
			t.Errorf("%s loses data, and the command does not ask before it acts", o.Name)
		}
		for _, a := range o.Actions {
			if change, ok := Find(a.Operation); !ok || change.New(Bounds{}).Plan == nil {
				t.Errorf("%s offers %s, which is no change", o.Name, a.Operation)
			}
		}
		for _, name := range o.Words {
			if u.Param(name) == nil {
				t.Errorf("%s has no parameter %s", o.Name, name)
			}
		}
	}
}
