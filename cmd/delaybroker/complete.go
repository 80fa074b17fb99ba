package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"delaybroker/broker/operation"
	"delaybroker/cmd/delaybroker/spelling"
)

// completeTimeout bounds the completion of a name, which reads it from the streams.
const completeTimeout = 2 * time.Second

// errEnough ends a list that has enough names for a completion.
var errEnough = errors.New("enough names")

// nameSources has the list, and the field of its rows, for each kind of names.
var nameSources = map[string]struct {
	list, field string
	parameters  map[string][]string
}{
	"key":      {"timers ls", "key", map[string][]string{"limit": {"1000"}}},
	"schedule": {"schedules ls", "key", nil},
	"target":   {"timers ls", "target", map[string][]string{"limit": {"1000"}, "state": {"all"}}},
	"pause":    {"pauses", "pattern", nil},
}

// completeNames offers the names of a kind that begin with a text. Without a connection, it offers none.
func (a *app) completeNames(kind string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, begin string) ([]string, cobra.ShellCompDirective) {
		source, ok := nameSources[kind]
		if !ok || a.connection.export() != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), completeTimeout)
		defer cancel()
		i, err := a.openConfigured(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer i.Close()
		o, _ := operation.Find(source.list)
		u := o.New(operation.Bounds{})
		if err := u.SetValues(source.parameters); err != nil {
			panic("bug: " + err.Error())
		}
		var names []string
		const enough = 100
		ctx, cancelRefusal := i.WithRefusal(ctx)
		defer cancelRefusal()
		_, _ = u.Look(
			ctx,
			&operation.Desk{Inspector: i, Timers: i.Timers()},
			func(row any) error { // the names so far suffice
				name, _ := operation.Value(row, source.field).(string)
				if strings.HasPrefix(name, begin) && !slices.Contains(names, name) {
					names = append(names, name)
				}
				if len(names) == enough {
					return errEnough
				}
				return nil
			},
		)
		slices.Sort(names)
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeContext offers the contexts of the NATS CLI.
func completeContext(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	home, err := os.UserConfigDir()
	if xdg := os.Getenv("XDG_CONFIG_HOME"); xdg != "" {
		home = xdg
	}
	files, _ := filepath.Glob(filepath.Join(home, "nats", "context", "*.json")) // fails only for a bad pattern
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".json"))
	}
	return names, cobra.ShellCompDirectiveDefault // a context may also be a path
}

// flagError adds a suggestion to the error of an unknown flag.
func flagError(cmd *cobra.Command, err error) error {
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !unknown {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if cmd.Name() == "pub" && slices.Contains([]string{"cron", "every", "tz", "rounds"}, name) {
		return fmt.Errorf("%w: %w: a recurring timer is set by delaybroker schedules add", errUsage, err)
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	if nearest := spelling.Nearest(name, known); nearest != "" {
		return fmt.Errorf("%w: %w (--%s?)", errUsage, err, nearest)
	}
	return fmt.Errorf("%w: %w; see %s --help", errUsage, err, cmd.CommandPath())
}

// groups are the groups of the commands in the help, each with the names of its commands.
var groups = []struct{ title, commands string }{
	{"Publish", "pub sub schedules timers demo"},
	{"Look", "levels ahead pending where retrying journal doctor"},
	{"Repair", "dead pause resume provision"},
	{"Run", "serve healthcheck streams size bench version"},
}

// group puts each command of the root into its group.
func group(root *cobra.Command) {
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, c := range root.Commands() {
			if slices.Contains(strings.Fields(g.commands), c.Name()) {
				c.GroupID = g.title
			}
		}
	}
	root.SetHelpCommandGroupID("Run")
	root.SetCompletionCommandGroupID("Run")
}
