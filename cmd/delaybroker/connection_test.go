package main

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/spf13/cobra"

	"delaybroker/cmd/delaybroker/terminal"
)

// --server, --context and --creds replace the variables of the environment completely, including the user and the
// server.
func TestConnectionFlags(t *testing.T) {
	users := []*server.User{{Username: "ann", Password: "a"}, {Username: "bob", Password: "b"}}
	s := startServer(t, server.Options{Port: server.RANDOM_PORT, Users: users})
	externalEnv(t, s.ClientURL())
	context := writeFile(t, "ann.json", fmt.Sprintf(`{"url":%q,"user":"ann","password":"a"}`, s.ClientURL()))
	env := func(url, user, password string) {
		for name, value := range map[string]string{
			"NATS_URL": url, "NATS_USER": user, "NATS_PASSWORD": password, "NATS_CONTEXT": "", "NATS_CREDS": "",
			"DELAY_NATS_URL": "", "DELAY_NATS_USER": "",
		} {
			t.Setenv(name, value)
		}
	}
	env("127.0.0.1:1", "ann", "a")
	mustRunCommand(t, "", "provision", "--server", s.ClientURL())
	env("127.0.0.1:1", "ann", "a")
	t.Setenv("DELAY_NATS_URL", "127.0.0.1:1")
	mustRunCommand(t, "", "levels", "-s", s.ClientURL())
	env("127.0.0.1:1", "nobody", "wrong")
	t.Setenv("DELAY_NATS_USER", "nobody")
	mustRunCommand(t, "", "levels", "--context", context)
	env("127.0.0.1:1", "nobody", "wrong")
	mustRunCommand(t, "", "timers", "ls", "--context", context)
	env(s.ClientURL(), "ann", "a")
	wantCommandError(t, 2, []string{"NATS_CREDS", "absent.creds"}, "levels", "--creds", "absent.creds")
	env("127.0.0.1:1", "ann", "a")
	wantCommandError(t, 1, []string{"127.0.0.1:1"}, "levels")
	wantCommandError(t, 2, []string{"unknown flag"}, "version", "--server", s.ClientURL())
}

// Every command that connects to NATS has the flags for the connection. The exceptions connect to no server, or to a
// server of their own.
func TestEveryCommandHasConnectionFlags(t *testing.T) {
	exceptions := []string{"demo", "healthcheck", "size", "version", "help", "completion"}
	a := &app{Printer: terminal.Printer{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}}
	root, checked := a.rootCommand(), 0
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.HasParent() && slices.Contains(exceptions, c.Name()) {
			return
		}
		checked++
		for _, flag := range []string{"server", "context", "creds"} {
			if c.Flag(flag) == nil {
				t.Errorf("%s has no --%s", c.CommandPath(), flag)
			}
		}
		for _, below := range c.Commands() {
			walk(below)
		}
	}
	walk(root)
	if checked < 30 {
		t.Errorf("%d commands were checked, want all", checked)
	}
}
