package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
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

// certify writes a self-signed certificate for 127.0.0.1 and its key into a directory.
func certify(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	natstest.NoError(t, err)
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	natstest.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	natstest.NoError(t, err)
	for name, block := range map[string]*pem.Block{
		"server.pem": {Type: "CERTIFICATE", Bytes: certificate}, "key.pem": {Type: "PRIVATE KEY", Bytes: private},
	} {
		natstest.NoError(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
}

// tlsSection returns a section of a configuration file with the certificate of the directory.
func tlsSection(dir, more string) string {
	return fmt.Sprintf("tls { cert_file: %q, key_file: %q, %s }\n", filepath.Join(dir, "server.pem"),
		filepath.Join(dir, "key.pem"), more)
}

// clientCertificate creates a certificate and its key. It also returns the section of the configuration that requires
// the certificate from clients.
func clientCertificate(t *testing.T) (certificate, key, ask string) {
	t.Helper()
	dir := t.TempDir()
	certify(t, dir)
	certificate = filepath.Join(dir, "server.pem")
	return certificate, filepath.Join(dir, "key.pem"), fmt.Sprintf("verify: true, ca_file: %q", certificate)
}

// After a restart because of a full disk, the embedded server still accepts the user in the settings. The broker's
// connections accept the server, even if the certificate was replaced.
func TestEmbeddedRestartKeepsUsers(t *testing.T) {
	if inOwnProcess(t) {
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
	natstest.NoError(t, err)
	s, err := embedded.Start(*cfg.Embedded, slog.New(slog.DiscardHandler))
	natstest.NoError(t, err)
	defer s.Stop()
	to := cfg.Access.WithURL(s.URL(), s.TLS())
	nc, err := nats.Connect(to.URL, append(to.Options, nats.ReconnectWait(10*time.Millisecond))...)
	natstest.NoError(t, err)
	defer nc.Close()
	certify(t, dir) // a new certificate before the old one expires
	natstest.NoError(t, s.Restart())
	eventually(t, "connection after the restart", func() bool { return nc.IsConnected() && nc.Flush() == nil })
	if _, err := nats.Connect(s.URL(), nats.UserInfo("orders", embeddedSecret)); err == nil {
		t.Error("got a connection without a certificate")
	}
}

// TestEmbeddedTLSMistakes: the error about a wrong certificate names the setting to correct.
func TestEmbeddedTLSMistakes(t *testing.T) {
	if inOwnProcess(t) {
		return
	}
	protectedEnv(t)
	dir := t.TempDir()
	certify(t, dir)
	certificate, key, ask := clientCertificate(t)
	other, otherKey, _ := clientCertificate(t) // of another authority
	t.Setenv("DELAY_EMBEDDED_CONFIG", writeFile(t, "nats.conf", tlsSection(dir, ask)))
	for _, tt := range []struct{ name, certificate, key, want string }{
		{"none", "", "", "set NATS_CERT and NATS_KEY"},
		{"of another authority", other, otherKey, "NATS_CERT"},
		{"no file", "/nowhere.pem", key, "NATS_CERT"},
		{"another's key", certificate, otherKey, "NATS_CERT"},
	} {
		t.Setenv("NATS_CERT", tt.certificate)
		t.Setenv("NATS_KEY", tt.key)
		if err := start(t).end(t); exitCode(err) == 0 || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("client certificate %s: %v, want %s in it", tt.name, err, tt.want)
		}
	}
	t.Setenv("NATS_CERT", certificate)
	t.Setenv("NATS_KEY", key)
	r := startReady(t)
	mustRunCommand(t, "", "levels")
	certify(t, dir) // a new certificate, which the server reads at its next start
	wantCommandError(t, 1, []string{"DELAY_EMBEDDED_CONFIG", "restart the broker"}, "levels")
	r.stop(t)
	restarted := startReady(t)
	mustRunCommand(t, "", "levels")
	restarted.stop(t)
}
