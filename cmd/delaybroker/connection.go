package main

import (
	"cmp"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A connection has the flags for the server, the context and the credentials of a command, named as in the NATS CLI.
type connection struct{ server, context, creds string }

// addTo adds the flags to commands and to their subcommands.
func (c *connection) addTo(commands ...*cobra.Command) []*cobra.Command {
	for _, command := range commands {
		c.addFlags(command.PersistentFlags())
	}
	return commands
}

func (c *connection) addFlags(f *pflag.FlagSet) {
	f.StringVarP(&c.server, "server", "s", "", "NATS servers; replaces NATS_URL")
	f.StringVar(&c.context, "context", "", "context of the NATS CLI, by name or path; replaces all NATS_* variables")
	f.StringVar(&c.creds, "creds", "", "credentials file of a user; replaces the user in NATS_* variables")
}

// export writes the flags into the environment of this process, from which the settings and the processes of bench read
// them. A flag for a user hides the variables for another user. A context also hides the variable for a server: the
// command must not reach the server of a forgotten variable.
func (c connection) export() error {
	user := []string{"NATS_CREDS", "NATS_NKEY", "NATS_USER", "NATS_PASSWORD", "NATS_TOKEN"}
	for _, flag := range []struct {
		name, value string
		hides       []string
	}{
		{"NATS_CONTEXT", c.context, append([]string{"NATS_URL", "NATS_CERT", "NATS_KEY", "NATS_CA"}, user...)},
		{"NATS_URL", c.server, nil},
		{"NATS_CREDS", c.creds, user},
	} {
		if flag.value == "" {
			continue
		}
		for _, name := range append(flag.hides, flag.name) {
			if err := cmp.Or(os.Unsetenv(name),
				os.Unsetenv("DELAY_"+name)); err != nil { // the prefixed name would take precedence
				return fmt.Errorf("unset %s: %w", name, err)
			}
		}
		if err := os.Setenv(flag.name, flag.value); err != nil {
			return fmt.Errorf("set %s: %w", flag.name, err)
		}
	}
	return nil
}
