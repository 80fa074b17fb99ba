package settings

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

func mustReadClient(t *testing.T) Client {
	t.Helper()
	c, err := ReadClient()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestClientConfig(t *testing.T) {
	for _, test := range []struct {
		name, value    string // one setting
		url, apiPrefix string
	}{
		{"DELAY_PREFIX", "delay", "nats://127.0.0.1:4222", "$JS.API"},
		{"DELAY_EMBEDDED_LISTEN", ":4333", "nats://127.0.0.1:4333", "$JS.API"},
		{"NATS_URL", "nats://a:1,nats://b:2", "nats://a:1,nats://b:2", "$JS.API"},
		{"DELAY_JS_DOMAIN", "hub", "nats://127.0.0.1:4222", "$JS.hub.API"},
		{"NATS_CONTEXT", writeContext(t, `{"url": "nats://c:3", "jetstream_domain": "leaf"}`), "nats://c:3", "$JS.leaf.API"},
		{"NATS_CONTEXT", writeContext(t, `{"jetstream_api_prefix": "hub.js"}`), nats.DefaultURL, "hub.js"},
	} {
		setEnv(t, test.name, test.value)
		c := mustReadClient(t)
		if c.Access.URL != test.url || c.APIPrefix != test.apiPrefix {
			t.Errorf("%s=%s: got %s and %s, want %s and %s", test.name, test.value,
				c.Access.URL, c.APIPrefix, test.url, test.apiPrefix)
		}
	}
}

// An external server excludes the settings of the embedded one. Only serve checks that.
func TestClientConfigIgnoresServeSettings(t *testing.T) {
	setEnv(t, "NATS_URL", "nats://a:1", "DELAY_EMBEDDED_DIR", t.TempDir(), "DELAY_ATTEMPTS", "none")
	mustReadClient(t)
}

func TestClientConfigProblems(t *testing.T) {
	setEnv(t,
		"DELAY_PREFIX", "No",
		"DELAY_JS_DOMAIN", "a.b",
		"NATS_PASSWORD", "s3cret",
		"DELAY_INBOX_PREFIX", "a.*")
	_, err := ReadClient()
	for _, part := range []string{"DELAY_PREFIX", "DELAY_JS_DOMAIN", "NATS_PASSWORD", "DELAY_INBOX_PREFIX"} {
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want an ErrConfig with %s", err, part)
		}
	}
}

func TestDialAddress(t *testing.T) {
	for listen, want := range map[string]string{
		":8422": "127.0.0.1:8422", "0.0.0.0:8422": "127.0.0.1:8422", "[::]:8422": "127.0.0.1:8422",
		"127.0.0.1:1": "127.0.0.1:1", "[::1]:2": "[::1]:2", "broker:3": "broker:3",
	} {
		if got := dialAddress(listen); got != want {
			t.Errorf("%q: got %q, want %q", listen, got, want)
		}
	}
}
