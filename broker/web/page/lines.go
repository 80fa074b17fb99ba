package page

import "net/http"

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
