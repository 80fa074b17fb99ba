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
	"delaybroker/broker/jsapi"
	"delaybroker/broker/operation"
	"delaybroker/broker/text"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/store"
	"delaybroker/cmd/delaybroker/schedules"
	"delaybroker/cmd/delaybroker/settings"
	"delaybroker/cmd/delaybroker/terminal"
)

// applyOptions are the flags of apply.
type applyOptions struct {
	file                            string
	dryRun, prune, adopt, removeAll bool
}

func (a *app) schedulesApplyCommand() *cobra.Command {
	var o applyOptions
	c := &cobra.Command{
		Use:   "apply -f FILE [--dry-run]",
		Short: "Apply a file of schedules",
		Long: `Apply a file of schedules, and show the schedules that are added (+), changed (~), removed (-) and not changed
although they differ (!). A second run of the same file changes nothing, and concurrent runs do no harm.

  set: reports                  # owner of the schedules: apply removes only schedules with this owner
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

Schedules of the set that are not in the file are removed, unless --prune=false is given. A file without schedules would
remove its whole set, so it requires --remove-all. If a schedule with the same name and target has another owner, it is
not changed, unless --adopt is given. A change of the headers or the body does not move the next round. After each
change, the rounds count from 1 again. A paused schedule is not changed, but may be removed.

If the file is invalid, the command reports all its problems and changes nothing. A failed change does not stop the
other changes.

exit codes: 0 all schedules match the file, or would match it after the changes of --dry-run, 1 the command or some
changes failed, 2 bad arguments, settings or file, and nothing was changed, 5 some schedules were not changed, for the
printed reasons, 6 unknown: a change may have been made; apply the file again`,
		Example: `  delaybroker schedules apply -f schedules.yaml --dry-run
  delaybroker schedules apply -f - < schedules.yaml`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.applySchedules(cmd, o) },
	}
	f := c.Flags()
	f.StringVarP(&o.file, "file", "f", "", "the file; - for stdin")
	f.BoolVar(&o.dryRun, "dry-run", false, "only show the changes, and make none")
	f.BoolVar(&o.prune, "prune", true, "remove schedules of the set that are not in the file")
	f.BoolVar(&o.adopt, "adopt", false, "take over existing schedules with another owner")
	f.BoolVar(&o.removeAll, "remove-all", false, "allow a file without schedules, which removes all schedules of its set")
	return c
}

func (a *app) applySchedules(cmd *cobra.Command, o applyOptions) error {
	if o.file == "" {
		return fmt.Errorf("%w: want the file of schedules: set -f FILE", errUsage)
	}
	c, err := settings.ReadClient()
	if err != nil {
		return err
	}
	text, err := readFile(cmd.InOrStdin(), o.file)
	if err != nil {
		return err
	}
	// The local clock suffices to find errors in the file before the first request. The changes are planned by the
	// server's clock.
	file, err := schedules.Read(o.file, text, c.Policy, time.Now())
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	changes := diff{app: a, set: file.Set, dryRun: o.dryRun, counts: make(map[schedules.Action]int)}
	err = a.withSession(cmd.Context(), c, func(ctx context.Context, s *inspect.Session) error {
		return schedules.Apply{
			File: file, Timers: isolatedTimers{s, s.Timers(c.Policy)}, Policy: c.Policy, Adopt: o.adopt, DryRun: o.dryRun,
			NoRemoval: !o.prune, AllowEmpty: o.removeAll,
		}.Run(ctx, changes.add)
	})
	if errors.Is(err, schedules.ErrEmpty) {
		return fmt.Errorf("%w: %w; --remove-all removes them, --prune=false keeps them", errUsage, err)
	}
	if err != nil {
		return err
	}
	return changes.end()
}

// readFile reads a file, or stdin for the name "-", up to the maximum size of a file of schedules.
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

// isolatedTimers gives each request its own context of [inspect.Session.WithRefusal]. So if the server refuses the
// request about one schedule, the run continues with the others.
type isolatedTimers struct {
	session *inspect.Session
	timers  *store.Timers
}

func (l isolatedTimers) Read(ctx context.Context, key, target string) (timer.State, error) {
	ctx, cancel := l.session.WithRefusal(ctx)
	defer cancel()
	limited, cancel := context.WithTimeout(ctx, timersTimeout)
	defer cancel()
	s, err := l.timers.Read(limited, key, target)
	return s, inspect.Cause(ctx, usageOf(err))
}

func (l isolatedTimers) Now(ctx context.Context) (time.Time, error) {
	ctx, cancel := l.session.WithRefusal(ctx)
	defer cancel()
	now, err := l.timers.Now(ctx)
	return now, inspect.Cause(ctx, err)
}

func (l isolatedTimers) Do(ctx context.Context, w change.Change) (change.Answer, error) {
	ctx, cancel := l.session.WithRefusal(ctx)
	defer cancel()
	limited, cancel := context.WithTimeout(ctx, timersTimeout)
	defer cancel()
	answer, err := l.timers.Do(limited, w)
	if refused := usageOf(err); errors.Is(refused, errUsage) {
		return answer, refused
	}
	if cause := context.Cause(ctx); err == nil && answer.Outcome == timer.Unknown && cause != nil {
		if subject, _ := jsapi.RefusedSubject(cause); subject == l.timers.Policy.Names.Timer(w.Key, w.Target) {
			err = cause // the request was not stored
		} else {
			answer.Why = cause.Error() // the request may be stored, and this user may not read it
		}
	}
	return answer, inspect.Cause(ctx, err)
}

func (l isolatedTimers) ListRecurring(ctx context.Context, f store.Filter) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		ctx, cancel := l.session.WithRefusal(ctx)
		defer cancel()
		for row, err := range l.timers.ListRecurring(ctx, f) {
			if !yield(row, inspect.Cause(ctx, err)) {
				return
			}
		}
	}
}

// diff prints the changes, line by line, and counts them.
type diff struct {
	app    *app
	set    string
	dryRun bool
	counts map[schedules.Action]int

	failed, unknown, prevented bool // at least one change failed, may have been made, or was prevented by an entry
}

// signs are the marks of the lines. An unchanged schedule has none, and is only counted.
var signs = map[schedules.Action]string{
	schedules.Add: "+", schedules.Change: "~", schedules.Remove: "-", schedules.Leave: "!",
}

// add counts a result, and prints its lines.
func (d *diff) add(r schedules.Result) {
	switch {
	case r.Good():
		d.counts[r.Action]++
	case r.Outcome == timer.Unknown:
		d.unknown = true
	case r.Err == nil:
		d.prevented = true
	default:
		d.failed = true
	}
	view, why := resultView{Decision: r.Decision, Outcome: r.Outcome, Good: r.Good()}, r.Why
	if r.Err != nil {
		why = r.Err.Error()
		view.Error = why
	}
	if d.app.AsJSON(view) {
		return
	}
	sign := signs[r.Action]
	if sign == "" {
		return
	}
	d.app.Printf("%s %s  %s  %s\n", sign, r.Name, text.Printable(r.Target, terminal.MaxCell), r.Table)
	for _, x := range r.Differences {
		d.app.Printf("    %s: %s -> %s\n", text.Printable(x.Field, 200), excerpt(x.Old), excerpt(x.New))
	}
	switch {
	case r.Good() || r.Action == schedules.Leave:
	case r.Outcome == timer.Unknown:
		why = "unknown whether this was changed: " + why
	default:
		why = strings.TrimSuffix(fmt.Sprintf("not changed: %s %s", r.Outcome, why), " ")
	}
	if why != "" {
		d.app.Printf("    %s\n", text.Sentence(why))
	}
}

// excerpt shortens a value of a difference to one line.
func excerpt(s string) string {
	const maxChars = 60
	switch {
	case s == "":
		return "none"
	case !utf8.ValidString(s):
		return terminal.Counted(len(s), "byte")
	}
	return text.Printable(s, maxChars)
}

// resultView is a line of apply with --json.
type resultView struct {
	schedules.Decision
	Outcome timer.Outcome `json:"outcome,omitempty"`
	Good    bool          `json:"good"`
	Error   string        `json:"error,omitempty"`
}

// end prints the totals, and returns an error if some schedules do not match the file.
func (d *diff) end() error {
	words := []string{"%d added", "%d changed", "%d removed"}
	if d.dryRun {
		words = []string{"%d to add", "%d to change", "%d to remove"}
	}
	if !d.app.JSON {
		format := "set %s: " + strings.Join(words, ", ") + ", %d unchanged\n"
		d.app.Printf(format, d.set, d.counts[schedules.Add], d.counts[schedules.Change],
			d.counts[schedules.Remove], d.counts[schedules.Same]+d.counts[schedules.Ended])
	}
	switch {
	case d.unknown:
		return reportedError{operation.OutcomeError{Outcome: timer.Unknown}}
	case d.failed:
		return fmt.Errorf("some changes of the set %s failed: correct their causes, and apply the file again", d.set)
	case d.prevented:
		return reportedError{operation.OutcomeError{Outcome: timer.Conflict}}
	}
	return nil
}
