package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"delaybroker/broker/deadletter"
)

func (a *app) deadResendCommand() *cobra.Command {
	var choice letterChoice
	var change deadletter.Change
	var dry bool
	c := &cobra.Command{
		Use:   "resend",
		Short: "Deliver dead letters after all",
		Long: `Put the messages back into the broker's lanes, with all their retries before them, and remove each letter once
its message is stored there. A message keeps its Delay-Id, and so its Nats-Msg-Id at the target. What is due is
delivered at once, what is not (a bad_target may be) when it is. The broker looks at the target again, and at
DELAY_TARGETS.

What cannot be resent stays, and is told with what to do about it:

  no target, or one that may not be delivered to     --to <target>, which goes for all letters that are chosen
  never understood, so that nobody knows when it is  --now delivers it at once; all codes but undelivered, expired,
  due                                                too_large and bad_target
  its Delay-Expires has passed                       --drop-expiry
  no seal proves that a broker wrote it, or what     --unsealed, for letters that you know to be yours: look at them
  became a bad_internal letter                       first: whoever put them there says what is delivered, and where

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
