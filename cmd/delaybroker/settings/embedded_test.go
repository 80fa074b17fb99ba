package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const embeddedSecret = "s3cret-of-the-broker"

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEmbeddedConfigRefused(t *testing.T) {
	for _, test := range []struct {
		text string
		want []string
	}{
		{"listen: 0.0.0.0:4222", []string{"listen is set", "DELAY_EMBEDDED_LISTEN"}},
		{"PORT: 4223", []string{"port is set", "DELAY_EMBEDDED_LISTEN"}},
		{`jetstream { store_dir: "/x" }`, []string{"jetstream.store_dir is set", "DELAY_EMBEDDED_DIR"}},
		{`store_dir: "/x"`, []string{"store_dir is set", "DELAY_EMBEDDED_DIR"}},
		{"jetstream { sync_interval: always }", []string{"jetstream.sync_interval is set", "DELAY_EMBEDDED_SYNC"}},
		{"jetstream { domain: hub }", []string{"jetstream.domain is set", "has no domain"}},
		{"jetstream: disabled", []string{"jetstream is disabled"}},
		{"jetstream { enabled: false }", []string{"jetstream is disabled"}},
		{"cluster { port: 6222 }", []string{"cluster is set", "NATS_URL"}},
		{`leafnodes { remotes: [{url: "nats://hub"}] }`, []string{"leafnodes is set", "NATS_URL"}},
		{`log_file: "/x"`, []string{"log_file is set", "DELAY_LOG_LEVEL"}},
		{"server_name: mine", []string{"server_name is set"}},
		{"authorisation: {}", []string{"unknown field", "authorisation"}},
		{"authorization { user: a, password: $" + embeddedSecret + " }", []string{"line 1", "needs quotes"}},
		{"authorization { user: a, password: ", []string{"DELAY_EMBEDDED_CONFIG"}},
	} {
		setEnv(t, "DELAY_EMBEDDED_CONFIG", writeFile(t, "nats.conf", test.text))
		wantOneProblem(t, append(test.want, "DELAY_EMBEDDED_CONFIG=")...)
		if _, err := Read(); strings.Contains(fmt.Sprint(err), embeddedSecret) {
			t.Errorf("got a password in %v", err)
		}
	}
	setEnv(t, "DELAY_EMBEDDED_CONFIG", filepath.Join(t.TempDir(), "none.conf"))
	wantOneProblem(t, "DELAY_EMBEDDED_CONFIG=", "no such file")
}

// TestEmbeddedOpenListener: an address for WebSocket in the file counts as exposed, unless the settings have a user.
func TestEmbeddedOpenListener(t *testing.T) {
	file := writeFile(t, "nats.conf", "websocket { port: 9222, no_tls: true }")
	setEnv(t, "DELAY_EMBEDDED_CONFIG", file)
	if got := mustRead(t).Embedded.ExposedAddress(); got != ":9222" {
		t.Errorf("without a user, the exposed address is %q, want :9222", got)
	}
	setEnv(t, "DELAY_EMBEDDED_CONFIG", file, "DELAY_EMBEDDED_USER", "me", "DELAY_EMBEDDED_PASSWORD", embeddedSecret)
	if got := mustRead(t).Embedded.ExposedAddress(); got != "" {
		t.Errorf("with a user, the exposed address is %q, want none", got)
	}
}

func TestEmbeddedUserRefused(t *testing.T) {
	for _, test := range []struct {
		environ []string
		want    []string
	}{
		{
			[]string{"DELAY_EMBEDDED_USER", "me"},
			[]string{`DELAY_EMBEDDED_USER="me"`, "without DELAY_EMBEDDED_PASSWORD"},
		},
		{
			[]string{"DELAY_EMBEDDED_PASSWORD", embeddedSecret},
			[]string{"DELAY_EMBEDDED_PASSWORD:", "without DELAY_EMBEDDED_USER"},
		},
		{
			[]string{"DELAY_EMBEDDED_USER", "me", "DELAY_EMBEDDED_PASSWORD", "$2a$11$" + embeddedSecret},
			[]string{"instead of its hash"},
		},
		{
			[]string{"NATS_USER", "me"},
			[]string{"NATS_USER", "DELAY_EMBEDDED_USER"},
		},
		{
			[]string{"NATS_TOKEN", embeddedSecret},
			[]string{"NATS_TOKEN", "DELAY_EMBEDDED_CONFIG"},
		},
		{
			[]string{"NATS_URL", "nats://h", "DELAY_EMBEDDED_PASSWORD", embeddedSecret},
			[]string{"DELAY_EMBEDDED_PASSWORD:", "NATS_URL is set"},
		},
	} {
		setEnv(t, test.environ...)
		wantOneProblem(t, test.want...)
		if _, err := Read(); strings.Contains(fmt.Sprint(err), embeddedSecret) {
			t.Errorf("got the password in %v", err)
		}
	}
}
