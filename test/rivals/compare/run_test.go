package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
	"delaybroker/test/rivals/bench"
)

// benchEnv returns an environment with few levels, whose streams are created quickly, and with a temporary directory.
func benchEnv(t *testing.T, more ...string) (environ []string, dir string) {
	t.Helper()
	dir = natstest.Dir(t)
	return append([]string{"DELAY_LEVELS=1s 2s 5s", "TMPDIR=" + dir}, more...), dir
}

// TestRunsEachScenario runs each scenario for the named sides. It checks the counts, and that no file remains. It
// does not check the speed, because the scenarios run in parallel.
func TestRunsEachScenario(t *testing.T) {
	natstest.SkipShort(t)
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
	type process struct {
		cmd            *exec.Cmd
		dir            string
		stdout, stderr bytes.Buffer
	}
	processes := make([]process, len(tests))
	for i, test := range tests {
		p := &processes[i]
		var environ []string
		environ, p.dir = benchEnv(t)
		p.cmd = command(t, append(strings.Fields(test.args), "--json"), environ...)
		p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
		natstest.NoError(t, p.cmd.Start())
	}
	for i, test := range tests {
		p := &processes[i]
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

func benchStreams(t *testing.T, js jetstream.JetStream) []string {
	t.Helper()
	var names []string
	all := js.StreamNames(t.Context())
	for name := range all.Name() {
		names = append(names, name)
	}
	natstest.NoError(t, all.Err())
	return names
}

// On a shared server, a run removes its streams and changes no others. The table of the run compares the sides, and
// compares the run with an earlier one.
func TestRemovesItsStreams(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	s, js := startServer(t)
	environ, _ := benchEnv(t, "NATS_URL="+s.ClientURL(), "DELAY_TARGETS=elsewhere.>")
	text, err := json.Marshal(bench.Report{
		When:    time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC),
		Plan:    bench.Plan{Scenario: bench.Steady, Sides: []bench.Side{bench.Broker}, Rounds: 1},
		Results: []bench.Result{{Side: bench.Broker, Round: 1, Late: &bench.Spread{P99: 1}}},
	})
	natstest.NoError(t, err)
	args := append(strings.Fields("--rate 100 --for 1s --beside pipeline --rounds 2 --wide --compare"),
		writeFile(t, "old.json", string(text)))
	var stdout, stderr bytes.Buffer
	cmd := command(t, args, environ...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("got %v, want exit code 0\n%s", err, &stderr)
	}
	wantParts(t, stdout.String(),
		"steady: 100 msg/s for 1s, 256 bytes, 1s, 10 targets", "P99.9 MS", "LOWEST", "ratios to the broker",
		"the run of 2026-11-20T10:00:00Z", "differences: rate 0 → 100")
	wantParts(t, stderr.String(), "pipeline 2 of 2: publishing\n")
	if got, want := benchStreams(t, js), []string{"OTHER"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// startBench starts a long run, and returns when the run publishes.
func startBench(t *testing.T, url string) *exec.Cmd {
	t.Helper()
	environ, _ := benchEnv(t, "NATS_URL="+url)
	cmd := command(t, strings.Fields("--rate 100 --for 10m"), environ...)
	stderr, err := cmd.StderrPipe()
	natstest.NoError(t, err)
	natstest.NoError(t, cmd.Start())
	var shown bytes.Buffer
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if strings.HasSuffix(lines.Text(), ": publishing") {
			return cmd
		}
		shown.WriteString(lines.Text() + "\n")
	}
	t.Fatalf("the run has ended: %v\n%s", cmd.Wait(), &shown)
	return nil
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	s, js := startServer(t)
	cmd := startBench(t, s.ClientURL())
	if got := benchStreams(t, js); len(got) < 5 {
		t.Fatalf("got %q, want the streams of a run", got)
	}
	natstest.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	if got, want := exitCodeOf(cmd.Wait()), 1; got != want {
		t.Errorf("exit code: got %d, want %d", got, want)
	}
	if got, want := benchStreams(t, js), []string{"OTHER"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// If a run is killed, the processes of the run end too. The marker of the run stays: by the marker, the next run finds
// the streams.
func TestKilled(t *testing.T) {
	t.Parallel()
	s, js := startServer(t)
	before := s.NumClients()
	cmd := startBench(t, s.ClientURL())
	if got := s.NumClients(); got <= before {
		t.Fatalf("got %d connections, want %d and those of a run", got, before)
	}
	natstest.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // the kill causes an error
	natstest.Await(t, "end of its processes", func() bool { return s.NumClients() == before })
	marked := slices.ContainsFunc(benchStreams(t, js), func(name string) bool { return strings.HasSuffix(name, "-RUN") })
	if !marked {
		t.Errorf("got %q, want the marker of the run", benchStreams(t, js))
	}
}
