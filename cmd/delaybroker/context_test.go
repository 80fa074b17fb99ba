package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
)

func writeContext(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "some.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestContext(t *testing.T) {
	clearEnv(t)
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	dir := filepath.Join(home, "nats", "context")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	text := `{"url": "nats://a:4222,nats://b:4222", "user": "me", "password": "s3cret", "jetstream_domain": "hub", "inbox_prefix": "_INBOX_me"}`
	if err := os.WriteFile(filepath.Join(dir, "prod.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	// The selected context is for people.
	if err := os.WriteFile(filepath.Join(home, "nats", "context.txt"), []byte("prod"), 0o600); err != nil {
		t.Fatal(err)
	}
	if mustRead(t).embed == nil {
		t.Error("got the selected context, want it not to matter")
	}

	t.Setenv("NATS_CONTEXT", "prod")
	t.Setenv("NATS_USER", "somebody")
	c := mustRead(t)
	options := nats.GetDefaultOptions()
	for _, o := range c.access.options {
		if err := o(&options); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ name, got, want string }{
		{"url", c.access.url, "nats://a:4222,nats://b:4222"},
		{"user", options.User, "somebody"}, // the environment wins
		{"password", options.Password, "s3cret"},
		{"inbox", options.InboxPrefix, "_INBOX_me"},
		{"domain", c.broker.JSDomain, "hub"},
	} {
		if test.got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, test.got, test.want)
		}
	}
}

func TestContextProblems(t *testing.T) {
	for _, test := range []struct{ context, want string }{
		{"nosuch", "unknown context"},
		{"../nosuch", "invalid context name"},
		{"./nosuch.json", "no such file"},
		{writeContext(t, `{`), "unexpected end of JSON"},
		{writeContext(t, `{"ca": "/nowhere/ca"}`), "/nowhere/ca"},
		{writeContext(t, `{"url": "nats://me:s3%cret@a"}`), "not a URL"},
		{writeContext(t, `{"user_jwt": "eyJ"}`), "user_jwt is not supported"},
		{writeContext(t, `{"creds": "/nowhere/creds"}`), "open /nowhere/creds"},
	} {
		clearEnv(t)
		t.Setenv("XDG_CONFIG_HOME", t.TempDir())
		t.Setenv("NATS_CONTEXT", test.context)
		wantOneProblem(t, test.want)
	}
}
