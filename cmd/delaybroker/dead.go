package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"delaybroker/broker/deadletter"
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/ratelog"
	"delaybroker/cmd/delaybroker/terminal"
)

// errNoLetter is returned when no letter has the id or the number that the user gave. The output already says so.
var errNoLetter = errors.New("there is no such dead letter")

func (a *app) deadCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "dead",
		Short: "List, show, resend and remove dead letters",
		Long: `List, show, resend and remove dead letters. A dead letter is a message that the broker could not deliver. It
has the payload and the headers of the message, a code and a reason. It is kept until it is resent or removed.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.deadListCommand(), a.deadShowCommand(), a.deadResendCommand(), a.deadRemoveCommand())
	return c
}

// A letterChoice has the flags that select dead letters.
type letterChoice struct {
	codes        []message.Code
	target       string
	since, until string
	ids          []string
	all          bool
}

func (c *letterChoice) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	addListFlag(cmd, &c.codes, "code", message.Codes(), "only with this code; several are comma separated")
	addPatternFlag(f, &c.target)
	f.StringVar(&c.since, "since", "", "only stored at this time (RFC 3339) or later, or at most this long ago (2h)")
	f.StringVar(&c.until, "until", "", "only stored before this time, or longer ago than this")
	f.StringSliceVar(&c.ids, "id", nil, "only with this Delay-Id, or this number in dead ls; several are comma separated")
}

// filter converts the choice into a filter of letters. Durations count back from now.
func (c letterChoice) filter(now time.Time) (deadletter.Filter, error) {
	f := deadletter.Filter{Codes: c.codes, Target: c.target}
	var err error
	if f.Since, f.Until, err = parsePeriod(c.since, c.until, now); err != nil {
		return f, err
	}
	for _, name := range c.ids {
		if n, err := strconv.ParseUint(name, 10, 63); err == nil && n > 0 {
			f.Sequences = append(f.Sequences, n)
			continue
		}
		id, err := message.ParseID(name)
		if err != nil {
			return f, fmt.Errorf("%w: --id: want a number, or a %w", errUsage, err)
		}
		f.IDs = append(f.IDs, id)
	}
	return f, nil
}

// check returns an error if neither --all nor a flag that selects letters is given, or if both are given.
func (c letterChoice) check() error {
	switch isEmpty := len(c.codes)+len(c.ids) == 0 && c.target+c.since+c.until == ""; {
	case isEmpty && !c.all:
		return fmt.Errorf("%w: want --code, --target, --since, --until, --id, or --all", errUsage)
	case !isEmpty && c.all:
		return fmt.Errorf("%w: --all excludes --code, --target, --since, --until and --id", errUsage)
	}
	return nil
}

// deadLetters gives access to the dead letters of a broker, and has the filter that selects some.
type deadLetters struct {
	*inspect.Letters
	policy message.Policy
	filter deadletter.Filter
}

// withLetters connects, and calls f with the filter of c. Durations in c count back from the server's time. The context
// of f ends if the server refuses a request.
func (a *app) withLetters(ctx context.Context, c letterChoice, f func(ctx context.Context, d deadLetters) error) error {
	if _, err := c.filter(time.Now()); err != nil { // checks only the syntax
		return err
	}
	i, err := a.openConfigured(ctx)
	if err != nil {
		return err
	}
	defer i.Close()
	ctx, cancel := i.WithRefusal(ctx)
	defer cancel()
	letters, err := i.Letters(ctx)
	if err != nil {
		return inspect.Cause(ctx, err)
	}
	d := deadLetters{Letters: letters, policy: i.Policy()}
	if d.filter, err = c.filter(letters.Opened); err != nil {
		return err
	}
	return inspect.Cause(ctx, f(ctx, d))
}

// A progress shows the progress of a command on a terminal, with a bar or with a line at each
// [inspect.ProgressInterval].
type progress struct {
	app     *app
	rows    bool // the command prints rows, which a bar would overwrite
	bar     *terminal.Bar
	limiter ratelog.Limit
	started bool // update was called before
}

// update shows that the command has read one more message. Read is the number of messages read so far. Total is the
// approximate number of messages to read. The caller must call update once for each message.
func (p *progress) update(read, total uint64) {
	if !p.started {
		p.started = true
		p.limiter.Allow(inspect.ProgressInterval) // the first line appears after one interval
		if !p.rows {
			p.bar = p.app.Bar("dead letters", int(total))
		}
	}
	p.bar.Step()
	if p.bar != nil {
		return
	}
	if _, ok := p.limiter.Allow(inspect.ProgressInterval); ok {
		p.app.showSearchProgress(read, total)
	}
}
