package settings

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"delaybroker/broker/config"
	"delaybroker/broker/message"
	"delaybroker/cmd/delaybroker/embedded"
	"delaybroker/levels"
	"delaybroker/test/natstest"
)

// setEnv replaces the settings in the environment by these variables, given as pairs of a name and a value.
func setEnv(t *testing.T, variables ...string) {
	t.Helper()
	natstest.ClearEnv(t)
	for i := 0; i < len(variables); i += 2 {
		t.Setenv(variables[i], variables[i+1])
	}
}

func mustRead(t *testing.T) Config {
	t.Helper()
	c, err := Read()
	natstest.NoError(t, err)
	return c
}

// problemsOf returns the lines of the error of this environment, without the first.
func problemsOf(t *testing.T) []string {
	t.Helper()
	_, err := Read()
	if err == nil {
		return nil
	}
	if !errors.Is(err, ErrConfig) {
		t.Errorf("got %v, want it to wrap ErrConfig", err)
	}
	return strings.Split(err.Error(), "\n")[1:]
}

func wantOneProblem(t *testing.T, parts ...string) {
	t.Helper()
	all := problemsOf(t)
	if len(all) != 1 {
		t.Fatalf("got %q, want one problem with %q", all, parts)
	}
	for _, part := range parts {
		if !strings.Contains(all[0], part) {
			t.Errorf("got %q, want %q in it", all[0], part)
		}
	}
}

func TestDefaultsAreTheBrokers(t *testing.T) {
	natstest.ClearEnv(t)
	c := mustRead(t)
	for _, test := range []struct {
		name      string
		got, want any
	}{
		{"prefix", c.Broker.Prefix, message.DefaultPrefix},
		{"ladder", c.Broker.Ladder.String(), levels.Default().String()},
		{"attempts", c.Broker.Attempts, config.DefaultAttempts},
		{"dedup window", c.Broker.DedupWindow, config.DefaultDedupWindow},
		{"max delay", c.Broker.MaxDelay, config.DefaultMaxDelay},
		{"retry", c.Broker.RetryLadder.String(), config.DefaultRetry},
		{"reply timeout", c.Broker.ReplyTimeout, config.DefaultReplyTimeout},
		{"rates", len(c.Broker.Rates), 0},
		{"max pending", c.Broker.MaxPending + c.Broker.MaxPendingBytes, int64(0)},
		{"shutdown grace", c.Broker.ShutdownGrace, config.DefaultShutdownGrace},
		{"replicas", c.Broker.Replicas, 0},
		{"deliver", c.Broker.Deliver.Default, message.ModeAuto},
		{"targets", len(c.Broker.Targets) + len(c.Broker.HeaderTargets), 0},
		{"provision", c.Broker.Provision, true},
		{"http", c.HTTPAddr, "127.0.0.1:8422"},
		{"embedded", *c.Embedded, embedded.Config{
			Host: "127.0.0.1", Port: 4222, Dir: "./delay-data", Sync: time.Second, Anonymous: true,
		}},
	} {
		if test.got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, test.got, test.want)
		}
	}
}

// TestSchedulesWithoutTargets: subjects of schedules without targets have the targets of DELAY_HEADER_TARGETS.
func TestSchedulesWithoutTargets(t *testing.T) {
	setEnv(t,
		"NATS_URL", "nats://127.0.0.1:4222",
		"DELAY_SCHEDULES", "plans.a.>,plans.b.>=mail.>",
		"DELAY_HEADER_TARGETS", "orders.>,bills.x")
	cfg, err := Read()
	natstest.NoError(t, err)
	want := message.ScheduleRules{
		{Subjects: "plans.a.>", Targets: []string{"orders.>", "bills.x"}},
		{Subjects: "plans.b.>", Targets: []string{"mail.>"}},
	}
	if got := cfg.Broker.Schedules; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestEmptyMeansUnset(t *testing.T) {
	natstest.ClearEnv(t)
	names := variableNames()
	for _, name := range names {
		t.Setenv(name, "")
	}
	t.Setenv("DELAY_NATS_URL", "")
	c := mustRead(t)
	if c.Embedded == nil {
		t.Error("got an external server for an empty NATS_URL, want the embedded one")
	}
	if got, want := c.Broker.Attempts, config.DefaultAttempts; got != want {
		t.Errorf("attempts: got %d, want %d", got, want)
	}

	// An empty variable with the prefix DELAY_ does not hide the one without it.
	setEnv(t, "NATS_URL", "nats://example.com", "DELAY_NATS_URL", "")
	if got, want := mustRead(t).Access.URL, "nats://example.com"; got != want {
		t.Errorf("url: got %q, want %q", got, want)
	}
}

func TestOwnSettingsNeedThePrefix(t *testing.T) {
	setEnv(t, "HTTP_ADDR", "nonsense", "LOG_LEVEL", "nonsense", "LEVELS", "nonsense")
	mustRead(t)
}

func TestKubernetesServiceVariablesAreNoSettings(t *testing.T) {
	setEnv(t, "DELAY_PORT", "tcp://10.0.0.1:8422", "NATS_PORT", "tcp://10.0.0.1:4222")
	mustRead(t)
}

func TestEmbeddedNextToAServer(t *testing.T) {
	for _, test := range []struct{ variable, value string }{
		{"NATS_URL", "nats://127.0.0.1:4222"},
		{"NATS_CONTEXT", writeContext(t, `{"url": "nats://127.0.0.1:4222"}`)},
	} {
		setEnv(t, test.variable, test.value, "DELAY_EMBEDDED_DIR", "/data")
		wantOneProblem(t, `DELAY_EMBEDDED_DIR="/data"`, test.variable)
	}
}

func TestCredentialsWithoutAServer(t *testing.T) {
	setEnv(t, "NATS_TOKEN", "s3cret")
	wantOneProblem(t, "NATS_TOKEN", "NATS_URL")
}

func TestReplicasOfTheEmbeddedServer(t *testing.T) {
	setEnv(t, "DELAY_STREAM_REPLICAS", "3")
	wantOneProblem(t, `DELAY_STREAM_REPLICAS="3"`, "NATS_URL")
}

// The broker creates missing streams, on an embedded server and on an external one, unless DELAY_PROVISION=verify.
func TestProvision(t *testing.T) {
	for _, test := range []struct {
		url, provision string
		want           bool
	}{
		{"", "", true},
		{"", "verify", false},
		{"nats://127.0.0.1:4222", "", true},
		{"nats://127.0.0.1:4222", "create", true},
		{"nats://127.0.0.1:4222", "verify", false},
	} {
		setEnv(t, "NATS_URL", test.url, "DELAY_PROVISION", test.provision)
		if got := mustRead(t).Broker.Provision; got != test.want {
			t.Errorf("NATS_URL=%q DELAY_PROVISION=%q: got %t, want %t", test.url, test.provision, got, test.want)
		}
	}
}
