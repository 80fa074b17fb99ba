package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/cmd/delaybroker/embedded"
	"delaybroker/cmd/delaybroker/settings"
	"delaybroker/test/natstest"
)

const embeddedSecret = "s3cret-of-the-broker"

// protectedEnv sets up an embedded server with a user, on a known port.
func protectedEnv(t *testing.T) (port int) {
	t.Helper()
	embeddedEnv(t)
	port = freePort(t)
	t.Setenv("DELAY_EMBEDDED_LISTEN", fmt.Sprintf("127.0.0.1:%d", port))
	t.Setenv("DELAY_EMBEDDED_USER", "orders")
	t.Setenv("DELAY_EMBEDDED_PASSWORD", embeddedSecret)
	return port
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// wantRefused wants an authorization error from a server.
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

// The embedded server accepts only its user: the broker, commands with the same settings, and clients with the
// password. No output contains the password.
func TestEmbeddedUser(t *testing.T) {
	natstest.Long(t)
	if apart(t) {
		return
	}
	port := protectedEnv(t)
	probes := natstest.FreeAddress(t)
	t.Setenv("DELAY_HTTP_ADDR", probes)
	t.Setenv("DELAY_LOG_LEVEL", "debug")
	r := start(t)
	url := r.log.await(t, "ready")["server"].(string)
	defer r.stop(t)
	wantRefused(t, url)
	wantRefused(t, url, nats.UserInfo("orders", "wrong"))
	nc, js := connect(t, fmt.Sprintf("nats://orders:%s@127.0.0.1:%d", embeddedSecret, port))
	sub := subscribe(t, nc, "x")
	publish(t, js, "delay.1s.x", "as a user")
	wantMessage(t, sub, "as a user")

	mustRunVerb(t, "", "levels")
	mustRunVerb(t, "", "pub", "x", "by a verb", "--in", "1s")
	wantMessage(t, sub, "by a verb")
	(&operated{t: t}).doctor().want("connection", "ok", "127.0.0.1")

	t.Setenv("DELAY_EMBEDDED_PASSWORD", "wrong")
	for _, args := range []string{"levels", "pub x y --in 1s", "sub x", "dead ls", "provision"} {
		wantVerbError(t, 1, []string{"Authorization Violation", "DELAY_EMBEDDED_USER and DELAY_EMBEDDED_PASSWORD"},
			strings.Fields(args)...)
	}
	d := (&operated{t: t}).doctor()
	d.want("connection", "critical", "Authorization Violation")
	if do := d.Findings[0].Do; !strings.Contains(do, "DELAY_EMBEDDED_USER") {
		t.Errorf("doctor: got %q, want the settings", do)
	}
	said := r.log.String()
	for _, path := range []string{"/status", "/readyz", "/metrics"} {
		said += bodyOf(t, probes, path)
	}
	if strings.Contains(said, embeddedSecret) {
		t.Errorf("got the password in\n%s", said)
	}
}

// A server that is restarted after its disk was full still knows its user. The broker's connections still trust the
// server, even if its certificate was replaced meanwhile.
func TestEmbeddedRestartKeepsUsers(t *testing.T) {
	if apart(t) {
		return
	}
	natstest.ClearEnv(t)
	dir := t.TempDir()
	certify(t, dir)
	certificate, key, ask := clientCertificate(t)
	t.Setenv("NATS_CERT", certificate)
	t.Setenv("NATS_KEY", key)
	t.Setenv("DELAY_EMBEDDED_CONFIG", writeFile(t, "nats.conf", tlsSection(dir, ask)))
	t.Setenv("DELAY_EMBEDDED_USER", "orders")
	t.Setenv("DELAY_EMBEDDED_PASSWORD", embeddedSecret)
	t.Setenv("DELAY_EMBEDDED_LISTEN", "127.0.0.1:0")
	t.Setenv("DELAY_EMBEDDED_DIR", t.TempDir())
	cfg, err := settings.Read()
	if err != nil {
		t.Fatal(err)
	}
	s, err := embedded.Start(*cfg.Embedded, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	to := cfg.Access.At(s.URL(), s.TLS())
	nc, err := nats.Connect(to.URL, append(to.Options, nats.ReconnectWait(10*time.Millisecond))...)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	certify(t, dir) // the old one was about to expire
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "connection after the restart", func() bool { return nc.IsConnected() && nc.Flush() == nil })
	if _, err := nats.Connect(s.URL(), nats.UserInfo("orders", embeddedSecret)); err == nil {
		t.Error("got a connection without a certificate")
	}
}

// Accounts, TLS and limits are those of the configuration file. The broker, and commands with its settings, connect as
// the user of the settings. They know the certificate, so they need no authority for it, and no host name in it.
func TestEmbeddedConfigFile(t *testing.T) {
	natstest.Long(t)
	if apart(t) {
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
	r := start(t)
	r.log.await(t, "ready")
	url := fmt.Sprintf("nats://127.0.0.1:%d", port)
	if nc, err := nats.Connect(url, nats.UserInfo("shop", "shop")); err == nil {
		nc.Close()
		t.Error("got a connection to a server with an unknown certificate")
	}
	ca := nats.RootCAs(filepath.Join(dir, "server.pem"))
	wantRefused(t, url, ca)
	nc, err := nats.Connect(url, ca, nats.UserInfo("shop", "shop"))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if got, want := nc.MaxPayload(), int64(256<<10); got != want {
		t.Errorf("max_payload: got %d, want %d", got, want)
	}
	sub := subscribe(t, nc, "shop.x")
	if err := nc.Publish("delay.1s.shop.x", []byte("by TLS")); err != nil {
		t.Fatal(err)
	}
	wantMessage(t, sub, "by TLS")

	mustRunVerb(t, "", "levels")
	mustRunVerb(t, "", "pub", "shop.x", "by a verb", "--in", "1s")
	wantMessage(t, sub, "by a verb")
	config := os.Getenv("DELAY_EMBEDDED_CONFIG")
	os.Unsetenv("DELAY_EMBEDDED_CONFIG")
	wantVerbError(t, 1, []string{"certificate", "set DELAY_EMBEDDED_CONFIG"}, "levels")
	t.Setenv("DELAY_EMBEDDED_CONFIG", config)
	r.stop(t)
	if strings.Contains(r.log.String(), embeddedSecret) {
		t.Errorf("got the password in\n%s", r.log)
	}

	wantBrokerRefused(t)
}

// wantBrokerRefused starts the program with a password that the file does not have.
func wantBrokerRefused(t *testing.T) {
	t.Helper()
	t.Setenv("DELAY_EMBEDDED_PASSWORD", "wrong-"+embeddedSecret)
	r := start(t)
	err := r.end(t)
	if got := exitCode(err); got != 2 || !strings.Contains(err.Error(), "does not accept the broker") ||
		!strings.Contains(err.Error(), "DELAY_EMBEDDED_USER and DELAY_EMBEDDED_PASSWORD to a user") {
		t.Errorf("got exit code %d with %v, want 2 and what to set", got, err)
	}
	if strings.Contains(err.Error()+r.log.String(), embeddedSecret) {
		t.Errorf("got the password in %v\n%s", err, r.log)
	}
}

// Logins without a password in the settings: an nkey, a token.
func TestEmbeddedConfigOtherLogins(t *testing.T) {
	embeddedEnv(t)
	t.Setenv("DELAY_EMBEDDED_CONFIG", writeFile(t, "nats.conf", `authorization { token: "`+embeddedSecret+`" }`))
	err := start(t).end(t)
	if exitCode(err) != 2 || !strings.Contains(err.Error(), "NATS_CREDS, NATS_NKEY or NATS_TOKEN") {
		t.Errorf("without a token: got %v, want what to set", err)
	}
	t.Setenv("NATS_TOKEN", embeddedSecret)
	r := start(t)
	wantRefused(t, r.log.await(t, "ready")["server"].(string))
	r.stop(t)
}

// Serve and doctor warn of an embedded server that other hosts can reach without a user.
func TestEmbeddedExposed(t *testing.T) {
	natstest.Long(t)
	if apart(t) {
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
		{"nobody asked", "", false, true},
		{"a user", "", true, false},
		{"users of the file", "authorization { user: orders, password: " + embeddedSecret + " }", true, false},
		{"anybody is somebody", "no_auth_user: any, authorization { users: [{user: any, password: any}] }", false, true},
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
				wantVerbError(t, 2, []string{"DELAY_EMBEDDED_CONFIG", "set NATS_CERT and NATS_KEY"}, "doctor")
				t.Setenv("NATS_CERT", certificate)
				t.Setenv("NATS_KEY", key)
			}
			r := start(t)
			defer r.stop(t)
			r.log.await(t, "ready")
			if got := strings.Contains(r.log.String(), "without a password"); got != test.want {
				t.Errorf("serve warns: got %t, want %t", got, test.want)
			}
			out, _, _ := runVerb(t, "", "doctor", "--json")
			if got := strings.Contains(out, "without a password"); got != test.want {
				t.Errorf("doctor warns: got %t, want %t\n%s", got, test.want, out)
			}
		})
	}
}

// certify writes a certificate for 127.0.0.1, its own authority, and its key into a directory.
func certify(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"server.pem": {Type: "CERTIFICATE", Bytes: certificate}, "key.pem": {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// tlsSection is a section of a configuration file, with a certificate of the directory.
func tlsSection(dir, more string) string {
	return fmt.Sprintf("tls { cert_file: %q, key_file: %q, %s }\n", filepath.Join(dir, "server.pem"),
		filepath.Join(dir, "key.pem"), more)
}

// clientCertificate makes a certificate and its key, and the section of the configuration that asks clients for it.
func clientCertificate(t *testing.T) (certificate, key, ask string) {
	t.Helper()
	dir := t.TempDir()
	certify(t, dir)
	certificate = filepath.Join(dir, "server.pem")
	return certificate, filepath.Join(dir, "key.pem"), fmt.Sprintf("verify: true, ca_file: %q", certificate)
}
