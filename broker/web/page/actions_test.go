package page

import (
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"delaybroker/broker/operation"
)

// TestTicketHolds: a ticket is valid only unchanged, with the token of the plan, and for planLifetime.
func TestTicketHolds(t *testing.T) {
	now := time.Now()
	ann, bob := Token{"ann", secret}, Token{"bob", secret + "b"}
	items := func(target string) []map[string][]string { return []map[string][]string{{"target": {target}}} }
	d := plannedChange{Operation: "timers cancel", Items: items("orders.>"), Count: 3, Expiry: now.Add(planLifetime)}
	ticket := seal(d, ann)
	if got, err := unseal(ticket, ann, now); err != nil || !reflect.DeepEqual(got.Items, d.Items) || got.Count != d.Count {
		t.Errorf("got %+v, %v", got, err)
	}
	other := seal(plannedChange{Operation: "timers cancel", Items: items(">"), Expiry: d.Expiry}, bob)
	forged, _, _ := strings.Cut(other, ".")
	_, sum, _ := strings.Cut(ticket, ".")
	for name, open := range map[string]func() (plannedChange, error){
		"another token": func() (plannedChange, error) { return unseal(ticket, bob, now) },
		"expired":       func() (plannedChange, error) { return unseal(ticket, ann, now.Add(planLifetime+1)) },
		"another plan":  func() (plannedChange, error) { return unseal(forged+"."+sum, ann, now) },
		"no seal":       func() (plannedChange, error) { return unseal(forged+".", ann, now) },
		"empty":         func() (plannedChange, error) { return unseal("", ann, now) },
		"not base64":    func() (plannedChange, error) { return unseal("%%.%%", ann, now) },
	} {
		if _, err := open(); !errors.Is(err, errTicket) {
			t.Errorf("%s: got %v, want %v", name, err, errTicket)
		}
	}
}

// TestLogWithoutHeaderValues: the log has the names of edited headers, but not the values. A reader of the log may not
// have the right to see bodies.
func TestLogWithoutHeaderValues(t *testing.T) {
	ann := Token{"ann", secret}
	p := newPage(Access{Tokens: []Token{ann}, Actions: true})
	var log strings.Builder
	p.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	o, _ := operation.Find("dead resend")
	u := o.New(bounds)
	values := map[string][]string{"id": {"1"}, "header": {"Authorization: Basic it's", "Authorization: plain", "X: "}}
	if err := u.SetValues(values); err != nil {
		t.Fatal(err)
	}
	a := plannedChange{
		Operation: o.Name, Items: []map[string][]string{values}, Expiry: time.Now().Add(planLifetime), Line: o.Line(u, true),
	}
	ticket := seal(a, ann)
	call(p, "POST", "/api/act", `{"ticket":"`+ticket+`"}`, "Authorization", "Bearer "+secret,
		"Content-Type", "application/json")
	if text := log.String(); !strings.Contains(text, "--header 'Authorization: …'") ||
		strings.Contains(text, "Basic") || strings.Contains(text, "plain") {
		t.Errorf("got the log %s", text)
	}
}

// TestInvalidRequests: an unknown field, a second object, an empty body and a large body are errors.
func TestInvalidRequests(t *testing.T) {
	p := newPage(Access{Tokens: []Token{{"ann", secret}}, Actions: true})
	for body, want := range map[string]string{
		`{"operation":"dead rm","item":[{}]}`:             "unknown field",
		`{"operation":"dead rm"} {"operation":"dead rm"}`: "one JSON object",
		`[]`: "invalid request", ``: "invalid request",
		`{"operation":"dead ls","items":[{}]}`:                    "unknown operation",
		`{"operation":"dead rm","items":[]}`:                      "select 1 to 200 objects",
		`{"operation":"` + strings.Repeat("x", maxRequest) + `"}`: "too large",
	} {
		w := call(p, "POST", "/api/plan", body, "Authorization", "Bearer "+secret, "Content-Type", "application/json")
		if w.Code != 400 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%.40s: got %d %s, want 400 and %q", body, w.Code, w.Body, want)
		}
	}
}
