package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
	"delaybroker/cmd/delaybroker/links"
	"delaybroker/cmd/delaybroker/settings"
)

// connect connects to a server for a command. The notices about lost connections go to stderr.
func (a *app) connect(ctx context.Context, access links.Access) (*nats.Conn, error) {
	return links.Connect(ctx, access, readBuild().name(), func(text string) { fmt.Fprintln(a.Err, text) })
}

// withSession connects, and calls do with a session. An interrupt ends the context of do.
func (a *app) withSession(
	ctx context.Context, c settings.Client, do func(context.Context, *inspect.Session) error,
) error {
	ctx, stop := withInterrupt(ctx)
	defer stop()
	a.warnUnknownSettings()
	nc, err := a.connect(ctx, c.Access)
	if err != nil {
		return err
	}
	s, err := inspect.NewSession(nc, c.APIPrefix)
	if err != nil {
		return err
	}
	defer s.Close()
	return do(ctx, s)
}

// withInspector connects with the broker's settings, and calls do with an inspector. An interrupt ends the context of
// do.
func (a *app) withInspector(cmd *cobra.Command, do func(ctx context.Context, i *inspect.Inspector) error) error {
	ctx, stop := withInterrupt(cmd.Context())
	defer stop()
	i, err := a.openConfigured(ctx)
	if err != nil {
		return err
	}
	defer i.Close()
	return do(ctx, i)
}

// openConfigured reads the settings and opens an inspector with them. The caller closes the inspector.
func (a *app) openConfigured(ctx context.Context) (*inspect.Inspector, error) {
	cfg, err := settings.Read()
	if err != nil {
		return nil, err
	}
	return a.open(ctx, cfg)
}

// open connects with the broker's settings. If the prefix, the levels or the retry waits are not set, it reads them
// from the streams. The caller closes the inspector.
func (a *app) open(ctx context.Context, cfg settings.Config) (*inspect.Inspector, error) {
	i, err := a.openBySettings(ctx, cfg)
	if err != nil {
		return nil, err
	}
	adopted, err := i.Adopt(ctx, settings.Overrides())
	if adopted.Prefix != "" {
		fmt.Fprintf(a.Err, "using the prefix %s of the existing streams, since DELAY_PREFIX is not set\n",
			adopted.Prefix)
	}
	if len(adopted.Choices) > 0 {
		names := text.Sentence(strings.Join(adopted.Choices, ", "))
		fmt.Fprintln(a.Err, "there are streams with several prefixes: set DELAY_PREFIX to one of "+names)
	}
	if err != nil {
		i.Close()
		return nil, err
	}
	return i, nil
}

// warnWrongPrefix warns if the prefix of the settings has no streams, and another prefix has.
func (a *app) warnWrongPrefix(ctx context.Context, i *inspect.Inspector) {
	prefix := i.Policy().Names.Prefix()
	found := i.Prefixes(ctx)
	if !settings.Overrides().Prefix || len(found) == 0 || slices.Contains(found, prefix) {
		return
	}
	fmt.Fprintf(a.Err, "no stream has the prefix %s; there are streams of the prefix %s: set DELAY_PREFIX\n", prefix,
		text.ShortList(found))
}

// openBySettings connects with the broker's settings, and reads no settings from the streams. The caller closes the
// inspector.
func (a *app) openBySettings(ctx context.Context, cfg settings.Config) (*inspect.Inspector, error) {
	a.warnUnknownSettings()
	nc, err := a.connect(ctx, cfg.Access)
	if err != nil {
		return nil, err
	}
	return inspect.Open(nc, cfg.Broker)
}

// warnUnknownSettings prints warnings about probably misspelt settings.
func (a *app) warnUnknownSettings() {
	for _, u := range settings.Unknown() {
		fmt.Fprintln(a.Err, "delaybroker:", u)
	}
}

// A connection has the flags for the server, the context and the credentials of a command, named as in the NATS CLI.
type connection struct{ server, context, creds string }

// addTo adds the flags to commands, for them and their subcommands, and returns the commands.
func (c *connection) addTo(commands ...*cobra.Command) []*cobra.Command {
	for _, command := range commands {
		c.addFlags(command.PersistentFlags())
		if err := command.RegisterFlagCompletionFunc("context", completeContext); err != nil {
			panic("bug: " + err.Error())
		}
	}
	return commands
}

func (c *connection) addFlags(f *pflag.FlagSet) {
	f.StringVarP(&c.server, "server", "s", "", "NATS servers; replaces NATS_URL")
	f.StringVar(&c.context, "context", "", "context of the NATS CLI, by name or path; replaces all NATS_* variables")
	f.StringVar(&c.creds, "creds", "", "credentials file of a user; replaces the user of the NATS_* variables")
}

// export writes the flags into the environment of this process, for package settings and the processes of bench. The
// flag --creds removes the variables for another user. The flag --context also removes the variables for a server and
// for TLS: the command must not reach the server of a forgotten variable.
func (c connection) export() error {
	user := []string{"NATS_CREDS", "NATS_NKEY", "NATS_USER", "NATS_PASSWORD", "NATS_TOKEN"}
	for _, flag := range []struct {
		name, value string
		hides       []string
	}{
		{"NATS_CONTEXT", c.context, append(
			[]string{"NATS_URL", "NATS_CERT", "NATS_KEY", "NATS_CA", "NATS_TLS_FIRST"}, user...)},
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
