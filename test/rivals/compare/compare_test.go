package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"delaybroker/cmd/delaybroker/terminal"
	"delaybroker/test/natstest"
	"delaybroker/test/rivals/bench"
)

func TestFlags(t *testing.T) {
	natstest.ClearEnv(t)
	file := writeFile(t, "old.json", "steady: 5,000 msg/s")
	for args, want := range map[string]string{
		"compare frobnicate":                     "steady burst chain",
		"compare burst --rate 3":                 "--rate has no meaning for burst",
		"compare --beside river":                 `"river": want scheduler or pipeline`,
		"compare --to mars":                      `--to "mars"`,
		"compare --delay soon":                   `delay "soon"`,
		"compare --size 3 --publishers 0":        "publishers 0",
		"compare ingest --delay 1s":              "no message is due",
		"compare steady burst":                   "want one scenario",
		"compare timers --cancel 100":            "cancel 100: want 0 to 99",
		"compare timers --beside pipeline":       "beside pipeline: the pipeline has no timers; want scheduler",
		"compare timers --every 10s":             "--every has no meaning for timers",
		"compare timers --timers 1 --for 1ms":    "timers of the even phase 0",
		"compare rounds --every 7s":              "every 7s: want 5s, 6s",
		"compare rounds --for 15s":               "for 15s: want a multiple of every (10s)",
		"compare rounds --delay 1s":              "--delay has no meaning for rounds",
		"compare --compare " + file:              "want the output of compare --json",
		"compare --compare " + file + ".missing": "no such file",
	} {
		a := &app{Printer: terminal.Printer{Out: io.Discard, Err: io.Discard}}
		err := a.execute(t.Context(), strings.Fields(args)[1:])
		if !errors.Is(err, errUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want a usage error with %q", args, err, want)
		}
	}
}

// The scenarios timers and rounds fail if the settings exclude named timers. The command runs in its own process: if it
// began a run, it would start its own program again, which must not be this test.
func TestTimersNeedTimers(t *testing.T) {
	t.Parallel()
	for _, scenario := range []string{"timers", "rounds"} {
		out, err := command(t, []string{scenario, "--count", "1"}, "DELAY_TIMERS=off").CombinedOutput()
		if code := exitCodeOf(err); code != 2 {
			t.Errorf("%s: exit code: got %d, want 2", scenario, code)
		}
		want := scenario + " needs named timers: remove DELAY_TIMERS=off"
		if !strings.Contains(string(out), want) {
			t.Errorf("%s: got %s, want %q", scenario, out, want)
		}
	}
}

// The processes of a run get the settings of the environment, except settings that two brokers cannot share, and
// settings that restrict targets. If the run has its own server, they get no setting that names a server.
func TestPartSettings(t *testing.T) {
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
			"DELAY_HTTP_ADDR=off", "DELAY_INSTANCE=compare", "DELAY_JS_DOMAIN=hub", "DELAY_LOG_FORMAT=json",
			"DELAY_MEMORY=64MiB", "DELAY_PREFIX=bench-a", "NATS_CREDS=file", "NATS_URL=nats://elsewhere:4222",
		},
		"nats://own:1": {
			"DELAY_HTTP_ADDR=off", "DELAY_INSTANCE=compare", "DELAY_LOG_FORMAT=json", "DELAY_MEMORY=64MiB",
			"DELAY_PREFIX=bench-a", "NATS_URL=nats://own:1",
		},
	} {
		got := benchParts{executable: "me", prefix: "bench-a", url: url}.command(bench.PartBroker).Env
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
	l.started(7)
	for _, line := range []string{
		`{"level":"INFO","msg":"starting"}`, `{"level":"WARN","msg":"slow disk"}`, `{"level":"INFO","msg":"ready"}`,
		"panic: no",
	} {
		for _, half := range []string{line[:3], line[3:] + "\n"} { // a pipe divides lines
			if _, err := l.Write([]byte(half)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got, want := stdout.String(), "{\"ready\":true,\"pid\":7}\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := stderr.String(), `{"level":"WARN","msg":"slow disk"}`+"\npanic: no\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The table of bench has the main metrics. With --wide it has all metrics.
func TestColumns(t *testing.T) {
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
