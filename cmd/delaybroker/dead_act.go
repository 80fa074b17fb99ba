package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"delaybroker/broker/deadletter"
	"delaybroker/broker/inspect"
)

func (a *app) deadResendCommand() *cobra.Command {
	var choice letterChoice
	var change deadletter.Change
	var dry bool
	c := &cobra.Command{
		Use:   "resend",
		Short: "Deliver dead letters after all",
		Long: `Put the messages back into the broker's lanes, with all their retries before them, and remove each letter once its
message is stored there. A message keeps its Delay-Id, and so its Nats-Msg-Id at the target. What is due is delivered at
once, what is not (a bad_target may be) when it is. The broker looks at the target again, and at DELAY_TARGETS.

What cannot be resent stays, and is told with what to do about it:

  no target, or one that may not be delivered to     --to <target>, which goes for all letters that are chosen
  never understood, so that nobody knows when it is  --now delivers it at once; all codes but undelivered, expired,
  due                                                too_large and bad_target
  its Delay-Expires has passed                       --drop-expiry
  no seal proves that a broker wrote it, or what     --unsealed, for letters that you know to be yours: look at them first,
  became a bad_internal letter                       since whoever has them put there says what is delivered, and where to

If this is interrupted, a letter is either resent and gone or as it was. After a crash in between, resend it again soon:
within DELAY_DEDUP_WINDOW that does not deliver twice.

exit codes: 0 all that were chosen, 1 failed, or some were left, 2 wrong words or settings`,
		Example: `  delaybroker dead resend --code undelivered --target 'orders.>' --since 2h --dry-run
  delaybroker dead resend --id DELAY_30m-1234-1732060800000000000 --to orders.expire`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := choice.chosen(); err != nil {
				return err
			}
			return a.withLetters(cmd.Context(), choice, func(ctx context.Context, d deadLetters) error {
				if problem := d.policy.CheckTarget(change.Target); change.Target != "" && problem != nil {
					return fmt.Errorf("%w: --to: %s", errUsage, problem.Sentence)
				}
				w := deadWork{deadLetters: d, did: "resent", dry: dry, bodies: !dry}
				w.do = func(ctx context.Context, l deadletter.Letter) error {
					return d.Resend(ctx, l, change, d.Time())
				}
				if dry {
					w.do = func(_ context.Context, l deadletter.Letter) error {
						_, err := l.Again(d.policy, change, d.Time())
						return err
					}
				}
				return a.work(ctx, w)
			})
		},
	}
	choice.flags(c)
	c.Flags().BoolVar(&choice.all, "all", false, "all there are")
	c.Flags().BoolVar(&dry, "dry-run", false, "only say what would be done")
	c.Flags().StringVar(&change.Target, "to", "", "deliver to this subject instead")
	c.Flags().BoolVar(&change.AtOnce, "now", false, "deliver at once, also what was never understood")
	c.Flags().BoolVar(&change.Unsealed, "unsealed", false, "deliver although no seal proves that a broker wrote it")
	c.Flags().BoolVar(&change.DropExpiry, "drop-expiry", false, "deliver although Delay-Expires has passed")
	return c
}

func (a *app) deadRemoveCommand() *cobra.Command {
	var choice letterChoice
	var dry bool
	c := &cobra.Command{
		Use:   "rm",
		Short: "Remove dead letters for good",
		Long: `Remove dead letters for good: their messages will never be delivered. What becomes a dead letter meanwhile is not
removed, unlike by a purge.

exit codes: 0 all that were chosen, 1 failed, 2 wrong words or settings`,
		Example: `  delaybroker dead rm --code bad_time --until 7d --dry-run
  delaybroker dead rm --all`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := choice.chosen(); err != nil {
				return err
			}
			return a.withLetters(cmd.Context(), choice, func(ctx context.Context, d deadLetters) error {
				w := deadWork{deadLetters: d, did: "removed", dry: dry, do: d.Remove}
				if dry {
					w.do = func(context.Context, deadletter.Letter) error { return nil }
				}
				return a.work(ctx, w)
			})
		},
	}
	choice.flags(c)
	c.Flags().BoolVar(&choice.all, "all", false, "all there are")
	c.Flags().BoolVar(&dry, "dry-run", false, "only say what would be done")
	return c
}

// errLettersLeft is returned when some of the letters were left. It is an answer and has been printed.
var errLettersLeft = errors.New("some dead letters were left")

// deadWork is what resend and rm do to letters.
type deadWork struct {
	deadLetters
	did    string // what it is called when it is done
	dry    bool   // nothing is
	bodies bool   // do wants the payloads
	do     func(ctx context.Context, l deadletter.Letter) error
}

// letterSummary is the end of a run. What has been done is in it also when the run failed.
type letterSummary struct {
	DryRun   bool                    `json:"dry_run"`
	Complete bool                    `json:"complete"` // all letters that were chosen were dealt with
	Outcomes []inspect.LetterOutcome `json:"outcomes"`
}

// work does it to the letters that were chosen, until all are done, something fails, or somebody interrupts.
func (a *app) work(ctx context.Context, w deadWork) error {
	interrupted, stop := interruptible(ctx)
	defer stop()
	told := progress{app: a}
	outcomes, err := w.Work(ctx, interrupted, &inspect.LetterWork{
		Query: deadletter.Query{Filter: w.filter, HeadersOnly: !w.bodies, Progress: told.look}, Did: w.did, Do: w.do,
	})
	told.bar.stop()
	if shown := a.showOutcomes(w, outcomes, err == nil); err == nil {
		err = shown
	}
	if err != nil {
		return err
	}
	return w.verdict(outcomes)
}

func (a *app) showOutcomes(w deadWork, outcomes []inspect.LetterOutcome, complete bool) error {
	if a.json {
		return a.printJSON(letterSummary{DryRun: w.dry, Complete: complete, Outcomes: outcomes})
	}
	if len(outcomes) == 0 {
		if !complete {
			return nil
		}
		_, err := fmt.Fprintln(a.stdout, none(w.filter))
		return err
	}
	t := a.sheet(
		column{name: "was"}, column{name: "letters"}, column{name: "why", least: 12, wrap: true},
		column{name: "such as number", drop: 1},
	)
	for _, o := range outcomes {
		did, number := o.Did, ""
		if w.dry {
			did = "would be " + did
		}
		if o.Number > 0 {
			number = fmt.Sprint(o.Number)
		}
		t.add(did, o.Letters, o.Why, number)
	}
	t.print()
	return nil
}

// verdict is the exit code of a complete run.
func (w deadWork) verdict(outcomes []inspect.LetterOutcome) error {
	for _, o := range outcomes {
		if o.Did == inspect.LetterLeft {
			return logged{errLettersLeft}
		}
	}
	if len(outcomes) == 0 && len(w.filter.IDs)+len(w.filter.Sequences) > 0 {
		return logged{errNoLetter}
	}
	return nil
}
