package settings

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/config"

	"delaybroker/broker/deliver"
	"delaybroker/broker/link"
	"delaybroker/broker/message"
	"delaybroker/cmd/delaybroker/embedded"
	"delaybroker/levels"
	"delaybroker/test/natstest"
)

func mustRead(t *testing.T) Config {
	t.Helper()
	c, err := Read()
	if err != nil {
		t.Fatal(err)
	}
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
		{"owners", c.Broker.MaxOwners, 3},
		{"http", c.HTTPAddr, "127.0.0.1:8422"},
		{"embedded", *c.Embedded, embedded.Config{
			Host: "127.0.0.1", Port: 4222, Dir: "./delay-data", Sync: time.Second, Open: true,
		}},
	} {
		if test.got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, test.got, test.want)
		}
	}
}

// step is the smallest difference of a duration from its bound.
const step = time.Millisecond

func window(d time.Duration) broker.Config  { return broker.Config{DedupWindow: d} }
func longest(d time.Duration) broker.Config { return broker.Config{MaxDelay: d} }

func ladder(names string) levels.Ladder {
	l, err := levels.Parse(names)
	if err != nil {
		panic(err)
	}
	return l
}

func limit(pattern string, n int) config.RetryLimits {
	return config.RetryLimits{{Pattern: pattern, Value: n}}
}

func waits(pattern, names string) config.RetryWaits {
	return config.RetryWaits{{Pattern: pattern, Value: ladder(names)}}
}

func mode(pattern string, m message.Mode) deliver.Modes {
	return deliver.Modes{Rules: message.Rules[message.Mode]{{Pattern: pattern, Value: m}}}
}

// bounds are values at a bound, and just beyond it.
var bounds = []struct {
	variable, value string
	config          broker.Config
	good            bool
}{
	{"DELAY_DEDUP_WINDOW", levels.FormatDuration(time.Second), window(time.Second), true},
	{"DELAY_DEDUP_WINDOW", levels.FormatDuration(time.Second - step), window(time.Second - step), false},
	{"DELAY_DEDUP_WINDOW", levels.FormatDuration(24 * time.Hour), window(24 * time.Hour), true},
	{"DELAY_DEDUP_WINDOW", levels.FormatDuration(24*time.Hour + step), window(24*time.Hour + step), false},
	{"DELAY_MAX_DELAY", levels.FormatDuration(time.Second), longest(time.Second), true},
	{"DELAY_MAX_DELAY", levels.FormatDuration(time.Second - step), longest(time.Second - step), false},
	{"DELAY_MAX_DELAY", levels.FormatDuration(10 * 366 * 24 * time.Hour), longest(10 * 366 * 24 * time.Hour), true},
	{"DELAY_MAX_DELAY", levels.FormatDuration(10*366*24*time.Hour + step), longest(10*366*24*time.Hour + step), false},
	{"DELAY_ATTEMPTS", "1", broker.Config{Attempts: 1}, true},
	{"DELAY_ATTEMPTS", "1000000", broker.Config{Attempts: 1_000_000}, true},
	{"DELAY_ATTEMPTS", "1000001", broker.Config{Attempts: 1_000_001}, false},
	{"DELAY_SHUTDOWN_GRACE", "1h", broker.Config{ShutdownGrace: time.Hour}, true},
	{"DELAY_SHUTDOWN_GRACE", "999ms",
		broker.Config{ShutdownGrace: 999 * time.Millisecond, ReplyTimeout: time.Millisecond}, false},
	{"DELAY_ATTEMPTS", "shop.mail=5,20", broker.Config{Attempts: 20, AttemptRules: limit("shop.mail", 5)}, true},
	{"DELAY_ATTEMPTS", "shop.mail=0", broker.Config{AttemptRules: limit("shop.mail", 0)}, false},
	{"DELAY_ATTEMPTS", "shop.>.x=1", broker.Config{AttemptRules: limit("shop.>.x", 1)}, false},
	{"DELAY_RETRY", "shop.mail=1s,1m;5s",
		broker.Config{RetryRules: waits("shop.mail", "1s,1m"), RetryLadder: ladder("5s")}, true},
	{"DELAY_RETRY", "5s ~100%",
		broker.Config{RetryLadder: ladder("5s"), RetryJitter: config.RetryJitter{{Pattern: ">", Value: 100}}}, true},
	{"DELAY_RETRY", "5s ~101%", broker.Config{RetryJitter: config.RetryJitter{{Pattern: ">", Value: 101}}}, false},
	{"DELAY_RETRY", "shop.>.x=1s;5s", broker.Config{RetryRules: waits("shop.>.x", "1s")}, false},
	{"DELAY_RETRY", "shop.mail=60s;1m",
		broker.Config{RetryRules: waits("shop.mail", "60s"), RetryLadder: ladder("1m")}, false},
	{"DELAY_ATTEMPTS", "-1", broker.Config{Attempts: -1}, false}, // zero is the broker's default
	{"DELAY_SLACK", "250ms", broker.Config{Slack: 250 * time.Millisecond}, true},
	{"DELAY_SLACK", "251ms", broker.Config{Slack: 251 * time.Millisecond}, false},
	{"DELAY_REPLY_TIMEOUT", "1ms", broker.Config{ReplyTimeout: time.Millisecond}, true},
	{"DELAY_REPLY_TIMEOUT", "7500ms", broker.Config{ReplyTimeout: 7500 * time.Millisecond}, true},
	{"DELAY_REPLY_TIMEOUT", "7501ms", broker.Config{ReplyTimeout: 7501 * time.Millisecond}, false},
	{"DELAY_TIMERS", "on", broker.Config{Timers: true}, true},
	{"DELAY_TIMERS", "auto", broker.Config{Timers: true, TimersSpare: true}, true},
	{"DELAY_TIMER_HISTORY", "5m", broker.Config{TimerHistory: 5 * time.Minute}, true},
	{"DELAY_REPLY_PREFIXES", "_INBOX_orders,_INBOX_eu.mail",
		broker.Config{ReplyPrefixes: []string{"_INBOX_orders", "_INBOX_eu.mail"}}, true},
	{"DELAY_SCHEDULES", "plans.a.>=orders.>, plans.b.>=mail.x,plans.a.>=mail.>", broker.Config{Timers: true,
		Schedules: message.Grounds{
			{Subjects: "plans.a.>", Targets: []string{"orders.>", "mail.>"}},
			{Subjects: "plans.b.>", Targets: []string{"mail.x"}},
		}}, true},
	{"DELAY_SCHEDULES", "plans.>", broker.Config{Timers: true, Schedules: message.Grounds{{Subjects: "plans.>"}}}, false},
	{"DELAY_SCHEDULES", "delay.>=orders.>", broker.Config{Timers: true, Schedules: message.Grounds{
		{Subjects: "delay.>", Targets: []string{"orders.>"}}}}, false},
	{"DELAY_REPLY_PREFIXES", "$JS.API", broker.Config{ReplyPrefixes: []string{"$JS.API"}}, false},
	{"DELAY_REPLY_PREFIXES", "delaysys", broker.Config{ReplyPrefixes: []string{"delaysys"}}, false},
	{"DELAY_REPLY_PREFIXES", "_INBOX.>", broker.Config{ReplyPrefixes: []string{"_INBOX.>"}}, false},
	{"DELAY_TIMER_HISTORY", "1ms", broker.Config{TimerHistory: time.Millisecond}, false},
	{"DELAY_MAX_PENDING", "1", broker.Config{MaxPending: 1}, true},
	{"DELAY_MAX_PENDING_BYTES", "1KiB", broker.Config{MaxPendingBytes: 1 << 10}, true},
	{"DELAY_MAX_PENDING", "-1", broker.Config{MaxPending: -1}, false},
	{"DELAY_RATE", "shop.>=1", broker.Config{Rates: deliver.Rates{{Pattern: "shop.>", Value: 1}}}, true},
	{"DELAY_RATE", "shop.>=0", broker.Config{Rates: deliver.Rates{{Pattern: "shop.>", Value: 0}}}, false},
	{"DELAY_RATE", "shop.>.x=1", broker.Config{Rates: deliver.Rates{{Pattern: "shop.>.x", Value: 1}}}, false},
	{"DELAY_RATE_BY_KEY", "shop.>=1", broker.Config{RatesByKey: deliver.Rates{{Pattern: "shop.>", Value: 1}}}, true},
	{"DELAY_RATE_BY_KEY", "shop.>=0", broker.Config{RatesByKey: deliver.Rates{{Pattern: "shop.>", Value: 0}}}, false},
	{"DELAY_DELIVER", "shop.>.x=core", broker.Config{Deliver: mode("shop.>.x", message.ModeCore)}, false},
	{"DELAY_MAX_OWNERS", strconv.Itoa(config.MaxOwners), broker.Config{MaxOwners: config.MaxOwners}, true},
	{"DELAY_MAX_OWNERS", strconv.Itoa(config.MaxOwners + 1), broker.Config{MaxOwners: config.MaxOwners + 1}, false},
	{"DELAY_INSTANCE", strings.Repeat("x", 64), broker.Config{Instance: strings.Repeat("x", 64)}, true},
	{"DELAY_INSTANCE", strings.Repeat("x", 64+1), broker.Config{Instance: strings.Repeat("x", 64+1)}, false},
	{"DELAY_STREAM_REPLICAS", strconv.Itoa(config.MaxReplicas), broker.Config{Replicas: config.MaxReplicas}, true},
	{"DELAY_STREAM_REPLICAS", strconv.Itoa(config.MaxReplicas + 1),
		broker.Config{Replicas: config.MaxReplicas + 1}, false},
}

// The broker defines the bounds: the command accepts the same values.
func TestBoundsAreTheBrokers(t *testing.T) {
	for _, test := range bounds {
		natstest.ClearEnv(t)
		t.Setenv("NATS_URL", "nats://127.0.0.1:4222")
		t.Setenv(test.variable, test.value)
		_, ours := Read()
		_, theirs := test.config.Complete()
		if (ours == nil) != test.good || (theirs == nil) != test.good {
			t.Errorf("%s=%s: got %v here and %v in the broker, want both valid: %t",
				test.variable, test.value, ours, theirs, test.good)
		}
	}
}

// TestSchedulesWithoutTargets: subjects of schedules without targets have the targets of DELAY_HEADER_TARGETS.
func TestSchedulesWithoutTargets(t *testing.T) {
	natstest.ClearEnv(t)
	t.Setenv("NATS_URL", "nats://127.0.0.1:4222")
	t.Setenv("DELAY_SCHEDULES", "plans.a.>,plans.b.>=mail.>")
	t.Setenv("DELAY_HEADER_TARGETS", "orders.>,bills.x")
	cfg, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	want := message.Grounds{
		{Subjects: "plans.a.>", Targets: []string{"orders.>", "bills.x"}},
		{Subjects: "plans.b.>", Targets: []string{"mail.>"}},
	}
	if got := cfg.Broker.Schedules; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestProblemInWords: an error names the variable, the value and the bound, not the field of a struct.
func TestProblemInWords(t *testing.T) {
	for _, test := range []struct{ name, value, want string }{
		{"DELAY_ATTEMPTS", "0", `DELAY_ATTEMPTS="0": want a whole number from 1 to 1000000`},
		{"DELAY_ATTEMPTS", "many", `DELAY_ATTEMPTS="many": want a whole number from 1 to 1000000`},
		{"DELAY_ATTEMPTS", "a.b=0,20",
			`DELAY_ATTEMPTS="a.b=0,20": attempts 0 for a.b: want a whole number from 1 to 1000000`},
		{"DELAY_ATTEMPTS", "a.b=x", `DELAY_ATTEMPTS="a.b=x": attempts "a.b=x": want pattern=number, such as shop.mail=5,20`},
		{"DELAY_RETRY", "1s;5s", `DELAY_RETRY="1s;5s": 2 defaults: keep one, and write the others as pattern=waits`},
		{"DELAY_STREAM_REPLICAS", "6", `DELAY_STREAM_REPLICAS="6": want auto, or a whole number from 1 to 5`},
		{"DELAY_MAX_OWNERS", "65", `DELAY_MAX_OWNERS="65": want a whole number from 1 to 64`},
		{"DELAY_DEDUP_WINDOW", "25h", `DELAY_DEDUP_WINDOW="25h": want 1s to 1d`},
		{"DELAY_MAX_DELAY", "0s", `DELAY_MAX_DELAY="0s": want 1s to 3660d`},
		{"DELAY_SLACK", "1s", `DELAY_SLACK="1s": want off, or 1ms to 250ms`},
		{"DELAY_REPLY_TIMEOUT", "8s",
			`DELAY_REPLY_TIMEOUT="8s": want at most 7s500ms, three quarters of DELAY_SHUTDOWN_GRACE:` +
				` a clean stop must wait for replies`},
		{"DELAY_SECRET", "short",
			`DELAY_SECRET: secret 1 of 1 has 5 bytes, want at least 16: use the output of openssl rand -hex 16`},
		{"DELAY_MAX_PENDING", "0", `DELAY_MAX_PENDING="0": want a whole number from 1, or none`},
		{"DELAY_HTTP_ADDR", "127.0.0.1:99999", `DELAY_HTTP_ADDR="127.0.0.1:99999": want host:port,` +
			` such as 127.0.0.1:8422 or :8422, with a port from 0 to 65535`},
		{"DELAY_DELIVER", "maybe", `DELAY_DELIVER="maybe": delivery mode "maybe": want auto, stream, core or request`},
		{"DELAY_JS_DOMAIN", "a.b", `DELAY_JS_DOMAIN="a.b": want one token: no dots, wildcards or spaces`},
	} {
		natstest.ClearEnv(t)
		t.Setenv("NATS_URL", "nats://127.0.0.1:4222")
		t.Setenv(test.name, test.value)
		if got := problemsOf(t); len(got) != 1 || got[0] != test.want {
			t.Errorf("got  %q\nwant %q", got, test.want)
		}
	}
}

// TestEveryFieldHasAVariable: a problem with a field without a variable would be shown without a name.
func TestEveryFieldHasAVariable(t *testing.T) {
	variables := new(settings).byField()
	// Fields that no setting sets, or that the command checks itself.
	without := []string{
		"Ladder", "IntakeDurations", "RetryLadder", "Provision", "TimersSpare", "HoldMessages", "APIPrefix", "Place",
		"Leaser", "Log",
		"History", "Ended", "Calls", "Version", "Format",
	}
	for field := range reflect.TypeFor[broker.Config]().Fields() {
		if _, ok := variables[field.Name]; ok == slices.Contains(without, field.Name) {
			t.Errorf("%s has a variable: %v", field.Name, ok)
		}
	}
}

// wrong has an invalid value for each setting that can be invalid.
var wrong = map[string]string{
	"NATS_CREDS":              "/nowhere/creds",
	"NATS_NKEY":               "/nowhere/seed",
	"NATS_CERT":               "/nowhere/cert",
	"NATS_CA":                 "/nowhere/ca",
	"NATS_PASSWORD":           "x",
	"DELAY_PREFIX":            "Delay",
	"DELAY_LEVELS":            "1x",
	"DELAY_MAX_DELAY":         "0s",
	"DELAY_ATTEMPTS":          "0",
	"DELAY_DELIVER":           "maybe",
	"DELAY_RETRY":             "1s,x",
	"DELAY_RATE":              "a..b=1",
	"DELAY_RATE_BY_KEY":       "a..b=1",
	"DELAY_SLACK":             "10",
	"DELAY_REPLY_TIMEOUT":     "2h",
	"DELAY_MAX_PENDING":       "-1",
	"DELAY_MEMORY":            "1KiB",
	"DELAY_MAX_PENDING_BYTES": "1 zettabite",
	"DELAY_TARGETS":           "a..b",
	"DELAY_HEADER_TARGETS":    ">.a",
	"DELAY_DEDUP_WINDOW":      "500",
	"DELAY_STREAM_REPLICAS":   "6",
	"DELAY_SECRET":            "long-enough-for-16-bytes,too-short",
	"DELAY_PROVISION":         "maybe",
	"DELAY_MAX_OWNERS":        "65",
	"DELAY_INSTANCE":          strings.Repeat("x", 65),
	"DELAY_JS_DOMAIN":         "a.b",
	"DELAY_JOURNAL":           "a fortnight",
	"DELAY_JOURNAL_BYTES":     "1 zettabite",
	"DELAY_TIMERS":            "perhaps",
	"DELAY_REPLY_PREFIXES":    "_INBOX.>",
	"DELAY_SCHEDULES":         "plans.>",
	"DELAY_TIMER_HISTORY":     "for ever",
	"DELAY_INBOX_PREFIX":      "inbox.>",
	"DELAY_HTTP_ADDR":         "8422",
	"DELAY_SHUTDOWN_GRACE":    "2h",
	"DELAY_LOG_LEVEL":         "loud",
	"DELAY_LOG_FORMAT":        "xml",
	"DELAY_EMBEDDED_LISTEN":   "x",
	"DELAY_EMBEDDED_DIR":      "x",
	"DELAY_EMBEDDED_SYNC":     "x",
	"DELAY_EMBEDDED_USER":     "me",
	"DELAY_EMBEDDED_PASSWORD": "s3cret",
	"DELAY_EMBEDDED_CONFIG":   "nats.conf",
	"DELAY_READ_CONTEXT":      "noreader",
	"DELAY_WRITE_CONTEXT":     "nowriter",
	"DELAY_DELIVER_CONTEXT":   "./nodeliverer.json",
	"DELAY_HTTP_CONTEXT":      "nolooker",
	"DELAY_HTTP_ACTIONS":      "perhaps",
	"DELAY_HTTP_TOKEN":        "ann:too-short",
	"DELAY_HTTP_ROWS":         "some",
	"DELAY_HTTP_BODIES":       "naked",
	"DELAY_HTTP_HOSTS":        "https://delay.example.com",
}

func TestAllProblemsAtOnce(t *testing.T) {
	natstest.ClearEnv(t)
	t.Setenv("NATS_URL", "nats://127.0.0.1:4222")
	for name, value := range wrong {
		t.Setenv(name, value)
	}
	all := problemsOf(t)
	for name, value := range wrong {
		named := func(line string) bool { return strings.HasPrefix(line, name+"=") || strings.HasPrefix(line, name+":") }
		i := slices.IndexFunc(all, named)
		if i < 0 {
			t.Errorf("got no problem with %s, want one", name)
			continue
		}
		if name == "DELAY_SECRET" || name == "DELAY_HTTP_TOKEN" {
			if !strings.Contains(all[i], "want at least 16") || strings.Contains(all[i], "short") {
				t.Errorf("got %q, want the minimum length, and no secret", all[i])
			}
			continue
		}
		if secret := strings.HasSuffix(name, "_PASSWORD"); secret == strings.Contains(all[i], value) {
			t.Errorf("got %q, want the value %q in it", all[i], value)
		}
	}
	// Settings that cannot be invalid, or that another test checks.
	free := []string{"NATS_URL", "NATS_CONTEXT", "NATS_USER", "NATS_TOKEN", "NATS_KEY"}
	names := variableNames()
	for _, name := range names {
		if _, ok := wrong[name]; !ok && !slices.Contains(free, name) {
			t.Errorf("this test has no invalid value for %s", name)
		}
	}
}

// TestEmptyWordsAreRefused: an empty element of a list may be a forgotten name.
func TestEmptyWordsAreRefused(t *testing.T) {
	for _, name := range []string{"DELAY_TARGETS", "DELAY_HEADER_TARGETS"} {
		for value, ok := range map[string]bool{
			"orders.>": true, "orders.>,mail.*": true, "orders.> mail.*": true, "orders.>, mail.*": true,
			"orders.>,": false, ",orders.>": false, "orders.>,,mail.*": false, ",": false,
		} {
			natstest.ClearEnv(t)
			t.Setenv(name, value)
			if _, err := Read(); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), name) {
				t.Errorf("%s=%q: got %v", name, value, err)
			}
		}
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
	natstest.ClearEnv(t)
	t.Setenv("NATS_URL", "nats://example.com")
	t.Setenv("DELAY_NATS_URL", "")
	if got, want := mustRead(t).Access.URL, "nats://example.com"; got != want {
		t.Errorf("url: got %q, want %q", got, want)
	}
}

func TestOwnSettingsNeedThePrefix(t *testing.T) {
	natstest.ClearEnv(t)
	t.Setenv("HTTP_ADDR", "nonsense")
	t.Setenv("LOG_LEVEL", "nonsense")
	t.Setenv("LEVELS", "nonsense")
	mustRead(t)
}

func TestKubernetesServiceVariablesAreNoSettings(t *testing.T) {
	natstest.ClearEnv(t)
	t.Setenv("DELAY_PORT", "tcp://10.0.0.1:8422")
	t.Setenv("NATS_PORT", "tcp://10.0.0.1:4222")
	mustRead(t)
}

func TestEmbeddedNextToAServer(t *testing.T) {
	for _, test := range []struct{ variable, value string }{
		{"NATS_URL", "nats://127.0.0.1:4222"},
		{"NATS_CONTEXT", writeContext(t, `{"url": "nats://127.0.0.1:4222"}`)},
	} {
		natstest.ClearEnv(t)
		t.Setenv(test.variable, test.value)
		t.Setenv("DELAY_EMBEDDED_DIR", "/data")
		wantOneProblem(t, `DELAY_EMBEDDED_DIR="/data"`, test.variable)
	}
}

func TestCredentialsWithoutAServer(t *testing.T) {
	natstest.ClearEnv(t)
	t.Setenv("NATS_TOKEN", "s3cret")
	wantOneProblem(t, "NATS_TOKEN", "NATS_URL")
}

func TestReplicasOfTheEmbeddedServer(t *testing.T) {
	natstest.ClearEnv(t)
	t.Setenv("DELAY_STREAM_REPLICAS", "3")
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
		natstest.ClearEnv(t)
		t.Setenv("NATS_URL", test.url)
		t.Setenv("DELAY_PROVISION", test.provision)
		if got := mustRead(t).Broker.Provision; got != test.want {
			t.Errorf("NATS_URL=%q DELAY_PROVISION=%q: got %t, want %t", test.url, test.provision, got, test.want)
		}
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	const secret = "s3cret"
	for _, environ := range [][]string{
		{"NATS_URL", "nats://u:" + secret + "/@127.0.0.1:4222"},
		{"NATS_URL", "nats://" + secret + "%zz@127.0.0.1:4222"},
		{"NATS_URL", "nats://127.0.0.1", "NATS_PASSWORD", secret},
		{"NATS_TOKEN", secret},
		{"NATS_PASSWORD", secret, "NATS_USER", secret},
	} {
		natstest.ClearEnv(t)
		for i := 0; i < len(environ); i += 2 {
			t.Setenv(environ[i], environ[i+1])
		}
		_, err := Read()
		if err == nil {
			t.Errorf("%q: got no problem, want one", environ)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("%q: got the secret in %q", environ, err)
		}
	}
	for _, server := range []string{"nats://u:" + secret + "@h:4222", "nats://" + secret + "@h:4222"} {
		if got, err := link.WithoutUser(server); err != nil || got != "nats://h:4222" {
			t.Errorf("got %q, %v, want no user", got, err)
		}
	}
}

func TestHelpShowsEverySetting(t *testing.T) {
	var b strings.Builder
	if err := WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	names := variableNames()
	if got, want := len(names), 58; got != want {
		t.Errorf("got %d settings, want %d", got, want)
	}
	for line := range strings.Lines(b.String()) {
		if i := slices.Index(names, strings.Fields(line + " x")[0]); i >= 0 {
			names = slices.Delete(names, i, i+1)
			if len(strings.Fields(line)) < 3 {
				t.Errorf("got %q, want a meaning", line)
			}
		}
	}
	if len(names) > 0 {
		t.Errorf("got no line for %q", names)
	}
}
