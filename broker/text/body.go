package text

import (
	"bytes"
	"encoding/hex"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxBody is the default limit of RenderBody, in bytes of the body.
	MaxBody = 64 << 10
	// The limit of the hex dump is 1/dumpShare of the limit of RenderBody, because the dump needs a line for 16 bytes.
	dumpShare = 16
	// minDump is the lowest limit of the hex dump, in bytes of the body, unless the limit of RenderBody is lower.
	minDump = 256
)

// Body is the body of a message, rendered for people. Its JSON is part of the output of commands and of the page.
type Body struct {
	Size   int    `json:"size"`           // bytes of the whole body
	Shown  int    `json:"shown"`          // number of leading bytes that Text has, if they are text
	Text   string `json:"text,omitempty"` // empty if these bytes are not text
	Dumped int    `json:"hex_shown"`      // number of leading bytes that Hex shows
	Hex    string `json:"hex,omitempty"`  // in the format of hexdump -C
}

// RenderBody renders the beginning of a body, at most limit bytes. It always renders a hex dump, and also text if this
// beginning is text. If limit is below one, the limit is MaxBody.
//
// A body is untrusted. The rendered text contains no control characters except newline, carriage return before a
// newline, and tab, and no characters that reorder their neighbours. It is not escaped for HTML.
func RenderBody(body []byte, limit int) Body {
	if limit < 1 {
		limit = MaxBody
	}
	textPart := body[:min(len(body), limit)]
	if len(textPart) < len(body) {
		textPart = wholeCharacters(textPart)
	}
	dumpPart := body[:min(len(body), limit, max(limit/dumpShare, minDump))]
	v := Body{Size: len(body), Shown: len(textPart), Dumped: len(dumpPart), Hex: hex.Dump(dumpPart)}
	if isText(textPart) {
		v.Text = string(textPart)
	}
	return v
}

// Truncated reports whether Text shows less than the whole body or, without Text, whether Hex does.
func (v Body) Truncated() bool {
	if v.Text != "" {
		return v.Shown < v.Size
	}
	return v.Dumped < v.Size
}

// wholeCharacters removes an incomplete UTF-8 character from the end of truncated text.
func wholeCharacters(text []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return text[:len(text)-n]
			}
			break
		}
	}
	return text
}

func isText(b []byte) bool {
	if !utf8.Valid(b) {
		return false
	}
	for i, r := range string(b) {
		switch {
		case r == '\n', r == '\t', r == '\r' && bytes.HasPrefix(b[i:], []byte("\r\n")):
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return false
		}
	}
	return true
}
