package page

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/deadletter"
	"delaybroker/broker/doctor"
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/stats"
	"delaybroker/broker/stats/history"
	"delaybroker/broker/streams"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/store"
)

const secret = "0123456789abcdef0123"

// still is an engine that stands still.
type still struct{}

func (still) Status() broker.Status {
	return broker.Status{Lanes: []stats.LaneStatus{
		{Stream: "DELAY_INTAKE", Kind: string(streams.Intake)}, {Stream: "DELAY_RETRY_1s", Kind: string(streams.Retry)},
	}}
}

func (still) Instance() string { return "west" }

func (still) AnswerOf(broker.Status) broker.Answer {
	return broker.Answer{
		Instance: "west", Ready: true, Totals: &stats.Totals{Delivered: 10},
		Lanes: []stats.LaneAnswer{{Stream: "DELAY_INTAKE", Live: true, Pending: 7}},
	}
}

func (still) Targets() []stats.TargetAnswer { return nil }

var errNoNATS = errors.New("there is no NATS here")

// newPage is a page that can ask nobody.
func newPage(a Access) *Page {
	return New(Config{
		Engine: still{}, Checks: func() []stats.Check { return nil }, History: new(history.Book), Access: a,
		Open:       func(context.Context) (*inspect.Inspector, error) { return nil, errNoNATS },
		Durability: new(atomic.Pointer[string]), Version: "v1", Prefix: "delay", Log: slog.New(slog.DiscardHandler),
	})
}

// call sends a request; headers are pairs.
func call(p *Page, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:8422"
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

// A stranger's name that resolves to this host is refused, for all that the page has: DNS rebinding.
func TestOnlyCalledByOwnNames(t *testing.T) {
	t.Parallel()
	p := newPage(Access{OpenRows: true, Hosts: []string{"Delay.example.com"}})
	for host, want := range map[string]int{
		"127.0.0.1:8422": 200, "[::1]:8422": 200, "10.1.2.3": 200, "localhost": 200, "LOCALHOST:1": 200,
		"a.localhost:8422": 200, "delay.example.com": 200, "delay.example.com:443": 200, "delay.example.com.": 200,
		"evil.example": 403, "evil.example:8422": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example": 403,
		"notlocalhost": 403, "": 403, "xdelay.example.com": 403,
	} {
		for _, path := range []string{"/assets/app.js", "/api/access"} {
			if got := call(p, "GET", path, "", "Host", host).Code; got != want {
				t.Errorf("%s called %q: got %d, want %d", path, host, got, want)
			}
		}
	}
}

func TestEveryAnswerProtects(t *testing.T) {
	p := newPage(Access{})
	for _, path := range []string{"/", "/assets/app.js", "/api/access", "/api/pending", "/nothing", "/assets/nothing"} {
		h := call(p, "GET", path, "", "Accept", "text/html").Result().Header
		policy := h.Get("Content-Security-Policy")
		for _, want := range []string{
			"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "trusted-types 'none'",
		} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: the policy %q lacks %s", path, policy, want)
			}
		}
		for _, no := range []string{"unsafe", "http:", "https:", "data:", "*"} {
			if strings.Contains(policy, no) {
				t.Errorf("%s: the policy allows %s", path, no)
			}
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Set-Cookie") != "" {
			t.Errorf("%s: got headers %v", path, h)
		}
	}
}

// Who has no token sees rows only where that is allowed, and acts never.
func TestRowsAndActionsNeedTheirRights(t *testing.T) {
	ann := []Token{{"ann", secret}}
	const rows, plan = "/api/pending", `{"verb":"pause","target":"x"}`
	for _, test := range []struct {
		name      string
		access    Access
		header    string
		rows, act int // 502 is past all gates: there is no NATS
	}{
		{"nothing allowed", Access{}, "", 403, 403},
		{"open rows", Access{OpenRows: true}, "", 502, 403},
		{"a token, and none given", Access{Tokens: ann, Actions: true}, "", 401, 401},
		{"open rows, no token given", Access{Tokens: ann, Actions: true, OpenRows: true}, "", 502, 401},
		{"a wrong token", Access{Tokens: ann, Actions: true}, "Bearer " + secret + "x", 401, 401},
		{"an empty token", Access{Tokens: ann, Actions: true}, "Bearer ", 401, 401},
		{"not as a bearer", Access{Tokens: ann, Actions: true}, secret, 401, 401},
		{"the token", Access{Tokens: ann, Actions: true}, "Bearer " + secret, 502, 502},
		{"the token, actions off", Access{Tokens: ann}, "Bearer " + secret, 502, 403},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := newPage(test.access)
			if got := call(p, "GET", rows, "", "Authorization", test.header).Code; got != test.rows {
				t.Errorf("rows: got %d, want %d", got, test.rows)
			}
			got := call(p, "POST", "/api/plan", plan, "Authorization", test.header, "Content-Type", "application/json").Code
			if got != test.act {
				t.Errorf("plan: got %d, want %d", got, test.act)
			}
		})
	}
}

// Who sees rows sees headers and bodies only where that is allowed too. Findings name targets, and are rows.
func TestBodiesNeedTheirRight(t *testing.T) {
	for _, test := range []struct {
		access            Access
		content, findings int // 502 is past all gates: there is no NATS
	}{
		{Access{}, 403, 403},
		{Access{OpenRows: true}, 403, 200},
		{Access{Bodies: true}, 403, 403},
		{Access{OpenRows: true, Bodies: true}, 502, 200},
		{Access{Tokens: []Token{{"ann", secret}}, Bodies: true}, 401, 401},
	} {
		p := newPage(test.access)
		for path, want := range map[string]int{"/api/content?number=1": test.content, "/api/findings": test.findings} {
			if got := call(p, "GET", path, "").Code; got != want {
				t.Errorf("%+v: %s: got %d, want %d", test.access, path, got, want)
			}
		}
	}
}

// The frame that everybody gets has the numbers of findings and none of their words.
func TestFindingsAreCounted(t *testing.T) {
	now := time.Now()
	found := Findings{Time: now, Findings: []doctor.Finding{
		{Check: "targets", State: doctor.Warn, Detail: "orders.secret"}, {Check: "lanes", State: doctor.Critical},
		{Check: "dead letters", State: doctor.Warn},
	}}
	if got, want := countsOf(found), (counts{Time: now, Critical: 1, Warnings: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// A selection is bounded, and letters are edited one at a time: an edit of many would give all the same body.
func TestActionsAreBounded(t *testing.T) {
	many := action{Verb: "cancel", timerChoice: timerChoice{Timers: make([]timerRef, maxRows+1)}}
	if _, err := planSelected(t.Context(), nil, &many); !errors.Is(err, errAsked) {
		t.Errorf("%d timers: got %v, want %v", maxRows+1, err, errAsked)
	}
	edit := deadletter.Edit{Body: []byte("x")}
	for name, choice := range map[string]letterChoice{
		"a code": {Code: "bad_time", Edit: edit}, "a selection": {Numbers: []uint64{1, 2}, Edit: edit},
	} {
		a := action{Verb: "resend", letterChoice: choice}
		if _, _, err := a.letterWork(new(inspect.Letters), true); !errors.Is(err, errAsked) {
			t.Errorf("an edit of %s: got %v, want %v", name, err, errAsked)
		}
	}
	one := action{Verb: "resend", letterChoice: letterChoice{Number: 1, Edit: edit}}
	if _, line, err := one.letterWork(new(inspect.Letters), true); err != nil ||
		line.String() != "delaybroker dead resend --id 1 --body '-'" {
		t.Errorf("an edit of one letter: got %s, %v", line, err)
	}
}

// Another page in the same browser can send nothing that acts, with or without a proxy before us.
func TestOnlyOwnPageActs(t *testing.T) {
	p := newPage(Access{Tokens: []Token{{"ann", secret}}, Actions: true, Hosts: []string{"ops.example"}})
	for _, test := range []struct {
		headers []string
		want    int
	}{
		{nil, 502}, // curl
		{[]string{"Origin", "http://127.0.0.1:8422"}, 502},
		{[]string{"Origin", "https://ops.example"}, 502},
		{[]string{"Origin", "http://127.0.0.1:8422", "Sec-Fetch-Site", "same-origin"}, 502},
		{[]string{"Origin", "http://127.0.0.1:9999"}, 403},
		{[]string{"Origin", "http://evil.example"}, 403},
		{[]string{"Origin", "null"}, 403},
		{[]string{"Sec-Fetch-Site", "cross-site"}, 403},
		{[]string{"Sec-Fetch-Site", "same-site"}, 403},
		{[]string{"Content-Type", "text/plain"}, 415},
		{[]string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
	} {
		headers := append([]string{"Authorization", "Bearer " + secret, "Content-Type", "application/json"}, test.headers...)
		if got := call(p, "POST", "/api/plan", `{"verb":"pause","target":"x"}`, headers...).Code; got != test.want {
			t.Errorf("%v: got %d, want %d", test.headers, got, test.want)
		}
	}
	for _, path := range []string{"/api/plan", "/api/act"} {
		if got := call(p, "GET", path, "").Code; got != 405 {
			t.Errorf("GET %s: got %d, want 405", path, got)
		}
	}
}

// A plan is acted on only as it was made, by who made it, and for a while.
func TestTicketHolds(t *testing.T) {
	now := time.Now()
	ann, bob := Token{"ann", secret}, Token{"bob", secret + "b"}
	all := timerChoice{All: true}
	d := action{
		Verb: "cancel", Target: "orders.>", timerChoice: all, fixed: fixed{UpTo: 7, Count: 3, Until: now.Add(planTime)},
	}
	ticket, err := seal(d, ann)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := unseal(ticket, ann, now); err != nil || got.Target != d.Target || got.UpTo != d.UpTo {
		t.Errorf("got %+v, %v", got, err)
	}
	other, err := seal(action{Verb: "cancel", Target: ">", timerChoice: all, fixed: fixed{Until: d.Until}}, bob)
	if err != nil {
		t.Fatal(err)
	}
	forged, _, _ := strings.Cut(other, ".")
	_, sum, _ := strings.Cut(ticket, ".")
	for name, open := range map[string]func() (action, error){
		"by another":    func() (action, error) { return unseal(ticket, bob, now) },
		"too late":      func() (action, error) { return unseal(ticket, ann, now.Add(planTime+1)) },
		"another plan":  func() (action, error) { return unseal(forged+"."+sum, ann, now) },
		"no seal":       func() (action, error) { return unseal(forged+".", ann, now) },
		"nothing":       func() (action, error) { return unseal("", ann, now) },
		"not one of us": func() (action, error) { return unseal("%%.%%", ann, now) },
	} {
		if _, err := open(); !errors.Is(err, errTicket) {
			t.Errorf("%s: got %v, want %v", name, err, errTicket)
		}
	}
}

// The log says which headers of a letter were edited, and not how: values are for those who may see bodies.
func TestLogHasNoValues(t *testing.T) {
	ann := Token{"ann", secret}
	p := newPage(Access{Tokens: []Token{ann}, Actions: true})
	var log strings.Builder
	p.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	a := action{Verb: "resend", fixed: fixed{Until: time.Now().Add(planTime)}}
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
	if said := log.String(); !strings.Contains(said, "--header 'Authorization: …'") ||
		strings.Contains(said, "Basic") || strings.Contains(said, "plain") {
		t.Errorf("got %s", said)
	}
}

// What a client sends cannot fix what a plan fixes, and a word that is misspelt is an error.
func TestRequestsAreReadStrictly(t *testing.T) {
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

func TestTextWithoutHTML(t *testing.T) {
	p := newPage(Access{})
	w := call(p, "GET", "/", "", "Accept", "*/*")
	if got := w.Header().Get("Content-Type"); got != "text/plain; charset=utf-8" {
		t.Errorf("content type: got %s", got)
	}
	for _, want := range []string{
		"delaybroker v1: ready\n", "pending          7\n", "west      older    ready, this one", errNoNATS.Error(),
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, w.Body)
		}
	}
	html := call(p, "GET", "/", "", "Accept", "text/html,application/xhtml+xml")
	if got := html.Header().Get("Content-Type"); got != "text/html; charset=utf-8" {
		t.Errorf("content type: got %s", got)
	}
	tag := html.Header().Get("ETag")
	again := call(p, "GET", "/", "", "Accept", "text/html", "If-None-Match", tag)
	if again.Code != http.StatusNotModified {
		t.Errorf("with its tag: got %d, want 304", again.Code)
	}
}

// No file names a host, an absolute path or a script inside HTML: it has to work below any path, and without a net.
func TestAssetsAreOurs(t *testing.T) {
	for name, f := range embedded() {
		text := string(f.data)
		if f.kind == "" {
			t.Errorf("%s has no type", name)
		}
		if strings.HasPrefix(name, "uPlot") || strings.HasPrefix(name, "preact") {
			continue
		}
		for _, no := range []string{
			"https:" + "//", "innerHTML", "insertAdjacent", "document.write", "eval(", "Function(", "cookie =", `href="/`,
			`src="/`, `fetch("/`, "onclick=", "style=",
		} {
			if strings.Contains(text, no) {
				t.Errorf("%s has %s", name, no)
			}
		}
		if strings.Contains(strings.ReplaceAll(text, `xmlns="http://www.w3.org/2000/svg"`, ""), "http://") {
			t.Errorf("%s names a host", name)
		}
	}
	// doc.go names the versions of what is vendored; a change of the files has to be one of the version too.
	for name, want := range map[string]string{
		"uPlot.iife.min.js": "19c8d4c6ad88929a", "uPlot.min.css": "df630c6a8d6f8eea", "preact.mjs": "bdcbd9abdf2c77c5",
	} {
		if sum := sha256.Sum256(embedded()[name].data); hex.EncodeToString(sum[:8]) != want {
			t.Errorf("%s is another version: %x", name, sum[:8])
		}
	}
	for _, name := range []string{"uPlot.LICENSE", "preact.LICENSE"} {
		if len(embedded()[name].data) == 0 {
			t.Errorf("there is no %s", name)
		}
	}
}

func TestQuestionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(Access{OpenRows: true})
		for range maxQuestions {
			p.questions <- struct{}{}
		}
		began := time.Now()
		w := call(p, "GET", "/api/timers", "")
		if w.Code != 503 || time.Since(began) != waitTime {
			t.Errorf("got %d after %v, want 503 after %v", w.Code, time.Since(began), waitTime)
		}
	})
}

// Words of strangers are words in a shell, too.
func TestShellQuotes(t *testing.T) {
	for word, want := range map[string]string{
		"orders.expire": "orders.expire", "orders.>": "'orders.>'", "": "''", "--all": "'--all'",
		"$(rm -rf ~)": "'$(rm -rf ~)'", "it's": `'it'\''s'`, "a;b": "'a;b'", "a`b`": "'a`b`'", "a\nb": "'a·b'", "é": "'é'",
	} {
		if got := quoted(word); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
	}
}

// The same outcomes are told in the same words, in the same order.
func TestOutcomesInOrder(t *testing.T) {
	all := store.Done{Matched: 11, Outcomes: map[timer.Outcome]int{
		timer.Cancelled: 5, timer.TooLate: 1, timer.NotFound: 2, timer.Conflict: 2, timer.Unknown: 1,
	}}
	want := result{
		Sentence: "5 of 11 timers cancelled", Notes: []string{"2 conflict", "2 not_found", "1 too_late", "1 unknown"},
	}
	for range 20 {
		if got := manyDone(action{Verb: "cancel", fixed: fixed{Count: 11}}, all, nil); !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	}
}

// The lines of the form are those of the README.
func TestLinesHaveTheirPlaces(t *testing.T) {
	for _, l := range Lines() {
		if strings.Count(l.Line, "SUBJECT") != 1 || strings.Count(l.Line, "BODY") != 1 {
			t.Errorf("%s: %s", l.Language, l.Line)
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
