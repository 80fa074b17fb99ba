package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"delaybroker/broker/bench"
	"delaybroker/cmd/delaybroker/terminal"
	"delaybroker/test/natstest"
)

func TestBenchFlags(t *testing.T) {
	natstest.ClearEnv(t)
	file := writeFile(t, "old.json", "steady: 5,000 msg/s")
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

// "bench timers" fails if the settings exclude named timers. The command runs in its own process: if it began a run, it
// would start its own program again, which must not be this test.
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
func TestBenchPartSettings(t *testing.T) {
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
		got := benchParts{executable: "me", prefix: "bench-a", url: url, probes: "here:1"}.command(bench.PartBroker).Env
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
func TestReadyLog(t *testing.T) {
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

func TestFormatFigure(t *testing.T) {
	for n, want := range map[float64]string{
		0: "0.00", 1.234: "1.23", 12.34: "12.3", 123.6: "124", 12345.6: "12,346", -2: "-2.00",
	} {
		if got := formatFigure(n); got != want {
			t.Errorf("%v: got %q, want %q", n, got, want)
		}
	}
}

// The table of bench has the main metrics. With --wide it has all metrics.
func TestBenchColumns(t *testing.T) {
	report := &bench.Report{
		Plan: bench.Plan{Scenario: bench.Steady, Rounds: 1},
		Results: []bench.Result{{
			Side: bench.Broker, Late: &bench.Spread{P50: 1}, Acks: &bench.Spread{}, Cost: &bench.Cost{Server: 1, Sidecar: 2},
		}},
	}
	for _, test := range []struct {
		wide bool
		want string
	}{
		{false, "SIDE P50 MS P99 MS MAX MS CPU US LOST EARLY TWICE"},
		{true, "SIDE MIN MS P50 MS P90 MS P99 MS P99.9 MS MAX MS ACK P50 MS ACK P99 MS CPU US SERVER US SIDECAR US " +
			"LOST EARLY TWICE"},
	} {
		var out bytes.Buffer
		a := &app{Printer: terminal.Printer{Out: &out}}
		natstest.NoError(t, a.showReport(nil, report, test.wide))
		if got := strings.Join(strings.Fields(strings.Split(out.String(), "\n")[2]), " "); got != test.want {
			t.Errorf("wide %t: got %q, want %q", test.wide, got, test.want)
		}
	}
}
