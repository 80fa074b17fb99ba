package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"delaybroker/broker/deadletter"
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
)

const defaultLetters = 100

// letterView is a dead letter as JSON. What is not known is left out.
type letterView struct {
	Number       uint64              `json:"number"` // its sequence in the stream
	Since        time.Time           `json:"dead_since"`
	Code         string              `json:"code"`
	Reason       string              `json:"reason"`
	ID           string              `json:"id,omitempty"`
	Target       string              `json:"target,omitempty"`
	Subject      string              `json:"subject,omitempty"` // where it was published, escaped, at most 256 bytes
	Accepted     time.Time           `json:"accepted,omitzero"`
	Due          time.Time           `json:"due,omitzero"`
	Expires      time.Time           `json:"expires,omitzero"`
	Attempts     int                 `json:"attempts"`
	FirstFailure time.Time           `json:"first_failure,omitzero"`
	LastFailure  time.Time           `json:"last_failure,omitzero"`
	Size         int                 `json:"size"` // bytes of the payload
	Headers      map[string][]string `json:"headers,omitempty"`
	Payload      []byte              `json:"payload,omitempty"` // base64; shown one by one only
	Unreadable   string              `json:"unreadable,omitempty"`
	// Unproven is why it may not be a broker's; show looks at the payload too.
	Unproven string `json:"unproven,omitempty"`
}

func viewOfLetter(l deadletter.Letter) letterView {
	v := letterView{
		Number: l.Sequence, Since: l.At.UTC(), Code: string(l.Code), Reason: l.Sentence, ID: l.ID, Target: l.Target,
		Subject: l.Letter.Subject, Accepted: l.Accepted, Due: l.Due, Expires: l.Expires,
		Attempts: l.Attempts, FirstFailure: l.FirstFailure, LastFailure: l.LastFailure,
		Size: l.Size, Headers: l.User, Payload: l.Data,
	}
	if l.Problem != nil {
		v.Unreadable = l.Problem.Sentence
	}
	if l.Unproven != nil {
		v.Unproven = l.Unproven.Sentence
	}
	return v
}

func (a *app) deadListCommand() *cobra.Command {
	var choice letterChoice
	var limit int
	var by []string
	c := &cobra.Command{
		Use:   "ls",
		Short: "List dead letters, the oldest first, or count them by kind",
		Long: `List dead letters, the oldest first, or with --by count them, the most first. With --json, each letter of a list is a line.
Numbers in reasons count as equal: they are times and attempts.

exit codes: 0 listed, 1 failed, 2 wrong words or settings`,
		Example: `  delaybroker dead ls --code undelivered,expired --target 'orders.>'
  delaybroker dead ls --since 2h --limit 0 --json
  delaybroker dead ls --by code,target,reason`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return fmt.Errorf("%w: --limit %d: want 0 or more", errUsage, limit)
			}
			if err := checkBy(by); err != nil {
				return err
			}
			return a.withLetters(cmd.Context(), choice, func(ctx context.Context, d deadLetters) error {
				ctx, stop := interruptible(ctx)
				defer stop()
				if len(by) > 0 {
					return a.deadCount(ctx, d, by, limit)
				}
				return a.deadList(ctx, d, limit)
			})
		},
	}
	choice.flags(c)
	c.Flags().IntVar(&limit, "limit", defaultLetters, "list so many at most; 0 for all")
	c.Flags().StringSliceVar(&by, "by", nil, "count instead, by some of code, target, reason")
	completes(c, "by", inspect.ByCode, inspect.ByTarget, inspect.ByReason)
	return c
}

func (a *app) deadList(ctx context.Context, d deadLetters, limit int) error {
	t := a.sheet(
		column{name: "number"}, column{name: "dead since", drop: 3}, column{name: "code", least: 8},
		column{name: "target", least: 10}, column{name: "refused", drop: 5}, column{name: "bytes", drop: 6},
		column{name: "delay-id", drop: 4}, column{name: "reason", least: 12},
	)
	listed, matching := 0, 0
	var all uint64 // of those that the server chooses
	told := progress{app: a, rows: true}
	progress := func(looked, of uint64) {
		all = of
		told.look(looked, of)
	}
	var failed error
	for l, err := range d.List(ctx, deadletter.Query{Filter: d.filter, HeadersOnly: true, Progress: progress}) {
		if failed = err; err != nil {
			break
		}
		if matching++; limit > 0 && listed == limit {
			if f := d.filter; f.Target == "" && f.Since.IsZero() && f.Until.IsZero() &&
				len(f.IDs)+len(f.Sequences) == 0 {
				matching = int(all) // nothing is left to choose, so the others need not be read to be counted
				break
			}
			continue
		}
		listed++
		if a.json {
			if err := a.printJSON(viewOfLetter(l)); err != nil {
				return err
			}
			continue
		}
		t.add(l.Sequence, second(l.At), string(l.Code), orDash(inspect.Printable(l.Target, 256)), l.Attempts, l.Size,
			orDash(inspect.Printable(l.ID, 256)), inspect.Printable(inspect.Reason(l), maxCell))
	}
	switch {
	case a.json:
	case listed > 0:
		t.print()
	case failed == nil:
		_, err := fmt.Fprintln(a.stdout, none(d.filter))
		return err
	}
	switch {
	case failed != nil:
	case matching > listed:
		const more = "%d of %d dead letters; more with --limit, and what they are with --by code,target,reason\n"
		fmt.Fprintf(a.stderr, more, listed, matching)
	case !a.json:
		fmt.Fprintln(a.stderr, counted(matching, "dead letter"))
	}
	return failed
}

func none(f deadletter.Filter) string {
	if f.All() {
		return "no dead letters"
	}
	return "no such dead letters"
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (a *app) deadShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show <Delay-Id or number>",
		Short: "Show one dead letter, with its headers and payload",
		Long: `Show a dead letter, by its Delay-Id or by its number in "delaybroker dead ls". After a crash, one Delay-Id may have several.
With --json, each is a line, and the payload is base64.

exit codes: 0 shown, 1 not there or failed, 2 wrong words or settings`,
		Args: argumentsBetween(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			choice := letterChoice{ids: args}
			return a.withLetters(cmd.Context(), choice, func(ctx context.Context, d deadLetters) error {
				ctx, stop := interruptible(ctx)
				defer stop()
				return a.deadShow(ctx, d)
			})
		},
	}
}

func (a *app) deadShow(ctx context.Context, d deadLetters) error {
	shown := 0
	told := progress{app: a, rows: true}
	for l, err := range d.List(ctx, deadletter.Query{Filter: d.filter, Progress: told.look}) {
		if err != nil {
			return err
		}
		shown++
		if err := a.showLetter(l); err != nil {
			return err
		}
	}
	if shown > 0 {
		return nil
	}
	if !a.json {
		if _, err := fmt.Fprintln(a.stdout, none(d.filter)); err != nil {
			return err
		}
	}
	return logged{errNoLetter}
}

func (a *app) showLetter(l deadletter.Letter) error {
	if a.json {
		return a.printJSON(viewOfLetter(l))
	}
	t := a.sheet(column{}, column{least: 12, wrap: true})
	line := func(name, value string, known bool) {
		if known {
			t.add(name, inspect.Printable(value, 2000))
		}
	}
	line("message", l.ID, l.ID != "")
	line("number", strconv.FormatUint(l.Sequence, 10), true)
	line("dead since", inspect.Moment(l.At), true)
	line("code", string(l.Code), true)
	line("reason", l.Sentence, l.Sentence != "")
	line("unreadable", sentence(l.Problem), l.Problem != nil)
	line("unproven", sentence(l.Unproven), l.Unproven != nil)
	line("published on", l.Letter.Subject, l.Letter.Subject != "")
	line("target", l.Target, l.Target != "")
	line("accepted", inspect.Moment(l.Accepted), !l.Accepted.IsZero())
	line("due", inspect.Moment(l.Due), !l.Due.IsZero() && l.Understood())
	line("expires", inspect.Moment(l.Expires), !l.Expires.IsZero())
	refused := fmt.Sprintf("%d times, from %s to %s",
		l.Attempts, inspect.Moment(l.FirstFailure), inspect.Moment(l.LastFailure))
	line("refused", refused, l.Attempts > 0)
	line("deliver", string(l.Mode), l.Mode != "")
	line("TTL", l.TTL, l.TTL != "")
	line("Nats-Msg-Id", l.MsgID, l.MsgID != "")
	for _, name := range slices.Sorted(maps.Keys(l.User)) {
		line("header", name+": "+strings.Join(l.User[name], ", "), true)
	}
	line("payload", payload(l.Data), true)
	t.print()
	return nil
}

func sentence(p *message.Problem) string {
	if p == nil {
		return ""
	}
	return p.Sentence
}

// payload is a body for people: text as it is, other bytes as base64.
func payload(data []byte) string {
	switch {
	case len(data) == 0:
		return "empty"
	case utf8.Valid(data):
		return fmt.Sprintf("%d bytes: %s", len(data), data)
	}
	return fmt.Sprintf("%d bytes, base64: %s", len(data), base64.StdEncoding.EncodeToString(data))
}
