package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"

	"delaybroker/broker/deadletter"
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/text"
	"delaybroker/cmd/delaybroker/terminal"
)

// maxEdits is the maximum number of letters edited in one run. Their bodies are in memory.
const maxEdits = 100

// An editedLetter identifies an edited letter. If the stream of dead letters is created again during the edit, another
// letter may have the same sequence, but not the same time.
type editedLetter struct {
	sequence uint64
	at       int64 // time of the dead letter, in Unix nanoseconds
}

func newEditedLetter(l deadletter.Letter) editedLetter {
	return editedLetter{l.Sequence, l.At.UnixNano()}
}

// resendEdited opens an editor for each letter, one after the other, and then resends the changed ones. After an error
// of an editor or in an edited text, it resends no letter.
func (a *app) resendEdited(ctx context.Context, d deadLetters, o resendOptions) error {
	var letters []deadletter.Letter
	for l, err := range d.List(ctx, deadletter.Query{Filter: d.filter}) {
		if err != nil {
			return err
		}
		if letters = append(letters, l); len(letters) > maxEdits {
			return fmt.Errorf("%w: --edit: more than %d letters; select fewer", errUsage, maxEdits)
		}
	}
	edits := make(map[editedLetter]deadletter.Edit)
	unchanged := inspect.LetterOutcome{Outcome: inspect.LetterLeft, Reason: "not changed in the editor"}
	var numbers []uint64
	for _, l := range letters {
		change := o.change
		var err error
		if change.Edit, err = a.editLetter(ctx, l, func(e deadletter.Edit) error {
			change.Edit = e
			return d.DryRun(ctx, l, change, d.Time())
		}); err != nil {
			return fmt.Errorf("dead letter %d: %w; no letter was resent", l.Sequence, err)
		}
		if change.Edit.IsZero() {
			unchanged.Letters, unchanged.Number = unchanged.Letters+1, l.Sequence
			continue
		}
		edits[newEditedLetter(l)] = change.Edit
		numbers = append(numbers, l.Sequence)
	}
	w := letterRun{deadLetters: d, dryRun: o.dryRun}
	if unchanged.Letters > 0 {
		w.skipped = []inspect.LetterOutcome{unchanged}
	}
	if len(edits) == 0 { // a filter without numbers would select all letters
		a.showOutcomes(w, w.skipped, true)
		return w.exitErr(w.skipped)
	}
	filter := deadletter.Filter{Sequences: numbers}
	w.LetterWork = d.ResendWorkByLetter(filter, func(l deadletter.Letter) deadletter.Change {
		change := o.change
		change.Edit = edits[newEditedLetter(l)]
		return change
	}, o.dryRun)
	resend := w.Do
	w.Do = func(ctx context.Context, l deadletter.Letter) error {
		if _, known := edits[newEditedLetter(l)]; !known {
			return deadletter.ErrAbsent
		}
		return resend(ctx, l)
	}
	return a.runLetters(ctx, w)
}

// editLetter lets a person edit a file with the text of one letter, and returns the changes. The function check
// validates them. If they are invalid, editLetter keeps the file, and the error has its path.
func (a *app) editLetter(
	ctx context.Context, l deadletter.Letter, check func(deadletter.Edit) error,
) (edit deadletter.Edit, err error) {
	f, err := os.CreateTemp("", "delaybroker-letter-*.txt") // readable only by this user
	if err != nil {
		return edit, err
	}
	_, err = f.WriteString(letterText(l))
	if err = cmp.Or(err, f.Close()); err == nil {
		err = a.runEditor(ctx, f.Name())
	}
	if err != nil {
		os.Remove(f.Name())
		return edit, err
	}
	text, err := os.ReadFile(f.Name())
	if err != nil {
		return edit, err
	}
	if edit, err = parseLetterText(l, string(text)); err == nil && !edit.IsZero() {
		err = check(edit)
	}
	if err != nil {
		return edit, fmt.Errorf("%w; your text is in %s", err, f.Name())
	}
	return edit, os.Remove(f.Name())
}

// editorCommand returns the command of the user's editor, with its arguments. It is empty if both VISUAL and EDITOR are
// empty.
func editorCommand() []string {
	return strings.Fields(cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR")))
}

// runEditor runs the editor on a file.
func (a *app) runEditor(ctx context.Context, file string) error {
	words := editorCommand()
	interrupts := make(chan os.Signal, 1) // Ctrl-C is for the editor
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	editor := exec.CommandContext(ctx, words[0], append(words[1:], file)...)
	editor.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { // without the passwords of this program
		return strings.HasPrefix(v, "NATS_") || strings.HasPrefix(v, "DELAY_")
	})
	editor.Stdin, editor.Stdout, editor.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := editor.Run(); err != nil {
		return fmt.Errorf("editor %s: %w", words[0], err)
	}
	return nil
}

// letterText returns the text of a letter for an editor: comments, headers, an empty line, and the body if it is text.
func letterText(l deadletter.Letter) string {
	var b strings.Builder
	comment := func(format string, args ...any) {
		fmt.Fprintf(&b, "# %s\n", text.Printable(fmt.Sprintf(format, args...), terminal.MaxCell))
	}
	comment("dead letter %d to %s: %s", l.Sequence, terminal.OrDash(l.Target), inspect.Reason(l))
	comment("Change headers and body, or remove headers. Delay-Until, Delay-Expires, Delay-Deliver, Delay-TTL,")
	comment("Delay-Max-Attempts and Delay-Rate-Key have the same meaning as for a client. An unchanged letter is not")
	comment("resent.")
	if !l.DueKnown() {
		comment("A due time is missing: add Delay-Until, or resend with --now.")
	}
	if !isEditable(l.Data) {
		comment("The body of %d bytes is not text. Text below the empty line replaces it.", l.Size)
	}
	headers := l.EditableHeader()
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		for _, value := range headers[name] {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	b.WriteByte('\n')
	if isEditable(l.Data) {
		b.Write(l.Data)
	}
	b.WriteByte('\n')
	return b.String()
}

// isEditable reports whether a body is text, which an editor keeps unchanged.
func isEditable(body []byte) bool {
	return len(body) == 0 || text.RenderBody(body, len(body)).Text != ""
}

// parseLetterText returns the changes in the text of a letter.
func parseLetterText(l deadletter.Letter, text string) (edit deadletter.Edit, err error) {
	head, body, ok := strings.Cut("\n"+text, "\n\n")
	if !ok {
		return edit, errors.New("the edited text has no empty line after the headers")
	}
	var lines []string
	for line := range strings.SplitSeq(strings.TrimPrefix(head, "\n"), "\n") {
		if line != "" && !strings.HasPrefix(line, "# ") {
			lines = append(lines, line)
		}
	}
	edited, err := parseHeaders(lines)
	if err != nil {
		return edit, err
	}
	original := l.EditableHeader()
	for name, values := range edited {
		// Values are compared without the spaces around them, including spaces that are not ASCII.
		if !slices.EqualFunc(values, original[name], func(a, b string) bool { return a == strings.TrimSpace(b) }) {
			if edit.Set == nil {
				edit.Set = make(message.Header)
			}
			edit.Set[name] = values
		}
	}
	for _, name := range slices.Sorted(maps.Keys(original)) {
		if _, stays := edited[name]; !stays {
			edit.Drop = append(edit.Drop, name)
		}
	}
	body = strings.TrimSuffix(body, "\n") // editors add a newline at the end
	if isEditable(l.Data) && body != string(l.Data) || !isEditable(l.Data) && body != "" {
		edit.Body = []byte(body)
	}
	return edit, nil
}
