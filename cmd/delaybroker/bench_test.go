package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/bench"
	"delaybroker/test/natstest"
)

// benchEnv sets few levels, whose streams are created quickly, and a temporary directory of this test.
func benchEnv(t *testing.T, more ...string) (environ []string, dir string) {
	t.Helper()
	dir = natstest.Dir(t)
	return append([]string{"DELAY_LEVELS=1s 2s 5s", "TMPDIR=" + dir}, more...), dir
}

// TestBenchRunsEachScenario runs each scenario for the named sides. It checks the counts, and that no file is left. It
// does not check the speed, because the scenarios run in parallel.
func TestBenchRunsEachScenario(t *testing.T) {
	natstest.Long(t)
	t.Parallel()
	tests := []struct {
		args    string
		count   int
		metrics string // required metrics of each side, comma separated
	}{
		{"steady --beside scheduler,pipeline --rate 200 --for 1s --publishers 2 --targets 3", 200, "p99 ms,arrived/s"},
		{"steady --beside pipeline --rate 100 --for 1s --delay 1s,random:1500ms --to core", 100, "max ms"},
		{"burst --beside scheduler --count 500 --delay 5s", 500, "max ms,drained/s"},
		{"chain --rate 50 --for 1s --delay random:3s", 50, "p50 ms,passes"},
		{"core --beside scheduler --count 200 --targets 50 --delay 5s", 200, "max ms,drained/s"},
		{"ingest --beside scheduler,pipeline --count 2000", 2000, "published/s,ack p99 ms"},
		{"pending --count 2000 --for 1s", 2000, "published/s,ready ms"},
		{"idle --beside pipeline --for 1s", 0, ""},
		{
			"timers --beside scheduler --count 200 --cancel 40 --delay 10s --timers 100 --rate 100 --for 1s --targets 3",
			120 + 200, "max ms,published/s,cancelled/s,moved/s,even p99 ms,plain p99 ms",
		},
		{"rounds --beside scheduler --count 50 --every 5s --for 10s --publishers 2", 100, "max ms,published/s,drained/s"},
	}
	if testing.Short() {
		tests = tests[:1]
	}
	type process struct {
		cmd            *exec.Cmd
		dir            string
		stdout, stderr bytes.Buffer
	}
	running := make([]process, len(tests))
	for i, test := range tests {
		p := &running[i]
		var environ []string
		environ, p.dir = benchEnv(t)
		p.cmd = command(t, append([]string{"bench", "--json"}, strings.Fields(test.args)...), environ...)
		p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
		if err := p.cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for i, test := range tests {
		p := &running[i]
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("%s: got %v, want exit code 0\n%s", test.args, err, &p.stderr)
			continue
		}
		report := decode[bench.Report](t, p.stdout.String())
		if got, want := len(report.Results), len(report.Plan.Sides); got != want {
			t.Errorf("%s: got %d results, want %d", test.args, got, want)
		}
		for _, r := range report.Results {
			if r.Side == bench.Scheduler && report.Plan.Core {
				if r.Unsupported == "" {
					t.Errorf("%s: got %+v of the scheduler, want the reason why it cannot run", test.args, r)
				}
				continue
			}
			if got, want := r.Tally, (bench.Tally{Count: test.count, Twice: r.Twice}); got != want {
				t.Errorf("%s: got %+v of the %s, want %+v", test.args, got, r.Side, want)
			}
			wantMetrics(t, r, test.metrics)
		}
		if left, err := os.ReadDir(p.dir); err != nil || len(left) > 0 {
			t.Errorf("%s: got %v (%v) left in the temporary directory, want nothing", test.args, left, err)
		}
	}
}

func wantMetrics(t *testing.T, r bench.Result, names string) {
	t.Helper()
	for name := range strings.SplitSeq(names, ",") {
		if name == "" {
			continue
		}
		i := slices.IndexFunc(bench.Metrics, func(m bench.Metric) bool { return m.Name == name })
		if i < 0 {
			t.Fatalf("there is no metric %q", name)
		}
		if n, ok := bench.Metrics[i].Value(r); !ok || n <= 0 {
			t.Errorf("%s: got %s %v (%v), want more than zero", r.Side, name, n, ok)
		}
	}
}

// startBenched starts a server with a stream that does not belong to a run.
func startBenched(t *testing.T) (*server.Server, jetstream.JetStream) {
	t.Helper()
	s := startServer(t, server.Options{Port: server.RANDOM_PORT})
	_, js := connect(t, s.ClientURL())
	other := jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"other"}}
	if _, err := js.CreateStream(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	return s, js
}

func benchStreams(t *testing.T, js jetstream.JetStream) []string {
	t.Helper()
	var names []string
	all := js.StreamNames(t.Context())
	for name := range all.Name() {
		names = append(names, name)
	}
	if err := all.Err(); err != nil {
		t.Fatal(err)
	}
	return names
}

// On a shared server, a run removes its streams and changes no others. Its table compares the sides, and compares the
// run with an earlier one.
func TestBenchLeavesAServerAsItWas(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT RUN: -short, and it takes long")
	}
	t.Parallel()
	s, js := startBenched(t)
	environ, dir := benchEnv(t, "NATS_URL="+s.ClientURL(), "DELAY_TARGETS=elsewhere.>")
	old := filepath.Join(dir, "old.json")
	text, err := json.Marshal(bench.Report{
		When:    time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC),
		Plan:    bench.Plan{Scenario: bench.Steady, Sides: []bench.Side{bench.Broker}, Rounds: 1},
		Results: []bench.Result{{Side: bench.Broker, Round: 1, Late: &bench.Spread{P99: 1}}},
	})
	if err == nil {
		err = os.WriteFile(old, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	args := strings.Fields("bench --rate 100 --for 1s --beside pipeline --rounds 2 --wide --compare " + old)
	var stdout, stderr bytes.Buffer
	cmd := command(t, args, environ...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("got %v, want exit code 0\n%s", err, &stderr)
	}
	for _, want := range []string{
		"steady: 100 msg/s for 1s, 256 bytes, 1s, 10 targets", "P99.9 MS", "LOWEST", "ratios to the broker",
		"the run of 2026-11-20T10:00:00Z", "differences: rate 0 → 100",
	} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("got no %q in\n%s", want, &stdout)
		}
	}
	if want := "pipeline 2 of 2: publishing\n"; !strings.Contains(stderr.String(), want) {
		t.Errorf("got no %q in\n%s", want, &stderr)
	}
	if got, want := benchStreams(t, js), []string{"OTHER"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// startBench starts a long run, and returns when the run publishes.
func startBench(t *testing.T, url string) (cmd *exec.Cmd, rest *bytes.Buffer) {
	t.Helper()
	environ, _ := benchEnv(t, "NATS_URL="+url)
	cmd = command(t, strings.Fields("bench --rate 100 --for 10m"), environ...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	rest = new(bytes.Buffer)
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if strings.HasSuffix(lines.Text(), ": publishing") {
			return cmd, rest
		}
		rest.WriteString(lines.Text() + "\n")
	}
	t.Fatalf("the run has ended: %v\n%s", cmd.Wait(), rest)
	return nil, nil
}

func TestAnInterruptedBenchRemovesWhatItMade(t *testing.T) {
	t.Parallel()
	s, js := startBenched(t)
	cmd, _ := startBench(t, s.ClientURL())
	if got := benchStreams(t, js); len(got) < 5 {
		t.Fatalf("got %q, want the streams of a run", got)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if got, want := exitCodeOf(cmd.Wait()), 1; got != want {
		t.Errorf("exit code: got %d, want %d", got, want)
	}
	if got, want := benchStreams(t, js), []string{"OTHER"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// If a run is killed, its processes end too. Its marker stays, by which the next run finds its streams.
func TestAKilledBenchLeavesNoProcessAndItsMark(t *testing.T) {
	t.Parallel()
	s, js := startBenched(t)
	before := s.NumClients()
	cmd, _ := startBench(t, s.ClientURL())
	if got := s.NumClients(); got <= before {
		t.Fatalf("got %d connections, want %d and those of a run", got, before)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // reports the kill
	eventually(t, "end of its processes", func() bool { return s.NumClients() == before })
	marked := slices.ContainsFunc(benchStreams(t, js), func(name string) bool { return strings.HasSuffix(name, "-RUN") })
	if !marked {
		t.Errorf("got %q, want the marker of the run", benchStreams(t, js))
	}
}

func TestBenchFlags(t *testing.T) {
	natstest.ClearEnv(t)
	file := filepath.Join(t.TempDir(), "old.json")
	if err := os.WriteFile(file, []byte("steady: 5,000 msg/s"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"bench frobnicate":                     "steady burst chain",
		"bench burst --rate 3":                 "--rate has no meaning for burst",
		"bench --beside river":                 `"river": want scheduler or pipeline`,
		"bench --to mars":                      `--to "mars"`,
		"bench --delay soon":                   `delay "soon"`,
		"bench --size 3 --publishers 0":        "publishers 0",
		"bench ingest --delay 1s":              "no message is due",
		"bench steady burst":                   "want delaybroker bench",
		"bench timers --cancel 100":            "cancel 100: want 0 to 99",
		"bench timers --beside pipeline":       "beside pipeline: the pipeline has no timers; want scheduler",
		"bench timers --every 10s":             "--every has no meaning for timers",
		"bench timers --timers 1 --for 1ms":    "timers of the even phase 0",
		"bench rounds --every 7s":              "every 7s: want 5s, 6s",
		"bench rounds --for 15s":               "for 15s: want a multiple of every (10s)",
		"bench rounds --delay 1s":              "--delay has no meaning for rounds",
		"bench --compare " + file:              "want the output of bench --json",
		"bench --compare " + file + ".missing": "no such file",
	} {
		wantCommandError(t, 2, []string{want}, strings.Fields(args)...)
	}
}

// Without named timers there is nothing to measure. The command runs in its own process: if it began a run, it would
// start its own program again, which must not be this test.
func TestBenchOfTimersNeedsTimers(t *testing.T) {
	t.Parallel()
	for _, scenario := range []string{"timers", "rounds"} {
		out, err := command(t, []string{"bench", scenario, "--count", "1"}, "DELAY_TIMERS=off").CombinedOutput()
		if code := exitCodeOf(err); code != 2 {
			t.Errorf("%s: exit code: got %d, want 2", scenario, code)
		}
		want := "bench " + scenario + " needs named timers: remove DELAY_TIMERS=off"
		if !strings.Contains(string(out), want) {
			t.Errorf("%s: got %s, want %q", scenario, out, want)
		}
	}
}

// The processes of a run get the settings of the environment, except settings that two brokers cannot share, and
// settings that restrict targets. If the run has its own server, they get no setting that names a server.
func TestBenchPartsGetTheSettings(t *testing.T) {
	natstest.ClearEnv(t)
	for _, variable := range []string{
		"NATS_URL=nats://elsewhere:4222", "NATS_CREDS=file", "DELAY_PREFIX=ours", "DELAY_TARGETS=shop.>",
		"DELAY_MEMORY=64MiB", "DELAY_JS_DOMAIN=hub", "DELAY_EMBEDDED_DIR=data", "DELAY_INSTANCE=a",
	} {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	for url, want := range map[string][]string{
		"": {
			"DELAY_HTTP_ADDR=here:1", "DELAY_JS_DOMAIN=hub", "DELAY_LOG_FORMAT=json", "DELAY_MEMORY=64MiB",
			"DELAY_PREFIX=bench-a", "NATS_CREDS=file", "NATS_URL=nats://elsewhere:4222",
		},
		"nats://own:1": {
			"DELAY_HTTP_ADDR=here:1", "DELAY_LOG_FORMAT=json", "DELAY_MEMORY=64MiB", "DELAY_PREFIX=bench-a",
			"NATS_URL=nats://own:1",
		},
	} {
		got := benchParts{executable: "me", prefix: "bench-a", url: url, http: "here:1"}.command(bench.PartBroker).Env
		got = slices.DeleteFunc(got, func(v string) bool {
			return !strings.HasPrefix(v, "DELAY_") && !strings.HasPrefix(v, "NATS_")
		})
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("with its own server %q: got %q, want %q", url, got, want)
		}
	}
}

// A readyLog reports when the broker is ready. It passes on warnings and errors.
func TestReadyLogSaysWhenABrokerIsReady(t *testing.T) {
	var stdout, stderr bytes.Buffer
	l := &readyLog{stderr: &stderr, events: json.NewEncoder(&stdout)}
	for _, line := range []string{
		`{"level":"INFO","msg":"starting"}`, `{"level":"WARN","msg":"slow disk"}`, `{"level":"INFO","msg":"ready"}`,
		"panic: no",
	} {
		if _, err := l.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := stdout.String(), "{\"ready\":true}\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := stderr.String(), `{"level":"WARN","msg":"slow disk"}`+"\npanic: no\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFiguresHaveThreeDigits(t *testing.T) {
	for n, want := range map[float64]string{
		0: "0.00", 1.234: "1.23", 12.34: "12.3", 123.6: "124", 12345.6: "12,346", -2: "-2.00",
	} {
		if got := figure(n); got != want {
			t.Errorf("%v: got %q, want %q", n, got, want)
		}
	}
}
