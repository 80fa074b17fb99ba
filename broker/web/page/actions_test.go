package page

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"delaybroker/broker/deadletter"
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/store"
)

// TestInvalidActions: a selection has at most maxRows timers, and only a single letter can be edited. An edit of
// several letters would give them the same body.
func TestInvalidActions(t *testing.T) {
	many := action{Verb: "cancel", timerChoice: timerChoice{Timers: make([]timerRef, maxRows+1)}}
	if _, err := planSelected(t.Context(), nil, &many); !errors.Is(err, errRequest) {
		t.Errorf("%d timers: got %v, want %v", maxRows+1, err, errRequest)
	}
	edit := deadletter.Edit{Body: []byte("x")}
	for name, choice := range map[string]letterChoice{
		"a code": {Code: "bad_time", Edit: edit}, "a selection": {Numbers: []uint64{1, 2}, Edit: edit},
	} {
		a := action{Verb: "resend", letterChoice: choice}
		if _, _, err := a.letterWork(new(inspect.Letters), true); !errors.Is(err, errRequest) {
			t.Errorf("an edit of %s: got %v, want %v", name, err, errRequest)
		}
	}
	one := action{Verb: "resend", letterChoice: letterChoice{Number: 1, Edit: edit}}
	if _, line, err := one.letterWork(new(inspect.Letters), true); err != nil ||
		line.String() != "delaybroker dead resend --id 1 --body '-'" {
		t.Errorf("an edit of one letter: got %s, %v", line, err)
	}
}

// TestTicketHolds: a ticket is valid only unchanged, with the token of the plan, and for planLifetime.
func TestTicketHolds(t *testing.T) {
	now := time.Now()
	ann, bob := Token{"ann", secret}, Token{"bob", secret + "b"}
	all := timerChoice{All: true}
	d := action{
		Verb: "cancel", Target: "orders.>", timerChoice: all,
		planData: planData{UpTo: 7, Count: 3, Expiry: now.Add(planLifetime)},
	}
	ticket, err := seal(d, ann)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := unseal(ticket, ann, now); err != nil || got.Target != d.Target || got.UpTo != d.UpTo {
		t.Errorf("got %+v, %v", got, err)
	}
	other, err := seal(action{Verb: "cancel", Target: ">", timerChoice: all, planData: planData{Expiry: d.Expiry}}, bob)
	if err != nil {
		t.Fatal(err)
	}
	forged, _, _ := strings.Cut(other, ".")
	_, sum, _ := strings.Cut(ticket, ".")
	for name, open := range map[string]func() (action, error){
		"another token": func() (action, error) { return unseal(ticket, bob, now) },
		"expired":       func() (action, error) { return unseal(ticket, ann, now.Add(planLifetime+1)) },
		"another plan":  func() (action, error) { return unseal(forged+"."+sum, ann, now) },
		"no seal":       func() (action, error) { return unseal(forged+".", ann, now) },
		"empty":         func() (action, error) { return unseal("", ann, now) },
		"not base64":    func() (action, error) { return unseal("%%.%%", ann, now) },
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
	a := action{Verb: "resend", planData: planData{Expiry: time.Now().Add(planLifetime)}}
	a.Number, a.Edit.Set = 1, message.Header{"Authorization": {"Basic it's", "plain"}, "X": {""}}
	_, line, err := a.letterWork(&inspect.Letters{}, true)
	if err != nil {
		t.Fatal(err)
	}
	a.Shell = line.String()
	ticket, err := seal(a, ann)
	if err != nil {
		t.Fatal(err)
	}
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
		`{"verb":"cancel","targt":"x"}`:       "unknown field",
		`{"verb":"cancel"} {"verb":"cancel"}`: "one JSON object",
		`[]`:                                  "invalid request",
		``:                                    "invalid request",
		`{"verb":"` + strings.Repeat("x", maxRequest) + `"}`: "too large",
	} {
		w := call(p, "POST", "/api/plan", body, "Authorization", "Bearer "+secret, "Content-Type", "application/json")
		if w.Code != 400 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%.40s: got %d %s, want 400 and %q", body, w.Code, w.Body, want)
		}
	}
}

// TestBulkResult: the notes have a constant order.
func TestBulkResult(t *testing.T) {
	all := store.BulkResult{Matched: 11, Outcomes: map[timer.Outcome]int{
		timer.Cancelled: 5, timer.TooLate: 1, timer.NotFound: 2, timer.Conflict: 2, timer.Unknown: 1,
	}}
	want := result{
		Sentence: "5 of 11 timers cancelled", Notes: []string{"2 conflict", "2 not_found", "1 too_late", "1 unknown"},
	}
	for range 20 {
		if got := bulkResult(action{Verb: "cancel", planData: planData{Count: 11}}, all, nil); !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	}
}

func Example_shell() {
	fmt.Println(shell{"timers", "cancel"}.flag("--target", "").words("order-42", "orders.expire"))
	fmt.Println(shell{"timers", "cancel"}.flag("--generation", "7").words("-h", "orders.expire"))
	// Output:
	// delaybroker timers cancel order-42 orders.expire
	// delaybroker timers cancel --generation 7 -- '-h' orders.expire
}
