// Package clients shows that programs in other languages need no special library. It runs ordinary NATS clients against
// a broker in a process of its own.
//
//	JavaScript  runs demo.mjs and the snippets; in CI, the tests fail without Node.js
//	Go          runs the snippets, with and without package client
//	Python      runs the snippets; without nats-py, on the stand-in of python/nats, which speaks NATS to a real server
//	NATS CLI    runs the snippets and the lines of COOKBOOK.md, with the CLI of natscli/go.mod, which .ci/run builds
//	Rust        compares the text of the snippets only: a build would need a crate
package clients

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/clients/snippets"
	"delaybroker/test/natstest"
)

// TestJavaScript runs the demonstration, which checks its own results and prints the lateness of each message.
func TestJavaScript(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	dir := installJavaScript(t)
	url := startBroker(t)
	out := run(t, dir, url, "node", "demo.mjs")
	t.Logf("\n%s", out)
	if strings.Count(out, " ms after it was due\n") != 8 ||
		!strings.HasSuffix(out, "ok: duration header level subject, never early\n") {
		t.Errorf("the demonstration did not see four messages twice:\n%s", out)
	}
}

// TestSnippets runs the programs that the README shows. The same three messages must arrive from each language.
func TestSnippets(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	eachLanguage(t, []snippet{
		{"go", goProgram(snippets.Publish)},
		{"go client", goProgram(snippets.Ask)},
		{"javascript", javaScript("publish.mjs")},
		{"python", python("publish.py")},
		{"cli", shell("publish.sh")},
	}, func(t *testing.T, p prepare) { checkSnippet(t, p(t)) })
}

// A snippet is a program of the documents in one language.
type snippet struct {
	language string
	prepare  prepare
}

// eachLanguage checks each program in a parallel subtest.
func eachLanguage(t *testing.T, all []snippet, check func(*testing.T, prepare)) {
	for _, s := range all {
		t.Run(s.language, func(t *testing.T) {
			t.Parallel()
			check(t, s.prepare)
		})
	}
}

// A prepare returns a function that runs a program on a server. If the language is not installed, it skips the test, or
// fails it in CI.
type prepare func(t *testing.T) (play func(t *testing.T, url string))

func goProgram(program func(context.Context, jetstream.JetStream) error) prepare {
	return func(*testing.T) func(*testing.T, string) {
		return func(t *testing.T, url string) {
			js, err := jetstream.New(connect(t, url))
			natstest.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := program(ctx, js); err != nil {
				t.Errorf("run: %v", err)
			}
		}
	}
}

func javaScript(program string) prepare {
	return func(t *testing.T) func(*testing.T, string) {
		dir := installJavaScript(t)
		copyFile(t, "snippets/"+program, dir)
		copyFile(t, "../../broker/client/javascript/delaybroker.mjs", dir)
		return func(t *testing.T, url string) { run(t, dir, url, "node", program) }
	}
}

func python(program string) prepare {
	return func(t *testing.T) func(*testing.T, string) {
		if _, err := exec.LookPath("python3"); err != nil {
			t.Skip("NOT RUN: there is no python3")
		}
		path, err := filepath.Abs("../../broker/client/python")
		natstest.NoError(t, err)
		if err := exec.Command("python3", "-c", "import nats.js.errors").Run(); err != nil {
			t.Log("nats-py is not installed: its stand-in takes its place")
			standIn, err := filepath.Abs("python")
			natstest.NoError(t, err)
			path += string(filepath.ListSeparator) + standIn
		}
		return func(t *testing.T, url string) {
			run(t, "snippets", url, "env", "PYTHONPATH="+path, "python3", "-B", program)
		}
	}
}

func shell(program string) prepare {
	return func(t *testing.T) func(*testing.T, string) {
		natstest.Tool(t, "nats")
		return func(t *testing.T, url string) {
			if out, err := sh(t, url, ". ./"+program); err != nil {
				t.Fatalf("%s: %v\n%s", program, err, out)
			}
		}
	}
}

// TestTimerSnippets runs the programs that set, move and cancel named timers. Of two timers, the one that was moved
// arrives, and the one that was cancelled does not.
func TestTimerSnippets(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	eachLanguage(t, []snippet{
		{"go", goProgram(snippets.Timer)},
		{"go client", goProgram(snippets.Pending)},
		{"javascript", javaScript("timer.mjs")},
		{"javascript client", javaScript("client.mjs")},
		{"python", python("timer.py")},
		{"python client", python("client.py")},
		{"cli", shell("timer.sh")},
	}, func(t *testing.T, p prepare) { checkOneOfTwo(t, p, 2*time.Second) })
}

// TestScheduleSnippets runs the programs that request schedules in nats-server's format, with the API of their NATS
// clients. Of two schedules, the one that was cancelled does not arrive.
func TestScheduleSnippets(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	eachLanguage(t, []snippet{
		{"go", goProgram(snippets.Schedule)},
		{"javascript", javaScript("schedule.mjs")},
		{"cli", shell("schedule.sh")},
	}, func(t *testing.T, p prepare) { checkOneOfTwo(t, p, 4*time.Second) })
}

// checkOneOfTwo runs a program that requests two messages, and cancels one of them. Without the cancel, the second
// message would arrive within maxWait after the first.
func checkOneOfTwo(t *testing.T, prepare prepare, maxWait time.Duration) {
	t.Helper()
	play := prepare(t)
	url := startBroker(t)
	sub := subscribe(t, url)
	play(t, url)
	m, err := sub.NextMsg(20 * time.Second)
	if err != nil || string(m.Data) != `{"id":42}` {
		t.Fatalf("got %v, %v, want 42", m, err)
	}
	if m, err := sub.NextMsg(maxWait); err == nil {
		t.Errorf("%s arrived too", m.Data)
	}
}

// checkSnippet expects the three messages of a snippet, in the order of their due times, and none early.
func checkSnippet(t *testing.T, publish func(t *testing.T, url string)) {
	t.Helper()
	url := startBroker(t)
	sub := subscribe(t, url)
	started := time.Now()
	publish(t, url)
	for _, want := range []struct {
		body  string
		delay time.Duration // the minimum, counted from the start
	}{
		{`{"id":43}`, 1500 * time.Millisecond},
		{`{"id":42}`, 5 * time.Second},
		{`{"id":44}`, 6500 * time.Millisecond},
	} {
		m, err := sub.NextMsg(20 * time.Second)
		if err != nil {
			t.Fatalf("waiting for %s: %v", want.body, err)
		}
		now := time.Now()
		due, err := time.Parse(time.RFC3339Nano, m.Header.Get("Delay-Due"))
		if err != nil {
			t.Fatalf("Delay-Due: %v", err)
		}
		if got := string(m.Data); got != want.body {
			t.Errorf("got %s, want %s", got, want.body)
		}
		// In some languages, times are formatted with milliseconds only.
		if asked := started.Add(want.delay).Truncate(time.Millisecond); due.Before(asked) || now.Before(due) {
			t.Errorf("%s was due %s and arrived %s; want it due at %s or later, and not early", want.body, due, now, asked)
		}
		t.Logf("%s: %.1f ms after it was due", want.body, float64(now.Sub(due).Microseconds())/1000)
	}
}

// TestSnippetsAgree compares the text of all snippets, because some cannot run everywhere. All make the same requests.
func TestSnippetsAgree(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("snippets/publish.*")
	natstest.NoError(t, err)
	if len(files) != 5 {
		t.Errorf("there are %d snippets, want Go, JavaScript, Python, Rust and the CLI: %v", len(files), files)
	}
	subject := regexp.MustCompile(`delay[a-z]*\.[a-z0-9]+\.[a-z.]+[a-z]`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		natstest.NoError(t, err)
		got := strings.Join(subject.FindAllString(string(text), -1), " ")
		if want := "delay.5s.orders.expire delayin.1500ms.orders.expire delay.5s.orders.expire"; got != want {
			t.Errorf("%s publishes to %s, want %s", file, got, want)
		}
		for _, part := range []string{`{"id":42}`, `{"id":43}`, `{"id":44}`, "Delay-Until"} {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s does not have %s", file, part)
			}
		}
	}
}

// installJavaScript returns a directory with the demonstration and the packages of package-lock.json.
func installJavaScript(t *testing.T) string {
	t.Helper()
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			skip(t, tool+" is not installed; install Node.js 20 or later, with npm")
		}
	}
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "demo.mjs"} {
		copyFile(t, filepath.Join("javascript", name), dir)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	npm := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	npm.Dir = dir
	if out, err := npm.CombinedOutput(); err != nil {
		skip(t, fmt.Sprintf("npm ci: %v; it needs a package registry\n%s", err, out))
	}
	return dir
}

// skip skips a test that needs software which is not installed. In CI, the test fails instead.
func skip(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("CI must test the JavaScript client: %s", reason)
	}
	t.Skipf("NOT RUN: the JavaScript client: %s", reason)
}

// startBroker runs the command with an embedded NATS server until the test ends, and returns the URL of the server.
func startBroker(t *testing.T) string {
	t.Helper()
	p := natstest.StartBroker(t, "NATS_URL=", "NATS_CONTEXT=", "DELAY_EMBEDDED_LISTEN=127.0.0.1:0",
		"DELAY_EMBEDDED_DIR="+natstest.Dir(t), "DELAY_TIMERS=on", "DELAY_SCHEDULES=schedules.orders.>=orders.>")
	t.Cleanup(p.Terminate)
	return p.URL
}

func connect(t *testing.T, url string) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url)
	natstest.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

func subscribe(t *testing.T, url string) *nats.Subscription {
	t.Helper()
	nc := connect(t, url)
	sub, err := nc.SubscribeSync("orders.expire")
	if err == nil {
		err = nc.Flush()
	}
	natstest.NoError(t, err)
	return sub
}

func run(t *testing.T, dir, url, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "NATS_URL="+url)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

func copyFile(t *testing.T, file, dir string) {
	t.Helper()
	text, err := os.ReadFile(file)
	natstest.NoError(t, err)
	natstest.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(file)), text, 0o600))
}
