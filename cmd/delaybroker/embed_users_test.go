package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"delaybroker/test/natstest"
)

const embeddedSecret = "s3cret-of-the-broker"

// protectedEnv sets up an embedded server on a known port, with a user.
func protectedEnv(t *testing.T) (port int) {
	t.Helper()
	embeddedEnv(t)
	port = freePort(t)
	t.Setenv("DELAY_EMBEDDED_LISTEN", fmt.Sprintf("127.0.0.1:%d", port))
	t.Setenv("DELAY_EMBEDDED_USER", "orders")
	t.Setenv("DELAY_EMBEDDED_PASSWORD", embeddedSecret)
	return port
}

// wantRefused checks that a server refuses the login.
func wantRefused(t *testing.T, url string, options ...nats.Option) {
	t.Helper()
	nc, err := nats.Connect(url, options...)
	if err == nil {
		nc.Close()
	}
	if !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("got %v, want an authorization violation", err)
	}
}

// The embedded server accepts only its user: for the broker, for commands with the same settings, and for clients with
// the password. No output has the password.
func TestEmbeddedUser(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	port := protectedEnv(t)
	probes := natstest.FreeAddress(t)
	t.Setenv("DELAY_HTTP_ADDR", probes)
	t.Setenv("DELAY_LOG_LEVEL", "debug")
	r := startReady(t)
	url := r.ready["server"].(string)
	defer r.stop(t)
	wantRefused(t, url)
	wantRefused(t, url, nats.UserInfo("orders", "wrong"))
	nc, js := connect(t, fmt.Sprintf("nats://orders:%s@127.0.0.1:%d", embeddedSecret, port))
	sub := subscribe(t, nc, "x")
	publish(t, js, "delay.1s.x", "as a user")
	wantMessage(t, sub, "as a user")

	mustRunCommand(t, "", "levels")
	mustRunCommand(t, "", "pub", "x", "by a verb", "--in", "1s")
	wantMessage(t, sub, "by a verb")
	(&testServer{t: t}).doctor().want("connection", "ok", "127.0.0.1")

	t.Setenv("DELAY_EMBEDDED_PASSWORD", "wrong")
	for _, args := range []string{"levels", "pub x y --in 1s", "sub x", "dead ls", "provision"} {
		wantCommandError(t, 1, []string{"Authorization Violation", "DELAY_EMBEDDED_USER and DELAY_EMBEDDED_PASSWORD"},
			strings.Fields(args)...)
	}
	d := (&testServer{t: t}).doctor()
	d.want("connection", "critical", "Authorization Violation")
	if do := d.Findings[0].Do; !strings.Contains(do, "DELAY_EMBEDDED_USER") {
		t.Errorf("doctor: got %q, want the settings", do)
	}
	shown := r.log.String()
	for _, path := range []string{"/status", "/readyz", "/metrics"} {
		shown += bodyOf(t, probes, path)
	}
	if strings.Contains(shown, embeddedSecret) {
		t.Errorf("got the password in\n%s", shown)
	}
}

// Accounts, TLS and limits come from the file. The broker, and commands with its settings, use the user of the
// settings. They trust the certificate itself, so they need no authority and no host name for it.
func TestEmbeddedConfigFile(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	port := protectedEnv(t)
	dir := t.TempDir()
	certify(t, dir)
	t.Setenv("ORDERS_PASSWORD", embeddedSecret)
	t.Setenv("DELAY_EMBEDDED_CONFIG", writeFile(t, "nats.conf", tlsSection(dir, "")+`
		max_payload: 256KB
		jetstream { max_file: 64MB }
		accounts {
		  DELAY {
		    jetstream: enabled
		    users: [
		      {user: orders, password: $ORDERS_PASSWORD}
		      {user: shop, password: shop, permissions: {publish: ["delay.*.shop.>"], subscribe: ["shop.>", "_INBOX.>"]}}
		    ]
		  }
		}`))
	r := startReady(t)
	url := fmt.Sprintf("nats://127.0.0.1:%d", port)
	if nc, err := nats.Connect(url, nats.UserInfo("shop", "shop")); err == nil {
		nc.Close()
		t.Error("got a connection to a server with an unknown certificate")
	}
	ca := nats.RootCAs(filepath.Join(dir, "server.pem"))
	wantRefused(t, url, ca)
	nc, err := nats.Connect(url, ca, nats.UserInfo("shop", "shop"))
	natstest.NoError(t, err)
	defer nc.Close()
	if got, want := nc.MaxPayload(), int64(256<<10); got != want {
		t.Errorf("max_payload: got %d, want %d", got, want)
	}
	sub := subscribe(t, nc, "shop.x")
	natstest.NoError(t, nc.Publish("delay.1s.shop.x", []byte("by TLS")))
	wantMessage(t, sub, "by TLS")

	mustRunCommand(t, "", "levels")
	mustRunCommand(t, "", "pub", "shop.x", "by a verb", "--in", "1s")
	wantMessage(t, sub, "by a verb")
	config := os.Getenv("DELAY_EMBEDDED_CONFIG")
	os.Unsetenv("DELAY_EMBEDDED_CONFIG")
	wantCommandError(t, 1, []string{"certificate", "set DELAY_EMBEDDED_CONFIG"}, "levels")
	t.Setenv("DELAY_EMBEDDED_CONFIG", config)
	r.stop(t)
	if strings.Contains(r.log.String(), embeddedSecret) {
		t.Errorf("got the password in\n%s", r.log)
	}

	wantBrokerRefused(t)
}

// wantBrokerRefused starts the program with a password that is not in the file.
func wantBrokerRefused(t *testing.T) {
	t.Helper()
	t.Setenv("DELAY_EMBEDDED_PASSWORD", "wrong-"+embeddedSecret)
	r := start(t)
	err := r.end(t)
	if got := exitCode(err); got != 2 || !strings.Contains(err.Error(), "does not accept the broker") ||
		!strings.Contains(err.Error(), "DELAY_EMBEDDED_USER and DELAY_EMBEDDED_PASSWORD to a user") {
		t.Errorf("got exit code %d with %v, want 2 and the settings to correct", got, err)
	}
	if strings.Contains(err.Error()+r.log.String(), embeddedSecret) {
		t.Errorf("got the password in %v\n%s", err, r.log)
	}
}

// The settings of the broker's user may be an nkey or a token instead of a password.
func TestEmbeddedConfigOtherLogins(t *testing.T) {
	embeddedEnv(t)
	t.Setenv("DELAY_EMBEDDED_CONFIG", writeFile(t, "nats.conf", `authorization { token: "`+embeddedSecret+`" }`))
	err := start(t).end(t)
	if exitCode(err) != 2 || !strings.Contains(err.Error(), "NATS_CREDS, NATS_NKEY or NATS_TOKEN") {
		t.Errorf("without a token: got %v, want the settings to correct", err)
	}
	t.Setenv("NATS_TOKEN", embeddedSecret)
	r := startReady(t)
	wantRefused(t, r.ready["server"].(string))
	r.stop(t)
}

// Serve and doctor warn if other hosts can reach an embedded server that requires no user.
func TestEmbeddedExposed(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	dir := t.TempDir()
	certify(t, dir)
	certificate, key, ask := clientCertificate(t)
	for _, test := range []struct {
		name, file string
		user       bool
		want       bool
	}{
		{"no user", "", false, true},
		{"a user", "", true, false},
		{"users of the file", "authorization { user: orders, password: " + embeddedSecret + " }", true, false},
		{"no_auth_user", "no_auth_user: any, authorization { users: [{user: any, password: any}] }", false, true},
		{"only limits", "max_connections: 100", false, true},
		{"certificates", tlsSection(dir, ask), false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			port := protectedEnv(t)
			t.Setenv("DELAY_EMBEDDED_LISTEN", fmt.Sprintf("0.0.0.0:%d", port))
			if !test.user {
				os.Unsetenv("DELAY_EMBEDDED_USER")
				os.Unsetenv("DELAY_EMBEDDED_PASSWORD")
			}
			if test.file != "" {
				t.Setenv("DELAY_EMBEDDED_CONFIG", writeFile(t, "nats.conf", test.file))
			}
			if strings.Contains(test.file, "verify") {
				wantCommandError(t, 2, []string{"DELAY_EMBEDDED_CONFIG", "set NATS_CERT and NATS_KEY"}, "doctor")
				t.Setenv("NATS_CERT", certificate)
				t.Setenv("NATS_KEY", key)
			}
			r := startReady(t)
			defer r.stop(t)
			if got := strings.Contains(r.log.String(), "without a password"); got != test.want {
				t.Errorf("serve warns: got %t, want %t", got, test.want)
			}
			out, _, _ := runCommand(t, "", "doctor", "--json")
			if got := strings.Contains(out, "without a password"); got != test.want {
				t.Errorf("doctor warns: got %t, want %t\n%s", got, test.want, out)
			}
		})
	}
}
