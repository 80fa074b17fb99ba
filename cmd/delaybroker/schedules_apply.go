package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/store"
	"delaybroker/cmd/delaybroker/schedules"
	"delaybroker/cmd/delaybroker/settings"
	"delaybroker/cmd/delaybroker/terminal"
)

// applyOptions are the flags of apply.
type applyOptions struct {
	file                          string
	dryRun, prune, adopt, removal bool
}

func (a *app) schedulesApplyCommand() *cobra.Command {
	var o applyOptions
	c := &cobra.Command{
		Use:   "apply -f FILE [--dry-run]",
		Short: "Make the schedules as a file says",
		Long: `Make the schedules as a file says, and show what is added (+), changed (~) and removed (-). Applied a second
time, it does nothing; several at once do no harm.

  set: reports                  # whose they are: apply removes only what has this mark
  schedules:
    nightly:                    # the name
      cron: 0 3 * * *           # or every: 15m
      tz: Europe/Berlin
      target: reports.run
      first: 2026-12-24T18:00:00Z
      last: 2030-01-01T00:00:00Z
      missed: one               # skip, one or all
      jitter: 5m
      headers: {X-Kind: nightly, Delay-Expires: 1h}
      body: '{"kind":"nightly"}'

What is of the set and not in the file is removed, unless --prune=false. A file without schedules would remove all of
its set: it is refused, unless --remove-all says that this is meant. What somebody else made under a name of the file is
left as it is, unless --adopt. A change keeps in step and makes a new series; of what is paused, nothing is changed.

What is wrong in the file is told all at once, and then nothing is done. Otherwise what fails does not stop the rest.

exit codes: 0 all is as the file has it, or with --dry-run would be, 1 something failed, 2 wrong words, settings or
file, and nothing was done, 5 something else stands in the way, 6 unknown: it may have been done; apply it again`,
		Example: `  delaybroker schedules apply -f schedules.yaml --dry-run
  delaybroker schedules apply -f - < schedules.yaml`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.applySchedules(cmd, o) },
	}
	f := c.Flags()
	f.StringVarP(&o.file, "file", "f", "", "the file; - for stdin")
	f.BoolVar(&o.dryRun, "dry-run", false, "only show what would be done")
	f.BoolVar(&o.prune, "prune", true, "remove what is of the set and not in the file")
	f.BoolVar(&o.adopt, "adopt", false, "take over what stands there already and is not of the set")
	f.BoolVar(&o.removal, "remove-all", false, "the file has no schedules, and all of its set are to be removed")
	return c
}

func (a *app) applySchedules(cmd *cobra.Command, o applyOptions) error {
	if o.file == "" {
		return fmt.Errorf("%w: which file? -f FILE", errUsage)
	}
	c, err := settings.ReadClient()
	if err != nil {
		return err
	}
	text, err := readFile(cmd.InOrStdin(), o.file)
	if err != nil {
		return err
	}
	// Before the server is asked, this host's clock is enough: it finds the errors in the file. The plan is made by the
	// server's clock.
	file, err := schedules.Read(o.file, text, c.Policy, time.Now())
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	shown := a.newDiff(file.Set, o.dryRun)
	err = a.withSession(cmd.Context(), c, func(ctx context.Context, s *inspect.Session) error {
		return schedules.Apply{
			File: file, Timers: lineByLine{s, s.Timers(c.Policy)}, Policy: c.Policy, Adopt: o.adopt, DryRun: o.dryRun,
			Keep: !o.prune, Empty: o.removal,
		}.Run(ctx, shown.add)
	})
	if errors.Is(err, schedules.ErrEmpty) {
		return fmt.Errorf("%w: %w; --remove-all says that this is meant, --prune=false leaves them", errUsage, err)
	}
	if err != nil {
		return err
	}
	return shown.end()
}

func readFile(stdin io.Reader, name string) ([]byte, error) {
	from := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errUsage, err)
		}
		defer f.Close()
		from = f
	}
	text, err := io.ReadAll(io.LimitReader(from, schedules.MaxBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	case len(text) > schedules.MaxBytes:
		return nil, fmt.Errorf("%w: %s is too large: at most %d bytes", errUsage, name, schedules.MaxBytes)
	}
	return text, nil
}

// lineByLine sends a request for each schedule, so that a refusal of the server ends one of them and not all.
type lineByLine struct {
	session *inspect.Session
	timers  *store.Timers
}

func (l lineByLine) Read(ctx context.Context, key, target string) (timer.State, error) {
	ctx, cancel := l.session.Allowed(ctx)
	defer cancel()
	return lookAt(ctx, l.timers, key, target)
}

func (l lineByLine) Now(ctx context.Context) (time.Time, error) {
	ctx, cancel := l.session.Allowed(ctx)
	defer cancel()
	now, err := l.timers.Now(ctx)
	return now, inspect.Cause(ctx, err)
}

func (l lineByLine) Do(ctx context.Context, w store.Change) (store.Answer, error) {
	ctx, cancel := l.session.Allowed(ctx)
	defer cancel()
	return doTimer(ctx, l.timers, w)
}

func (l lineByLine) Recurs(ctx context.Context, f store.Filter) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		ctx, cancel := l.session.Allowed(ctx)
		defer cancel()
		for row, err := range l.timers.Recurs(ctx, f) {
			if !yield(row, inspect.Cause(ctx, err)) {
				return
			}
		}
	}
}

// diff prints the changes, line by line.
type diff struct {
	app    *app
	set    string
	dryRun bool
	counts map[schedules.What]int

	failed, unknown, left bool // something was not done: it failed, may have been done, or an entry is in the way
}

func (a *app) newDiff(set string, dryRun bool) *diff {
	return &diff{app: a, set: set, dryRun: dryRun, counts: make(map[schedules.What]int)}
}

// signs are the marks of the lines. An unchanged schedule has none, and is only counted.
var signs = map[schedules.What]string{
	schedules.Add: "+", schedules.Change: "~", schedules.Remove: "-", schedules.Leave: "!",
}

func (d *diff) add(r schedules.Result) {
	switch {
	case r.Good():
		d.counts[r.What]++
	case r.Outcome == timer.Unknown:
		d.unknown = true
	case r.Err == nil:
		d.left = true
	default:
		d.failed = true
	}
	if d.app.AsJSON(viewOfResult(r)) {
		return
	}
	sign := signs[r.What]
	if sign == "" {
		return
	}
	d.app.Printf("%s %s  %s  %s\n", sign, r.Name, text.Printable(r.Target, terminal.MaxCell), r.Table)
	for _, x := range r.Differences {
		d.app.Printf("    %s: %s -> %s\n", text.Printable(x.In, 200), excerpt(x.Was), excerpt(x.Will))
	}
	why := r.Why
	if r.Err != nil {
		why = r.Err.Error()
	}
	if !r.Good() && r.What != schedules.Leave {
		why = strings.TrimSuffix(fmt.Sprintf("not done: %s %s", r.Outcome, why), " ")
	}
	if why != "" {
		d.app.Printf("    %s\n", text.Printable(why, 600))
	}
}

// excerpt shortens a value of a difference to text in one line.
func excerpt(s string) string {
	const most = 60
	switch {
	case s == "":
		return "none"
	case !utf8.ValidString(s):
		return terminal.Counted(len(s), "byte")
	}
	return text.Printable(s, most)
}

// resultView is a line of apply with --json.
type resultView struct {
	schedules.Step
	Outcome timer.Outcome `json:"outcome,omitempty"`
	Good    bool          `json:"good"`
	Error   string        `json:"error,omitempty"`
}

func viewOfResult(r schedules.Result) resultView {
	v := resultView{Step: r.Step, Outcome: r.Outcome, Good: r.Good()}
	if r.Err != nil {
		v.Error = r.Err.Error()
	}
	return v
}

// end prints the totals, and returns the error for the changes that were not made.
func (d *diff) end() error {
	words := []string{"%d added", "%d changed", "%d removed"}
	if d.dryRun {
		words = []string{"%d to add", "%d to change", "%d to remove"}
	}
	if !d.app.JSON {
		format := "set %s: " + strings.Join(words, ", ") + ", %d as they should be\n"
		d.app.Printf(format, d.set, d.counts[schedules.Add], d.counts[schedules.Change],
			d.counts[schedules.Remove], d.counts[schedules.Same]+d.counts[schedules.Over])
	}
	switch {
	case d.unknown:
		return logged{outcomeError{timer.Unknown}}
	case d.failed:
		return errors.New("the schedules are not as the file has them")
	case d.left:
		return logged{outcomeError{timer.Conflict}}
	}
	return nil
}
