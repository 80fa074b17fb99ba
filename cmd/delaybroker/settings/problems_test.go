package settings

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"delaybroker/broker"
	"delaybroker/broker/link"
)

// TestProblemText: an error names the variable, the value and the bound, not the field of a struct.
func TestProblemText(t *testing.T) {
	for _, test := range []struct{ name, value, want string }{
		{"DELAY_ATTEMPTS", "0", `DELAY_ATTEMPTS="0": want a whole number from 1 to 1000000`},
		{"DELAY_ATTEMPTS", "many", `DELAY_ATTEMPTS="many": want a whole number from 1 to 1000000`},
		{"DELAY_ATTEMPTS", "a.b=0,20",
			`DELAY_ATTEMPTS="a.b=0,20": attempts 0 for a.b: want a whole number from 1 to 1000000`},
		{"DELAY_ATTEMPTS", "a.b=x", `DELAY_ATTEMPTS="a.b=x": attempts "a.b=x": want pattern=number, such as shop.mail=5,20`},
		{"DELAY_RETRY", "1s;5s", `DELAY_RETRY="1s;5s": 2 defaults: keep one, and write the others as pattern=waits`},
		{"DELAY_STREAM_REPLICAS", "6", `DELAY_STREAM_REPLICAS="6": want auto, or a whole number from 1 to 5`},
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
		setEnv(t, "NATS_URL", "nats://127.0.0.1:4222", test.name, test.value)
		if got := problemsOf(t); len(got) != 1 || got[0] != test.want {
			t.Errorf("got  %q\nwant %q", got, test.want)
		}
	}
}

// TestEveryFieldHasAVariable: a problem with a field without a variable would be shown without a name.
func TestEveryFieldHasAVariable(t *testing.T) {
	variables := new(settings).byField()
	// Fields that no setting sets, or that the command checks itself.
	ignored := []string{
		"Ladder", "IntakeDurations", "RetryLadder", "Provision", "TimersOptional", "HoldMessages", "APIPrefix", "Place",
		"Leaser", "Log",
		"History", "Ended", "Calls", "Version", "Format",
	}
	for field := range reflect.TypeFor[broker.Config]().Fields() {
		if _, ok := variables[field.Name]; ok == slices.Contains(ignored, field.Name) {
			t.Errorf("%s has a variable: %v", field.Name, ok)
		}
	}
}

// wrong has an invalid value for each setting that can be invalid.
var wrong = map[string]string{
	"NATS_CREDS":               "/nowhere/creds",
	"NATS_NKEY":                "/nowhere/seed",
	"NATS_CERT":                "/nowhere/cert",
	"NATS_CA":                  "/nowhere/ca",
	"NATS_TLS_FIRST":           "yes",
	"NATS_PASSWORD":            "x",
	"DELAY_PREFIX":             "Delay",
	"DELAY_LEVELS":             "1x",
	"DELAY_MAX_DELAY":          "0s",
	"DELAY_ATTEMPTS":           "0",
	"DELAY_DELIVER":            "maybe",
	"DELAY_RETRY":              "1s,x",
	"DELAY_RATE":               "a..b=1",
	"DELAY_RATE_BY_KEY":        "a..b=1",
	"DELAY_IN_PROGRESS":        "a.b=0",
	"DELAY_IN_PROGRESS_BY_KEY": "a..b=1",
	"DELAY_SLACK":              "10",
	"DELAY_REPLY_TIMEOUT":      "2h",
	"DELAY_MAX_PENDING":        "-1",
	"DELAY_MEMORY":             "1KiB",
	"DELAY_MAX_PENDING_BYTES":  "1 zettabite",
	"DELAY_STORAGE":            "1 zettabite",
	"DELAY_TARGETS":            "a..b",
	"DELAY_HEADER_TARGETS":     ">.a",
	"DELAY_DEDUP_WINDOW":       "500",
	"DELAY_STREAM_REPLICAS":    "6",
	"DELAY_SECRET":             "long-enough-for-16-bytes,too-short",
	"DELAY_PROVISION":          "maybe",
	"DELAY_INSTANCE":           strings.Repeat("x", 65),
	"DELAY_JS_DOMAIN":          "a.b",
	"DELAY_JOURNAL":            "a fortnight",
	"DELAY_JOURNAL_BYTES":      "none",
	"DELAY_TIMERS":             "perhaps",
	"DELAY_REPLY_PREFIXES":     "_INBOX.>",
	"DELAY_SCHEDULES":          "plans.>",
	"DELAY_TIMER_HISTORY":      "for ever",
	"DELAY_INBOX_PREFIX":       "inbox.>",
	"DELAY_HTTP_ADDR":          "8422",
	"DELAY_SHUTDOWN_GRACE":     "2h",
	"DELAY_LOG_LEVEL":          "loud",
	"DELAY_LOG_FORMAT":         "xml",
	"DELAY_EMBEDDED_LISTEN":    "x",
	"DELAY_EMBEDDED_DIR":       "x",
	"DELAY_EMBEDDED_SYNC":      "x",
	"DELAY_EMBEDDED_USER":      "me",
	"DELAY_EMBEDDED_PASSWORD":  "s3cret",
	"DELAY_EMBEDDED_CONFIG":    "nats.conf",
	"DELAY_READ_CONTEXT":       "noreader",
	"DELAY_WRITE_CONTEXT":      "nowriter",
	"DELAY_DELIVER_CONTEXT":    "./nodeliverer.json",
	"DELAY_HTTP_CONTEXT":       "nolooker",
	"DELAY_HTTP_ACTIONS":       "perhaps",
	"DELAY_HTTP_TOKEN":         "ann:too-short",
	"DELAY_HTTP_ROWS":          "some",
	"DELAY_HTTP_BODIES":        "naked",
	"DELAY_HTTP_HOSTS":         "https://delay.example.com",
}

func TestAllProblemsAtOnce(t *testing.T) {
	setEnv(t, "NATS_URL", "nats://127.0.0.1:4222")
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

// TestEmptyListElements: an empty element of a list may be a forgotten name.
func TestEmptyListElements(t *testing.T) {
	for _, name := range []string{"DELAY_TARGETS", "DELAY_HEADER_TARGETS"} {
		for value, ok := range map[string]bool{
			"orders.>": true, "orders.>,mail.*": true, "orders.> mail.*": true, "orders.>, mail.*": true,
			"orders.>,": false, ",orders.>": false, "orders.>,,mail.*": false, ",": false,
		} {
			setEnv(t, name, value)
			if _, err := Read(); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), name) {
				t.Errorf("%s=%q: got %v", name, value, err)
			}
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
		setEnv(t, environ...)
		_, err := Read()
		if err == nil {
			t.Errorf("%q: got no problem, want one", environ)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("%q: got the secret in %q", environ, err)
		}
	}
	for _, server := range []string{"nats://u:" + secret + "@h:4222", "nats://" + secret + "@h:4222"} {
		if got, err := link.StripUser(server); err != nil || got != "nats://h:4222" {
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
	if got, want := len(names), 61; got != want {
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
