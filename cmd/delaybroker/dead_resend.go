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
	dryRun  bool
}

func (a *app) deadResendCommand() *cobra.Command {
	var o resendOptions
	c := &cobra.Command{
		Use:   "resend",
		Short: "Deliver dead letters, with changes if necessary",
		Long: `Put the messages of dead letters back into a lane of the broker, and remove each letter after its message is
stored there. The attempts of a message count from zero. A message keeps its Delay-Id, and so its Nats-Msg-Id at the
target. A due message is delivered immediately. A message that is not yet due, for example with the code bad_target, is
delivered when it is due. The broker checks again whether DELAY_TARGETS allows the target.

--header, --drop-header and --body change all selected letters in the same way. --edit opens the letters one by one in
$VISUAL or $EDITOR, and then resends the changed ones. Headers of the broker and of the server cannot be changed, except
Delay-Until, Delay-Expires, Delay-Deliver, Delay-TTL, Delay-Max-Attempts and Delay-Rate-Key.

A letter that cannot be resent is kept, and the output names the remedy:

  the letter has no target, or one that is not       --to <target>, which applies to all selected letters
  allowed
  the request was invalid, so the due time is        --now delivers it immediately, --header 'Delay-Until: <time>' at
  unknown (never with the codes undelivered,         that time
  expired, too_large and bad_target)
  its Delay-Expires has passed                       --drop-expiry, or --header 'Delay-Expires: 10m'
  no seal proves that a broker wrote it, or it has   --unsealed, only for letters that you have checked: a forger
  the code bad_internal                              chooses both content and target

If you interrupt the command, each letter is either resent and removed, or unchanged. After a crash of the command,
resend the letters again within DELAY_DEDUP_WINDOW, so that no message is delivered twice.

exit codes: 0 all selected letters were resent, 1 failed, or some letters were not resent, 2 bad arguments or settings`,
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
	o.choice.addFlags(c)
	f := c.Flags()
	f.BoolVar(&o.choice.all, "all", false, "all dead letters")
	f.BoolVar(&o.dryRun, "dry-run", false, "only show the outcome, and change nothing")
	f.StringVar(&o.change.Target, "to", "", "deliver to this subject, instead of the letter's target")
	f.BoolVar(&o.change.DeliverNow, "now", false, "deliver immediately; for requests whose due time is unknown")
	f.BoolVar(&o.change.Unsealed, "unsealed", false, "deliver even if no seal proves that a broker wrote the letter")
	f.BoolVar(&o.change.DropExpiry, "drop-expiry", false, "deliver even if Delay-Expires has passed")
	f.StringArrayVarP(&o.headers, "header", "H", nil, "set this header, 'Key: value'; replaces the headers with this key")
	f.StringSliceVar(&o.change.Edit.Drop, "drop-header", nil, "remove this header; several are comma separated")
	f.StringVar(&o.body, "body", "", "set this body; - reads it from stdin")
	f.BoolVar(&o.edit, "edit", false, "edit each letter in $VISUAL or $EDITOR, and resend only the changed ones")
	return c
}

// read checks the flags that can be checked without the letters, and reads the body.
func (o *resendOptions) read(newBody bool, stdin io.Reader) error {
	if err := o.choice.check(); err != nil {
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
	if o.edit && (newBody || !edit.IsZero()) {
		return fmt.Errorf("%w: --edit excludes --header, --drop-header and --body: make these changes in the editor",
			errUsage)
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

// resend resends the selected letters. Before the first letter, it reports a problem of --to or of the new headers,
// which would concern all letters.
func (a *app) resend(ctx context.Context, d deadLetters, o resendOptions) error {
	if problem := d.policy.CheckTarget(o.change.Target); o.change.Target != "" && problem != nil {
		return fmt.Errorf("%w: --to: %s", errUsage, problem.Sentence)
	}
	now := d.Time()
	l := message.Letter{Request: message.Request{Due: now}}
	if _, problem := d.policy.Edit(l, o.change.Edit.HeaderEdit, now); problem != nil {
		return fmt.Errorf("%w: %s", errUsage, problem.Sentence)
	}
	if o.edit {
		return a.resendEdited(ctx, d, o)
	}
	work := d.ResendWork(d.filter, o.change, o.dryRun)
	return a.runLetters(ctx, letterRun{deadLetters: d, dryRun: o.dryRun, LetterWork: work})
}
