package main

import (
	"strings"
	"testing"
)

// A server in another program's variable is not silently replaced by an embedded one.
func TestMisnamedServer(t *testing.T) {
	for _, name := range []string{"NATS_URI", "NATS_URLS", "NATS_SERVER", "NATS_SERVERS"} {
		embeddedEnv(t)
		t.Setenv(name, "nats://127.0.0.1:1")
		r := start(t)
		said := r.log.await(t, "this variable is not a setting; see serve --help")
		r.stop(t)
		if said["name"] != name || said["nearest"] != "NATS_URL" || said["level"] != "WARN" {
			t.Errorf("serve: got %v, want %s and NATS_URL", said, name)
		}
		t.Setenv("DELAY_EMBEDDED_LISTEN", "127.0.0.1:1")
		_, errs, err := runVerb(t, "", "levels")
		if want := name + " is not a setting and is ignored; did you mean NATS_URL?"; err == nil || !strings.Contains(errs,
			want) {
			t.Errorf("levels: got %v and %q, want %q", err, errs, want)
		}
		t.Setenv(name, "")
	}
}
