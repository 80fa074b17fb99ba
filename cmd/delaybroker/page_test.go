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

// The program serves the page next to its probes, and actions with the token.
func TestServePage(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	embeddedEnv(t)
	t.Setenv("DELAY_LEVELS", "1s 1h")
	t.Setenv("DELAY_TIMERS", "on")
	t.Setenv("DELAY_HTTP_ACTIONS", "on")
	t.Setenv("DELAY_HTTP_TOKEN", "ann:"+pageToken)
	r := startReady(t)
	defer r.stop(t)
	ready := r.ready
	address := fmt.Sprint("http://", ready["http"])
	if got, want := ready["page"], address+"/"; got != want {
		t.Errorf("page: got %v, want %s", got, want)
	}
	wantBody(t, ready["http"], "/", "<title>delaybroker</title>")
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/status", "/metrics"} {
		wantProbe(t, ready["http"], path, 200)
		res, err := http.Post(address+path, "application/json", nil)
		natstest.NoError(t, err)
		res.Body.Close()
		if res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: got %d, want 405", path, res.StatusCode)
		}
	}
	_, js := connect(t, ready["server"].(string))
	publish(t, js, "delay.1h.orders.x", "{}") // stays in one lane: a message that changes lanes may not be counted
	plan, result := actOnPage(t, address, `{"operation":"pause","items":[{"pattern":"orders.>"}]}`)
	if plan != "pause orders.>: 1 message now pending, and all later messages, will wait when due" {
		t.Errorf("got the plan %q", plan)
	}
	if result != "orders.> is paused; confirmed by 1 of 1 instance" {
		t.Errorf("got the result %q", result)
	}
	line := r.log.await(t, "the page executed an action")
	if line["who"] != "ann" || line["does"] != "delaybroker pause 'orders.>'" {
		t.Errorf("the log has %v", line)
	}
	if strings.Contains(r.log.String(), pageToken) {
		t.Error("the log has the token")
	}
}

// The page acts on schedules in nats-server's format by their names, as on other timers. The action does what its plan
// shows.
func TestPageActsOnServerSchedules(t *testing.T) {
	embeddedEnv(t)
	t.Setenv("DELAY_TIMERS", "on")
	t.Setenv("DELAY_SCHEDULES", "schedules.>=orders.>")
	t.Setenv("DELAY_HTTP_ACTIONS", "on")
	t.Setenv("DELAY_HTTP_TOKEN", "ann:"+pageToken)
	r := startReady(t)
	defer r.stop(t)
	ready := r.ready
	address := fmt.Sprint("http://", ready["http"])
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
	for _, tt := range []struct{ operation, about, plan, done string }{
		{"timers move", `"key":"_schedule.schedules.a","target":"orders.x","by":"+5m"`, "1 timer: _schedule.sch", "moved: "},
		{"timers fire", `"key":"_schedule.schedules.a","target":"orders.x"`,
			"1 timer: _schedule.schedules.a to orders.x", "fired"},
		{"timers cancel", `"key":"_schedule.schedules.-h","target":"orders.x"`, "1 timer: _schedule.", "cancelled: "},
		{"schedules pause", `"name":"_schedule.schedules.every","target":"orders.x"`, "1 timer: _schedule", "paused: "},
		{"schedules resume", `"name":"_schedule.schedules.every","target":"orders.x"`, "1 timer: _sched", "resumed: "},
		{"timers move", `"all":true,"target":"orders.>","by":"+5m"`, "3 timers", "3 of 3 timers moved"},
		{"timers cancel", `"all":true,"target":"orders.>","once":true`, "2 timers", "2 of 2 timers cancelled"}, // not every
		{"timers cancel", `"all":true,"target":"orders.>"`, "1 timer", "1 of 1 timer cancelled"},
	} {
		plan, result := actOnPage(t, address, `{"operation":"`+tt.operation+`","items":[{`+tt.about+`}]}`)
		_, verb, _ := strings.Cut(tt.operation, " ")
		if !strings.HasPrefix(plan, verb+" "+tt.plan) || !strings.HasPrefix(result, tt.done) {
			t.Errorf("%s %s: got the plan %q and the result %q, want %q and %q", verb, tt.about, plan, result,
				tt.plan, tt.done)
		}
	}
}

// actOnPage plans an action on the page and executes it. It returns the sentences of the plan and of the result, which
// must be a success.
func actOnPage(t *testing.T, address, request string) (plan, result string) {
	t.Helper()
	var planned struct{ Sentence, Ticket string }
	post(t, address+"/api/plan", request, &planned)
	var done struct {
		Sentence string
		Good     bool
	}
	post(t, address+"/api/act", `{"ticket":"`+planned.Ticket+`"}`, &done)
	if !done.Good {
		t.Errorf("%s: got %+v, want a success", request, done)
	}
	return planned.Sentence, done.Sentence
}

// post sends a JSON body with the page's token, and decodes the answer.
func post(t *testing.T, url, body string, answer any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
	natstest.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+pageToken)
	request.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(request)
	natstest.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 || json.Unmarshal(text, answer) != nil {
		t.Fatalf("%s: got %d %s, %v", url, res.StatusCode, text, err)
	}
}

// Every shell command that the page shows is valid: its name, its arguments and its flags.
func TestPageCommandsExist(t *testing.T) {
	source, err := os.ReadFile("../../broker/web/page/testdata/lines.txt")
	natstest.NoError(t, err)
	lines := 0
	for line := range strings.Lines(string(source)) {
		words := strings.Fields(strings.ReplaceAll(strings.TrimSpace(line), "'", ""))
		root := new(app).rootCommand()
		found, rest, err := root.Find(words[1:])
		if err == nil {
			found.InheritedFlags() // adds the flags of the root command
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

// The commands of the page's form are those of the README.
func TestPageLinesMatchReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	natstest.NoError(t, err)
	files := map[string]string{
		"Go": "publish.go", "JavaScript": "publish.mjs", "Python": "publish.py", "Rust": "publish.rs",
		"NATS CLI": "publish.sh",
	}
	for _, l := range page.Lines() {
		line := strings.NewReplacer("SUBJECT", "delay.5s.orders.expire", "BODY", `{"id":42}`).Replace(l.Line)
		run, err := os.ReadFile("../../test/clients/snippets/" + files[l.Language])
		natstest.NoError(t, err)
		if !strings.Contains(string(run), line) {
			t.Errorf("%s: %s differs from the file that the tests run", l.Language, line)
		}
		if l.Language != "Go" && !strings.Contains(string(readme), "| "+l.Language+" | `"+line+"` |") {
			t.Errorf("%s: %s differs from the README", l.Language, line)
		}
	}
}
