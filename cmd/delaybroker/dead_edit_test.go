package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker/deadletter"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// setEditor makes a shell script the user's editor. Its $1 is the file to edit.
func setEditor(t *testing.T, script string) {
	t.Helper()
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR", "sh "+writeFile(t, "editor.sh", script))
	t.Setenv("TMPDIR", t.TempDir())
}

// targetMessage waits for the message with this sequence in the stream of orders.>, and returns the message.
func (o *testServer) targetMessage(sequence uint64) *nats.Msg {
	o.t.Helper()
	eventually(o.t, "delivery", func() bool { return o.messageCount("ORDERS") >= sequence })
	s, err := o.js.Stream(o.t.Context(), "ORDERS")
	natstest.NoError(o.t, err)
	m, err := s.GetMsg(o.t.Context(), sequence)
	natstest.NoError(o.t, err)
	return &nats.Msg{Header: m.Header, Data: m.Data}
}

// The flags change the headers and the body of all selected letters in the same way. A dry run shows the result of the
// real run.
func TestDeadResendRepaired(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.letters("delayin.1ms.orders.a", "delayin.soon.orders.b")
	o.createOrders()
	repair := []string{
		"dead", "resend", "--all", "-H", "X-Fixed: yes", "-H", "Delay-Until: 2026-01-01T00:00:00Z",
		"--drop-header", "X-Other", "--body", "-",
	}
	dry, _, err := runCommand(t, "new body", append(repair, "--json", "--dry-run")...)
	if want := `"outcomes":[{"did":"resent","letters":2}]`; err != nil || !strings.Contains(dry, want) {
		t.Fatalf("got %s and %v, want %s", dry, err, want)
	}
	if got := o.messageCount("DELAY_DEAD"); got != 2 {
		t.Fatalf("%d letters after a dry run, want 2", got)
	}
	mustRunCommand(t, "new body", repair...)
	for n := range uint64(2) {
		m := o.targetMessage(n + 1)
		if m.Header.Get("X-Fixed") != "yes" || string(m.Data) != "new body" {
			t.Errorf("got %v with %q", m.Header, m.Data)
		}
	}
	if got := o.messageCount("DELAY_DEAD"); got != 0 {
		t.Errorf("%d letters remain, want none", got)
	}
	for _, test := range []struct {
		parts []string
		args  []string
	}{
		{[]string{"Delay-Id", "reserved"}, []string{"-H", "Delay-Id: x"}},
		{[]string{"Nats-Rollup", "reserved"}, []string{"-H", "Nats-Rollup: all"}},
		{[]string{"Delay-Due", "reserved"}, []string{"--drop-header", "Delay-Due"}},
		{[]string{"is not a header of this protocol", "Delay-Expire"}, []string{"-H", "Delay-Expire: 1h"}},
		{[]string{"Key: value"}, []string{"-H", "nothing"}},
		{[]string{"--edit excludes"}, []string{"--edit", "--body", "x"}},
	} {
		wantCommandError(t, 2, test.parts, append([]string{"dead", "resend", "--all"}, test.args...)...)
	}
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR", "")
	wantCommandError(t, 2, []string{"EDITOR"}, "dead", "resend", "--all", "--edit")
}

// The editor opens each letter. Changed letters are resent with their changes, and unchanged letters stay.
func TestDeadResendEdited(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.letters("delayin.1ms.orders.a", "delayin.1ms.orders.b")
	o.createOrders()
	setEditor(t, `grep -q 'orders.b:' "$1" && exit 0
sed -i 's/^body of.*/edited/; s/^Delay-Until: .*/&\nX-New: 1/' "$1"`)
	s := o.summary(1, "resend", "--all", "--edit", "--dry-run")
	const want = `[{"did":"resent","letters":1},{"did":"left","letters":1,` +
		`"why":"not changed in the editor","number":2}]`
	if got := s.String(); got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	if got := o.summary(1, "resend", "--all", "--edit").String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if m := o.targetMessage(1); string(m.Data) != "edited" || m.Header.Get("X-New") != "1" {
		t.Errorf("got %v with %q", m.Header, m.Data)
	}
	if got := o.messageCount("DELAY_DEAD"); got != 1 {
		t.Errorf("%d letters remain, want 1", got)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) != 0 {
		t.Errorf("files remain: %v, %v", left, err)
	}

	setEditor(t, "exit 0")
	const left = `[{"did":"left","letters":1,"why":"not changed in the editor","number":2}]`
	if got := o.summary(1, "resend", "--all", "--edit").String(); got != left {
		t.Errorf("nothing was changed: got %s, want %s", got, left)
	}
	setEditor(t, `echo "Delay-Id: forged" | cat - "$1" > "$1.new" && mv "$1.new" "$1"`)
	_, _, err := o.run("dead", "resend", "--all", "--edit")
	if err == nil || !strings.Contains(err.Error(), "reserved") ||
		!strings.Contains(err.Error(), "your text is in "+os.TempDir()) {
		t.Errorf("a forged header: got %v", err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) != 1 {
		t.Errorf("got the files %v and %v, want the file with the edited text", left, err)
	}
	setEditor(t, "exit 1")
	if _, _, err := o.run("dead", "resend", "--all", "--edit"); err == nil || !strings.Contains(err.Error(), "editor sh") {
		t.Errorf("a failed editor: got %v", err)
	}
	if got := o.messageCount("DELAY_DEAD"); got != 1 {
		t.Errorf("%d letters remain, want 1", got)
	}
}

// The editor gets no password of this program.
func TestEditorGetsNoPassword(t *testing.T) {
	setEditor(t, "env | grep -E '^(NATS|DELAY)_' && exit 1 || exit 0")
	t.Setenv("NATS_PASSWORD", "secret")
	t.Setenv("DELAY_SECRET", "secret")
	if err := new(app).runEditor(t.Context(), "letter"); err != nil {
		t.Error(err)
	}
}

// The unchanged text of a letter results in no edit, for any content.
func TestLetterText(t *testing.T) {
	for _, body := range []string{"", "one", "one\n", "\n\nthree\n\n", "# no comment\n", "a\r\nb", "\x00\x01", "\xff"} {
		l := deadletter.Letter{Data: []byte(body), Size: len(body)}
		l.User = message.Header{"X": {"1", "2"}, "#odd": {"# x"}, "Empty": {""}, "Wide": {"\u00a0y\u3000"}}
		l.TTL, l.MaxAttempts, l.Mode = "60", 3, message.ModeCore
		l.Code, l.Sentence = message.Undelivered, "two\n\nlines"
		edit, err := parseLetterText(l, letterText(l))
		if err != nil || !edit.IsZero() {
			t.Errorf("%q: got %+v and %v, want no edit", body, edit, err)
		}
		edit, err = parseLetterText(l, letterText(l)+"more\n")
		if err != nil || edit.Body == nil || !strings.HasSuffix(string(edit.Body), "\nmore") {
			t.Errorf("%q: got %q and %v, want another body", body, edit.Body, err)
		}
	}
	l := deadletter.Letter{Data: []byte("body")}
	l.User = message.Header{"X": {"1"}, "Y": {"2"}}
	edit, err := parseLetterText(l, "# comment\nX: 3\nX: 4\nZ: 5\n\n\n")
	if err != nil || !slices.Equal(edit.Set["X"], []string{"3", "4"}) || !slices.Equal(edit.Set["Z"], []string{"5"}) ||
		!slices.Equal(edit.Drop, []string{"Y"}) || edit.Body == nil || len(edit.Body) != 0 {
		t.Errorf("got %+v and %v", edit, err)
	}
	if _, err := parseLetterText(l, "X: 3"); err == nil {
		t.Error("a text without an empty line is accepted")
	}
}
