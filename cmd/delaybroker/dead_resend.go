package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"delaybroker/broker/deadletter"
	"delaybroker/broker/message"
)

// resendOptions are the flags of dead resend.
type resendOptions struct {
	choice  letterChoice
	change  deadletter.Change
	headers []string
	body    string
	edit    bool
	dry     bool
}

func (a *app) deadResendCommand() *cobra.Command {
	var o resendOptions
	c := &cobra.Command{
		Use:   "resend",
		Short: "Deliver dead letters after all, repaired if need be",
		Long: `Put the messages back into the broker's lanes, with all their retries before them, and remove each letter once
its message is stored there. A message keeps its Delay-Id, and so its Nats-Msg-Id at the target. What is due is
delivered at once, what is not (a bad_target may be) when it is. The broker looks at the target again, and at
DELAY_TARGETS.

--header, --drop-header and --body repair all letters that are chosen in the same way. --edit opens each of them in
$VISUAL or $EDITOR, and resends those that were changed. Headers of the broker and of the server stay as they are, but
for Delay-Until, Delay-Expires, Delay-Deliver, Delay-TTL and Delay-Max-Attempts.

What cannot be resent stays, and is told with what to do about it:

  no target, or one that may not be delivered to     --to <target>, which goes for all letters that are chosen
  never understood, so that nobody knows when it is  --now delivers it at once, --header 'Delay-Until: <time>' then;
  due                                                all codes but undelivered, expired, too_large and bad_target
  its Delay-Expires has passed                       --drop-expiry, or --header 'Delay-Expires: 10m'
  no seal proves that a broker wrote it, or what     --unsealed, for letters that you know to be yours: look at them
  became a bad_internal letter                       first: whoever put them there says what is delivered, and where

If this is interrupted, a letter is either resent and gone or as it was. After a crash in between, resend it again soon:
within DELAY_DEDUP_WINDOW that does not deliver twice.

exit codes: 0 all that were chosen, 1 failed, or some were left, 2 bad arguments or settings`,
		Example: `  delaybroker dead resend --code undelivered --target 'orders.>' --since 2h --dry-run
  delaybroker dead resend --id DELAY_30m-1234-1732060800000000000 --to orders.expire
  delaybroker dead resend --code bad_option --now --header 'Delay-Expires: 1h' --drop-header X-Trace
  jq .amount=1 order.json | delaybroker dead resend --id 7 --body -
  delaybroker dead resend --id 7 --edit`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.read(cmd.Flags().Changed("body"), cmd.InOrStdin()); err != nil {
				return err
			}
			return a.withLetters(cmd.Context(), o.choice, func(ctx context.Context, d deadLetters) error {
				return a.resend(ctx, d, o)
			})
		},
	}
	o.choice.flags(c)
	f := c.Flags()
	f.BoolVar(&o.choice.all, "all", false, "all there are")
	f.BoolVar(&o.dry, "dry-run", false, "only say what would be done")
	f.StringVar(&o.change.Target, "to", "", "deliver to this subject instead")
	f.BoolVar(&o.change.AtOnce, "now", false, "deliver now; required for requests that could not be parsed")
	f.BoolVar(&o.change.Unsealed, "unsealed", false, "deliver although no seal proves that a broker wrote it")
	f.BoolVar(&o.change.DropExpiry, "drop-expiry", false, "deliver although Delay-Expires has passed")
	f.StringArrayVarP(&o.headers, "header", "H", nil, "with this header, 'Key: value', in place of those of its key")
	f.StringSliceVar(&o.change.Edit.Drop, "drop-header", nil, "without this header, or without several")
	f.StringVar(&o.body, "body", "", "with this body; - reads it from stdin")
	f.BoolVar(&o.edit, "edit", false, "edit each letter in $VISUAL or $EDITOR, and resend those that were changed")
	return c
}

// read checks the flags that need no letters, and reads the body.
func (o *resendOptions) read(newBody bool, stdin io.Reader) error {
	if err := o.choice.chosen(); err != nil {
		return err
	}
	edit := &o.change.Edit
	if len(o.headers) > 0 {
		h, err := parseHeaders(o.headers)
		if err != nil {
			return err
		}
		edit.Set = message.Header(h)
	}
	if o.edit && (newBody || !edit.None()) {
		return fmt.Errorf("%w: --edit together with --header, --drop-header or --body: change those in the editor", errUsage)
	}
	if o.edit && len(editorCommand()) == 0 {
		return fmt.Errorf("%w: --edit: set EDITOR to the command of your editor", errUsage)
	}
	if newBody {
		body, err := readBody(stdin, []string{o.body})
		if err != nil {
			return err
		}
		edit.Body = append([]byte{}, body...)
	}
	return nil
}

// resend resends the selected letters. A problem of every letter is an error before the first is resent.
func (a *app) resend(ctx context.Context, d deadLetters, o resendOptions) error {
	if problem := d.policy.CheckTarget(o.change.Target); o.change.Target != "" && problem != nil {
		return fmt.Errorf("%w: --to: %s", errUsage, problem.Sentence)
	}
	now := d.Time()
	l := message.Letter{Request: message.Request{Due: now}}
	if _, problem := d.policy.Edited(l, o.change.Edit.HeaderEdit, now); problem != nil {
		return fmt.Errorf("%w: %s", errUsage, problem.Sentence)
	}
	if o.edit {
		return a.resendEdited(ctx, d, o)
	}
	return a.work(ctx, deadWork{deadLetters: d, dry: o.dry, LetterWork: d.Resending(d.filter, o.change, o.dry)})
}
