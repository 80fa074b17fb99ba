package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"delaybroker/broker/inspect"
	"delaybroker/broker/operation"
	"delaybroker/broker/timer/service"
	"delaybroker/cmd/delaybroker/terminal"
)

// This file is the command line's door to package operation.

// A door is the command of one operation.
type door struct {
	*app
	operation.Operation
	use         *operation.Use
	view        func(w *door, row any) // in place of a table; nil for none
	dryRun, yes bool
	stdin       io.Reader
}

// operations returns a command with a subcommand for each operation whose name begins with the command's.
func (a *app) operations(c *cobra.Command) *cobra.Command {
	c.Args = noArguments
	c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	for _, o := range operation.All {
		if strings.HasPrefix(o.Name, c.Name()+" ") && !o.Hidden {
			c.AddCommand(a.doorOf(o.Name).command())
		}
	}
	return c
}

func (a *app) doorOf(name string) *door {
	o, _ := operation.Find(name)
	return &door{app: a, Operation: o, use: o.New(operation.Bounds{}), view: views[name]}
}

// command returns the command of the operation: flags and words from its parameters.
func (w *door) command() *cobra.Command {
	o := w.Operation
	name := o.Name[strings.LastIndexByte(o.Name, ' ')+1:]
	c := &cobra.Command{
		Use: strings.TrimSpace(name + " " + o.Usage), Short: o.Short, Long: o.Long, Example: o.Example,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(o.Words) == 0 {
				return noArguments(cmd, args)
			}
			return argumentsBetween(o.Least, len(o.Words))(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			w.stdin = cmd.InOrStdin()
			return w.run(cmd.Context(), args)
		},
	}
	if name == "ls" {
		c.Aliases = []string{"list"}
	}
	var flags []*operation.Param
	for _, p := range w.use.Params {
		if !p.Hidden && !slices.Contains(o.Words[:o.Least], p.Name) {
			flags = append(flags, p)
		}
	}
	addParams(c, flags...)
	w.complete(c)
	if w.use.Act != nil {
		c.Flags().BoolVar(&w.dryRun, "dry-run", false, "only show the outcome, and change nothing")
	}
	if w.use.Act != nil && o.Final {
		c.Flags().BoolVar(&w.yes, "yes", false, "do not ask on a terminal")
	}
	return c
}

// complete offers names from the streams for the words and the flags of a command.
func (w *door) complete(c *cobra.Command) {
	c.ValidArgsFunction = func(cmd *cobra.Command, args []string, begin string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(w.Words) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return w.completeNames(w.use.Param(w.Words[len(args)]).Names)(cmd, args, begin)
	}
	for _, p := range w.use.Params {
		if p.Names == "" || c.Flags().Lookup(p.Name) == nil {
			continue
		}
		if err := c.RegisterFlagCompletionFunc(p.Name, w.completeNames(p.Names)); err != nil {
			panic("bug: " + err.Error())
		}
	}
}

// addParams adds parameters as flags.
func addParams(c *cobra.Command, params ...*operation.Param) {
	for _, p := range params {
		f := c.Flags().VarPF(p, p.Name, p.Short, p.Help)
		if p.Kind == "bool" {
			f.NoOptDefVal = "true"
		}
		if len(p.Choices) > 0 {
			addCompletion(c, p.Name, p.Choices...)
		}
	}
}

// run sets the words, checks the parameters, connects, and looks or changes.
func (w *door) run(ctx context.Context, args []string) error {
	if len(args) == 0 && w.Without != "" {
		w.Operation, _ = operation.Find(w.Without)
		w.use = w.New(operation.Bounds{})
	}
	for n, word := range args {
		p := w.use.Param(w.Words[n])
		if p.Given() {
			return fmt.Errorf("%w: --%s and the word %q exclude each other", errUsage, p.Name, word)
		}
		if err := p.Set(word); err != nil {
			return fmt.Errorf("%w: %s %q: %w", errUsage, p.Name, word, err)
		}
	}
	for _, p := range w.use.Params {
		isWord := slices.Contains(w.Words, p.Name) // then it is also read from stdin if it is missing
		if !p.Body || p.String() != "-" && (!isWord || p.Given()) {
			continue
		}
		words := []string{"-"}
		if !p.Given() {
			words = nil
		}
		body, err := readBody(w.stdin, words)
		if err != nil {
			return err
		}
		if err := p.Set(string(body)); err != nil {
			return fmt.Errorf("%w: --%s: %w", errUsage, p.Name, err)
		}
	}
	return w.connect(ctx)
}

// connect checks the parameters, connects, and looks or changes. The first interrupt ends its context: a change then
// completes what it has begun.
func (w *door) connect(ctx context.Context) error {
	if err := w.use.Validate(); err != nil {
		return usageOf(err)
	}
	ctx, stop := withInterrupt(ctx)
	defer stop()
	if w.use.Offline != nil && w.use.Offline() {
		return usageOf(w.do(ctx, &operation.Desk{}, nil))
	}
	i, err := w.openConfigured(ctx)
	if err != nil {
		return err
	}
	defer i.Close()
	w.warnWrongPrefix(ctx, i)
	d := &operation.Desk{Inspector: i, Terminal: terminal.IsTerminal(w.Out) && !w.JSON}
	isAboutTimers := w.Noun == "timer" || w.Noun == "schedule"
	if isAboutTimers {
		_ = i.ReadKeys(ctx) // without the secrets, only some changes are refused
	}
	timers := i.Timers()
	d.Timers = timers
	refusable, cancel := i.WithRefusal(ctx)
	defer cancel()
	err = w.do(refusable, d, func(err error) error {
		if _, isInvalid := errors.AsType[*operation.InvalidError](err); isAboutTimers && err != nil && !isInvalid &&
			mayNotRead(refusable, timers) {
			return errMayNotRead
		}
		return nil
	})
	if errors.Is(err, errMayNotRead) {
		fmt.Fprintf(w.Err, "%s; asking a broker\n", errMayNotRead)
		d.Timers = remoteTimers{i.Session, i.Policy().Names}
		return usageOf(w.do(ctx, d, nil))
	}
	if _, isInvalid := errors.AsType[*operation.InvalidError](err); !isInvalid {
		err = inspect.Cause(refusable, err)
	}
	return usageOf(err)
}

// do looks or changes. If check is not nil, an error of check replaces the result, before it is shown.
func (w *door) do(ctx context.Context, d *operation.Desk, check func(error) error) error {
	tracker := progress{app: w.app, noun: w.Noun + "s", rows: w.use.Look != nil}
	defer func() { tracker.bar.Stop() }()
	d.Progress = tracker.update
	if check == nil {
		check = func(error) error { return nil }
	}
	if w.use.Look != nil {
		return w.look(ctx, d, check)
	}
	return w.change(ctx, d, &tracker, check)
}

// usageOf returns a usage error if err reports invalid parameters, and err otherwise.
func usageOf(err error) error {
	if wrong, ok := errors.AsType[*operation.InvalidError](err); ok && wrong.Param != "" {
		return fmt.Errorf("%w: --%s: %s", errUsage, wrong.Param, wrong.Sentence)
	}
	if service.StatusOf(err) == http.StatusBadRequest {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return err
}
