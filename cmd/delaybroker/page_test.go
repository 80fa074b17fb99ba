package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/web/page"
	"delaybroker/test/natstest"
)

const pageToken = "0123456789abcdef0123"

// servePage runs the program with timers and a page that acts for the token, until the test ends. It returns the log
// line that says that the program is ready, and the address of the page.
func servePage(t *testing.T) (r *running, ready map[string]any, address string) {
	t.Helper()
	t.Setenv("DELAY_TIMERS", "on")
	t.Setenv("DELAY_HTTP_ACTIONS", "on")
	t.Setenv("DELAY_HTTP_TOKEN", "ann:"+pageToken)
	r = start(t)
	t.Cleanup(func() { r.stop(t) })
	ready = r.log.await(t, "ready")
	return r, ready, fmt.Sprint("http://", ready["http"])
}

// The program serves the page beside its probes: text for curl, and actions with the token.
func TestServePage(t *testing.T) {
	natstest.Long(t)
	if apart(t) {
		return
	}
	embeddedEnv(t)
	t.Setenv("DELAY_LEVELS", "1s 1h")
	r, ready, address := servePage(t)
	if got, want := ready["page"], address+"/"; got != want {
		t.Errorf("page: got %v, want %s", got, want)
	}
	wantBody(t, ready["http"], "/", "delaybroker ", ": ready\n", "fsync every 1s", "idle lanes")
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/status", "/metrics"} {
		wantProbe(t, ready["http"], path, 200)
		res, err := http.Post(address+path, "application/json", nil)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: got %d, want 405", path, res.StatusCode)
		}
	}
	_, js := connect(t, ready["server"].(string))
	publish(t, js, "delay.1h.orders.x", "{}") // a message on its way to another lane may not be counted
	var plan struct{ Sentence, Ticket, Shell string }
	post(t, address+"/api/plan", `{"verb":"pause","target":"orders.>"}`, &plan)
	if plan.Sentence != "pause orders.>: 1 message now pending, and all later ones, will wait when due" {
		t.Errorf("got %q", plan.Sentence)
	}
	var done struct {
		Sentence string
		Good     bool
	}
	post(t, address+"/api/act", `{"ticket":"`+plan.Ticket+`"}`, &done)
	if !done.Good || done.Sentence != "orders.> is paused; confirmed by 1 of 1 instance" {
		t.Errorf("got %+v", done)
	}
	line := r.log.await(t, "the page executed an action")
	if line["who"] != "ann" || line["does"] != "delaybroker pause 'orders.>'" {
		t.Errorf("the log has %v", line)
	}
	if strings.Contains(r.log.String(), pageToken) {
		t.Error("the log has the token")
	}
}

// The page acts on schedules in nats-server's format by their names, as on other timers: it does what it has planned.
func TestPageActsOnServerSchedules(t *testing.T) {
	embeddedEnv(t)
	t.Setenv("DELAY_SCHEDULES", "schedules.>=orders.>")
	_, ready, address := servePage(t)
	_, js := connect(t, ready["server"].(string))
	in := jetstream.WithScheduleAt(time.Now().Add(time.Hour))
	for name, when := range map[string]jetstream.PublishOpt{
		"a": in, "b": in, "c": in, "-h": in, "every": jetstream.WithScheduleEvery(time.Hour),
	} {
		to := jetstream.WithScheduleTarget("orders.x")
		if _, err := js.Publish(t.Context(), "schedules."+name, nil, when, to); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ verb, about, plan, done string }{
		{"move", `"key":"_schedule.schedules.a","target":"orders.x","by":"+5m"`, "1 timer: _schedule.sch", "moved: "},
		{"fire", `"key":"_schedule.schedules.a","target":"orders.x"`, "1 timer: _schedule.schedules.a to orders.x", "fired"},
		{"cancel", `"key":"_schedule.schedules.-h","target":"orders.x"`, "1 timer: _schedule.", "cancelled: "},
		{"pause", `"key":"_schedule.schedules.every","target":"orders.x"`, "1 timer: _schedule", "paused: "},
		{"resume", `"key":"_schedule.schedules.every","target":"orders.x"`, "1 timer: _sched", "resumed: "},
		{"move", `"all":true,"target":"orders.>","by":"+5m"`, "3 timers", "3 of 3 timers moved"},
		{"cancel", `"all":true,"target":"orders.>"`, "3 timers", "3 of 3 timers cancelled"},
	} {
		var plan struct{ Sentence, Ticket string }
		post(t, address+"/api/plan", `{"verb":"`+tt.verb+`",`+tt.about+`}`, &plan)
		var done struct {
			Sentence string
			Good     bool
		}
		post(t, address+"/api/act", `{"ticket":"`+plan.Ticket+`"}`, &done)
		planned := strings.HasPrefix(plan.Sentence, tt.verb+" "+tt.plan)
		if !planned || !strings.HasPrefix(done.Sentence, tt.done) || !done.Good {
			t.Errorf("%s %s: it plans %q, and does %+v; want %q, and %q", tt.verb, tt.about, plan.Sentence, done, tt.plan,
				tt.done)
		}
	}
}

func post(t *testing.T, url, body string, into any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+pageToken)
	request.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 || json.Unmarshal(text, into) != nil {
		t.Fatalf("%s: got %d %s, %v", url, res.StatusCode, text, err)
	}
}

// Every command line that the page shows has commands, arguments and flags of the program.
func TestPageShowsRealVerbs(t *testing.T) {
	source, err := os.ReadFile("../../broker/web/page/testdata/lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(source)) {
		words := strings.Fields(strings.ReplaceAll(strings.TrimSpace(line), "'", ""))
		root := new(app).rootCommand()
		found, rest, err := root.Find(words[1:])
		if err == nil {
			found.InheritedFlags() // adds those of the root
			err = found.ParseFlags(rest)
		}
		if err == nil {
			err = found.ValidateArgs(found.Flags().Args())
		}
		if err != nil || found == root {
			t.Errorf("%s: %v", strings.TrimSpace(line), err)
		}
		lines++
	}
	if lines < 15 {
		t.Errorf("there are %d lines", lines)
	}
}

// The command lines of the page's form are those of the README.
func TestPageShowsTheReadmesLines(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"Go": "publish.go", "JavaScript": "publish.mjs", "Python": "publish.py", "Rust": "publish.rs",
		"NATS CLI": "publish.sh",
	}
	for _, l := range page.Lines() {
		line := strings.NewReplacer("SUBJECT", "delay.5s.orders.expire", "BODY", `{"id":42}`).Replace(l.Line)
		run, err := os.ReadFile("../../test/clients/snippets/" + files[l.Language])
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(run), line) {
			t.Errorf("%s: %s is not what the tests run", l.Language, line)
		}
		if l.Language != "Go" && !strings.Contains(string(readme), "| "+l.Language+" | `"+line+"` |") {
			t.Errorf("%s: %s is not what the README shows", l.Language, line)
		}
	}
}
