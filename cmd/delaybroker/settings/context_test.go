package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"delaybroker/cmd/delaybroker/links"
	"delaybroker/test/natstest"
)

func writeContext(t *testing.T, text string) (path string) {
	t.Helper()
	return writeFile(t, "some.json", text)
}

func TestContext(t *testing.T) {
	natstest.ClearEnv(t)
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	dir := filepath.Join(home, "nats", "context")
	natstest.NoError(t, os.MkdirAll(dir, 0o700))
	text := `{
		"url": "nats://a:4222,nats://b:4222",
		"user": "me",
		"password": "s3cret",
		"jetstream_domain": "hub",
		"inbox_prefix": "_INBOX_me"
	}`
	natstest.NoError(t, os.WriteFile(filepath.Join(dir, "prod.json"), []byte(text), 0o600))
	// The selected context is for interactive use, and is ignored.
	natstest.NoError(t, os.WriteFile(filepath.Join(home, "nats", "context.txt"), []byte("prod"), 0o600))
	if mustRead(t).Embedded == nil {
		t.Error("got the selected context, want it ignored")
	}

	t.Setenv("NATS_CONTEXT", "prod")
	t.Setenv("NATS_USER", "somebody")
	c := mustRead(t)
	options := nats.GetDefaultOptions()
	for _, o := range c.Access.Options {
		natstest.NoError(t, o(&options))
	}
	user, password := options.UserInfo()
	for _, test := range []struct{ name, got, want string }{
		{"url", c.Access.URL, "nats://a:4222,nats://b:4222"},
		{"user", user, "somebody"}, // the environment takes precedence
		{"password", password, "s3cret"},
		{"inbox", options.InboxPrefix, "_INBOX_me"},
		{"domain", c.Broker.JSDomain, "hub"},
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
		{writeContext(t, `{"socks_proxy": "127.0.0.1:1080"}`), "socks5://"},
		{writeContext(t, `{"socks_proxy": "http://127.0.0.1:1080"}`), "socks5://"},
		{writeContext(t, `{"creds": "/nowhere/creds"}`), "open /nowhere/creds"},
	} {
		setEnv(t, "XDG_CONFIG_HOME", t.TempDir(), "NATS_CONTEXT", test.context)
		wantOneProblem(t, test.want)
	}
}

// optionsOf returns the options of a connection of a link.
func optionsOf(t *testing.T, a links.Access) nats.Options {
	t.Helper()
	options := nats.GetDefaultOptions()
	for _, o := range a.Options {
		natstest.NoError(t, o(&options))
	}
	return options
}

func userOf(t *testing.T, a links.Access) string {
	t.Helper()
	handler := optionsOf(t, a).UserInfo
	if handler == nil {
		return ""
	}
	user, _ := handler()
	return user
}

// A rotated password in the context needs no restart.
func TestContextIsReadForEachLogin(t *testing.T) {
	natstest.ClearEnv(t)
	path := writeContext(t, `{"user": "me", "password": "0ld"}`)
	t.Setenv("NATS_CONTEXT", path)
	login := optionsOf(t, mustRead(t).Access).UserInfo
	for _, test := range []struct{ context, want string }{
		{`{"user": "me", "password": "0ld"}`, "me 0ld"},
		{`{"user": "me", "password": "n3w"}`, "me n3w"},
		{`{"user": "me", "passw`, "me 0ld"}, // incomplete, while it is written
	} {
		natstest.NoError(t, os.WriteFile(path, []byte(test.context), 0o600))
		user, password := login()
		if got := user + " " + password; got != test.want {
			t.Errorf("%s: got %q, want %q", test.context, got, test.want)
		}
	}
}

// TestContextOptions: a key of a context becomes the option of nats.go.
func TestContextOptions(t *testing.T) {
	seed := filepath.Join(t.TempDir(), "seed")
	user, err := nkeys.CreateUser()
	natstest.NoError(t, err)
	text, err := user.Seed()
	natstest.NoError(t, err)
	natstest.NoError(t, os.WriteFile(seed, text, 0o600))
	setEnv(t, "NATS_CONTEXT", writeContext(t, fmt.Sprintf(`{
		"url": "nats://a:4222,", "tls_first": true, "socks_proxy": "socks5://127.0.0.1:1", "user_jwt": "eyJ", "nkey": %q
	}`, seed)))
	o := optionsOf(t, mustRead(t).Access)
	token, _ := o.UserJWT()
	signature, err := o.SignatureCB([]byte("nonce"))
	natstest.NoError(t, err)
	if err := user.Verify([]byte("nonce"), signature); err != nil || token != "eyJ" || !o.TLSHandshakeFirst {
		t.Errorf("got the token %q, TLS first %v, and a signature with %v", token, o.TLSHandshakeFirst, err)
	}
	if _, err := o.CustomDialer.Dial("tcp", "a:4222"); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("got %v, want a dial of the proxy", err)
	}

	// A bearer's token needs no signature.
	setEnv(t, "NATS_CONTEXT", writeContext(t, `{"user_jwt": "eyJ"}`))
	if signature, err := optionsOf(t, mustRead(t).Access).SignatureCB([]byte("nonce")); err != nil || len(signature) > 0 {
		t.Errorf("got the signature %q and %v, want none", signature, err)
	}

	// A link without its own servers connects as the others do.
	setEnv(t, "NATS_URL", "a:4222, b:4222 ,", "NATS_TLS_FIRST", "on", "DELAY_READ_CONTEXT", writeContext(t, `{}`),
		"DELAY_WRITE_CONTEXT", writeContext(t, `{"url": "nats://c"}`))
	c := mustRead(t)
	for _, test := range []struct {
		link links.Access
		url  string
		want bool
	}{
		{c.Access, "a:4222, b:4222", true}, {c.LinkAccess["read"], "nats://a:4222,nats://b:4222", true},
		{c.LinkAccess["write"], "nats://c", false},
	} {
		if got := optionsOf(t, test.link).TLSHandshakeFirst; got != test.want || test.link.URL != test.url {
			t.Errorf("%q: TLS first is %v, want %q and %v", test.link.URL, got, test.url, test.want)
		}
	}
}

// A link with its own context takes all settings from it. The variables NATS_* belong to another user.
func TestLinkContexts(t *testing.T) {
	setEnv(t,
		"NATS_URL", "nats://control:s3cret@a:4222, b:4222",
		"NATS_USER", "control",
		"NATS_PASSWORD", "s3cret",
		"DELAY_INBOX_PREFIX", "_INBOX_all",
		"DELAY_READ_CONTEXT", writeContext(t, `{"user": "reader", "password": "r", "inbox_prefix": "_INBOX_reader"}`),
		"DELAY_DELIVER_CONTEXT", writeContext(t, `{"url": "nats://c:4222", "token": "t"}`))
	c := mustRead(t)
	read, deliver := c.LinkAccess["read"], c.LinkAccess["deliver"]
	if _, found := c.LinkAccess["write"]; found || len(c.LinkAccess) != 2 {
		t.Errorf("got %d links with their own context, want read and deliver", len(c.LinkAccess))
	}
	for _, test := range []struct{ name, got, want string }{
		{"url of read", read.URL, "nats://a:4222,nats://b:4222"}, // the servers of control, without the users
		{"user of read", userOf(t, read), "reader"},
		{"inbox of read", optionsOf(t, read).InboxPrefix, "_INBOX_reader"},
		{"url of deliver", deliver.URL, "nats://c:4222"},
		{"user of deliver", userOf(t, deliver), ""},
		{"token of deliver", optionsOf(t, deliver).TokenHandler(), "t"},
		{"inbox of deliver", optionsOf(t, deliver).InboxPrefix, "_INBOX_all"},
		{"user of the others", userOf(t, c.Access), "control"},
		{"inbox of the others", optionsOf(t, c.Access).InboxPrefix, "_INBOX_all"},
	} {
		if test.got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, test.got, test.want)
		}
	}

	// The inbox prefix in control's context belongs to control's user only.
	setEnv(t,
		"NATS_CONTEXT", writeContext(t, `{"inbox_prefix": "_INBOX_control"}`),
		"DELAY_WRITE_CONTEXT", writeContext(t, `{"user": "writer", "password": "w"}`))
	if got := optionsOf(t, mustRead(t).LinkAccess["write"]).InboxPrefix; got != "" {
		t.Errorf("inbox of write: got %q, want the default", got)
	}
}

func TestLinkContextProblems(t *testing.T) {
	for _, test := range []struct{ context, want string }{
		{"nosuch", "unknown context"},
		{writeContext(t, `{"socks_proxy": "proxy:1080"}`), "socks5://"},
		{writeContext(t, `{"creds": "/nowhere/creds"}`), "open /nowhere/creds"},
		{writeContext(t, `{"inbox_prefix": "a.*"}`), "invalid custom prefix"},
		{writeContext(t, `{"jetstream_domain": "leaf"}`), `jetstream_domain is "leaf", and "hub" for the other links`},
		{
			writeContext(t, `{"jetstream_api_prefix": "JS.API"}`),
			`jetstream_api_prefix is "JS.API", and "" for the other links`,
		},
	} {
		setEnv(t, "XDG_CONFIG_HOME", t.TempDir(), "NATS_URL", "nats://127.0.0.1:4222", "DELAY_JS_DOMAIN", "hub")
		t.Setenv("NATS_CREDS", "") // the link control has no credentials
		t.Setenv("DELAY_WRITE_CONTEXT", test.context)
		wantOneProblem(t, "DELAY_WRITE_CONTEXT", test.want)
	}
	// All problems of the three contexts are reported together.
	setEnv(t, "NATS_URL", "nats://127.0.0.1:4222")
	for _, variable := range []string{"DELAY_READ_CONTEXT", "DELAY_WRITE_CONTEXT", "DELAY_DELIVER_CONTEXT"} {
		t.Setenv(variable, writeContext(t, `{"password": "p", "socks_proxy": "x"}`))
	}
	if got, want := len(problemsOf(t)), 6; got != want {
		t.Errorf("got %d problems, want %d: %q", got, want, problemsOf(t))
	}
	// The embedded server does not support users for single links.
	setEnv(t, "DELAY_DELIVER_CONTEXT", "prod")
	wantOneProblem(t, "DELAY_DELIVER_CONTEXT", "would be embedded")
}
