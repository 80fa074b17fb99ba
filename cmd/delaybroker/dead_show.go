package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"delaybroker/broker/deadletter"
	"delaybroker/broker/text"
	"delaybroker/cmd/delaybroker/terminal"
)

// letterView is a dead letter as JSON, without unknown values.
type letterView struct {
	Number       uint64    `json:"number"` // sequence of the letter in its stream
	Since        time.Time `json:"dead_since"`
	Code         string    `json:"code"`
	Reason       string    `json:"reason"`
	ID           string    `json:"id,omitempty"`
	Target       string    `json:"target,omitempty"`
	Subject      string    `json:"subject,omitempty"` // subject of the original publish, escaped, at most 256 bytes
	Accepted     time.Time `json:"accepted,omitzero"`
	Due          time.Time `json:"due,omitzero"`
	Expires      time.Time `json:"expires,omitzero"`
	Attempts     int       `json:"attempts"` // number of refusals
	FirstFailure time.Time `json:"first_failure,omitzero"`
	LastFailure  time.Time `json:"last_failure,omitzero"`
	contentView
	Unreadable string `json:"unreadable,omitempty"`
	// Unproven is the reason to doubt that a broker wrote the letter. Only show reads and checks the payload.
	Unproven string `json:"unproven,omitempty"`
}

// contentView is the content of the message.
type contentView struct {
	Size    int                 `json:"size"` // bytes of the payload
	Headers map[string][]string `json:"headers,omitempty"`
	Payload []byte              `json:"payload,omitempty"` // base64; only in the output of show
}

func newLetterView(l deadletter.Letter) letterView {
	v := letterView{
		Number: l.Sequence, Since: l.At.UTC(), Code: string(l.Code), Reason: l.Sentence,
		ID: l.ID, Target: l.Target, Subject: l.Letter.Subject, Accepted: l.Accepted, Expires: l.Expires,
		Attempts: l.Attempts, FirstFailure: l.FirstFailure, LastFailure: l.LastFailure,
		contentView: contentView{Size: l.Size, Headers: l.User, Payload: l.Data},
	}
	if l.DueKnown() { // otherwise Due may be the time of acceptance
		v.Due = l.Due
	}
	if l.Problem != nil {
		v.Unreadable = l.Problem.Sentence
	}
	if l.Unproven != nil {
		v.Unproven = l.Unproven.Sentence
	}
	return v
}

func (a *app) deadShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show <Delay-Id or number>",
		Short: "Show one dead letter, with its headers and payload",
		Long: `Show a dead letter, by its Delay-Id or by its number in "delaybroker dead ls". After a crash of a broker,
several letters may have one Delay-Id, and all are shown. With --json, each letter is a line, and the payload is base64.

exit codes: 0 shown, 1 not found or failed, 2 bad arguments or settings`,
		Args: argumentsBetween(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			choice := letterChoice{ids: args}
			return a.withLetters(cmd.Context(), choice, func(ctx context.Context, d deadLetters) error {
				ctx, stop := withInterrupt(ctx)
				defer stop()
				return a.deadShow(ctx, d)
			})
		},
	}
}

func (a *app) deadShow(ctx context.Context, d deadLetters) error {
	shown := 0
	tracker := progress{app: a, rows: true}
	for l, err := range d.List(ctx, deadletter.Query{Filter: d.filter, Progress: tracker.update}) {
		if err = cmp.Or(err, a.Failure()); err != nil {
			return err
		}
		shown++
		a.showLetter(l)
	}
	if shown > 0 {
		return nil
	}
	if !a.JSON {
		a.Printf("%s\n", noLettersText(d.filter))
	}
	return reportedError{errNoLetter}
}

func (a *app) showLetter(l deadletter.Letter) {
	v := newLetterView(l)
	if a.AsJSON(v) {
		return
	}
	t, line := a.properties()
	line("message", l.ID, l.ID != "")
	line("number", strconv.FormatUint(l.Sequence, 10), true)
	line("dead since", text.Moment(l.At), true)
	line("code", string(l.Code), true)
	line("reason", l.Sentence, l.Sentence != "")
	line("unreadable", v.Unreadable, v.Unreadable != "")
	line("unproven", v.Unproven, v.Unproven != "")
	line("published on", l.Letter.Subject, l.Letter.Subject != "")
	line("target", l.Target, l.Target != "")
	line("accepted", text.Moment(l.Accepted), !l.Accepted.IsZero())
	line("due", text.Moment(v.Due), !v.Due.IsZero())
	line("expires", text.Moment(l.Expires), !l.Expires.IsZero())
	refused := fmt.Sprintf("%d times, from %s to %s",
		l.Attempts, text.Moment(l.FirstFailure), text.Moment(l.LastFailure))
	line("refused", refused, l.Attempts > 0)
	line("deliver", string(l.Mode), l.Mode != "")
	line("TTL", l.TTL, l.TTL != "")
	line("Nats-Msg-Id", l.MsgID, l.MsgID != "")
	for _, name := range slices.Sorted(maps.Keys(l.User)) {
		line("header", name+": "+strings.Join(l.User[name], ", "), true)
	}
	t.Print()
	a.showBody(l.Data)
}

// properties returns a sheet with two columns, and a function that adds a name and a value, if known is set.
func (a *app) properties() (t *terminal.Sheet, line func(name, value string, known bool)) {
	t = a.Sheet([]terminal.Column{{}, {Min: 12, Wrap: true}})
	return t, func(name, value string, known bool) {
		if known {
			t.Add(name, text.Printable(value, 2000))
		}
	}
}
