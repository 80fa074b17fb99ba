package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// --server, --context and --creds win over the environment, whole: no user or server of it is left beside them.
func TestConnectionFlags(t *testing.T) {
	users := []*server.User{{Username: "ann", Password: "a"}, {Username: "bob", Password: "b"}}
	s := startServer(t, server.Options{Port: server.RANDOM_PORT, Users: users})
	externalEnv(t, s.ClientURL())
	context := filepath.Join(t.TempDir(), "ann.json")
	text := fmt.Sprintf(`{"url":%q,"user":"ann","password":"a"}`, s.ClientURL())
	if err := os.WriteFile(context, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(url, user, password string) {
		for name, value := range map[string]string{
			"NATS_URL": url, "NATS_USER": user, "NATS_PASSWORD": password, "NATS_CONTEXT": "", "NATS_CREDS": "",
			"DELAY_NATS_URL": "", "DELAY_NATS_USER": "",
		} {
			t.Setenv(name, value)
		}
	}
	env("127.0.0.1:1", "ann", "a")
	mustRunVerb(t, "", "provision", "--server", s.ClientURL())
	env("127.0.0.1:1", "ann", "a")
	t.Setenv("DELAY_NATS_URL", "127.0.0.1:1")
	mustRunVerb(t, "", "levels", "-s", s.ClientURL())
	env("127.0.0.1:1", "nobody", "wrong")
	t.Setenv("DELAY_NATS_USER", "nobody")
	mustRunVerb(t, "", "levels", "--context", context)
	env("127.0.0.1:1", "nobody", "wrong")
	mustRunVerb(t, "", "timers", "ls", "--context", context)
	env(s.ClientURL(), "ann", "a")
	wantVerbError(t, 2, []string{"NATS_CREDS", "absent.creds"}, "levels", "--creds", "absent.creds")
	env("127.0.0.1:1", "ann", "a")
	wantVerbError(t, 1, []string{"127.0.0.1:1"}, "levels")
	wantVerbError(t, 2, []string{"unknown flag"}, "version", "--server", s.ClientURL())
}
