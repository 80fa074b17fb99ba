package main

import (
	"strings"
	"testing"
)

// TestEmbeddedTLSMistakes: the error about a bad certificate names the setting to correct.
func TestEmbeddedTLSMistakes(t *testing.T) {
	if apart(t) {
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
	r := start(t)
	r.log.await(t, "ready")
	mustRunVerb(t, "", "levels")
	certify(t, dir) // another one, which the server reads at its next start
	wantVerbError(t, 1, []string{"DELAY_EMBEDDED_CONFIG", "restart the broker"}, "levels")
	r.stop(t)
	again := start(t)
	again.log.await(t, "ready")
	mustRunVerb(t, "", "levels")
	again.stop(t)
}
