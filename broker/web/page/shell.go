package page

import (
	"net/http"
	"slices"
	"strings"

	"delaybroker/broker/text"
)

// shell has the quoted arguments of the delaybroker command that is equivalent to a request. It is empty if no command
// is equivalent.
type shell []string

// flag appends a flag with its value, unless the value is empty.
func (s shell) flag(name, value string) shell {
	if value == "" {
		return s
	}
	return append(s, name, text.ShellQuote(value))
}

// words appends arguments that are not flags. It is called last. If an argument begins with -, words first appends --,
// because the command would parse the argument as a flag.
func (s shell) words(values ...string) shell {
	if slices.ContainsFunc(values, func(v string) bool { return strings.HasPrefix(v, "-") }) {
		s = append(s, "--")
	}
	for _, v := range values {
		s = append(s, text.ShellQuote(v))
	}
	return s
}

// String returns the command, or "" for an empty shell.
func (s shell) String() string {
	if len(s) == 0 {
		return ""
	}
	return "delaybroker " + strings.Join(s, " ")
}

// Line is the code that publishes one message in a language. SUBJECT and BODY are placeholders. BODY is inside quotes.
type Line struct {
	Language string `json:"language"`
	Line     string `json:"line"`
}

// Lines returns the lines of all languages. A test compares these lines with those in the README and in its programs.
func Lines() []Line {
	return []Line{
		{"NATS CLI", `nats pub -J SUBJECT 'BODY'`},
		{"Go", "js.Publish(ctx, \"SUBJECT\", []byte(`BODY`))"},
		{"JavaScript", `await js.publish("SUBJECT", 'BODY');`},
		{"Python", `await js.publish("SUBJECT", b'BODY')`},
		{"Rust", `js.publish("SUBJECT", r#"BODY"#.into()).await?.await?;`},
	}
}

// lines responds with Lines, and with the prefix of the broker's subjects.
func (p *Page) lines(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"prefix": p.cfg.Prefix, "lines": Lines()})
}
