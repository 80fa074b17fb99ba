// Package payload renders the body of a message for people: as text if the body is text, and always as a hex dump.
//
// A body is untrusted. The rendered text contains no control characters except newline, carriage return and tab, and no
// characters that reorder their neighbours, so it cannot control a terminal. It is not escaped for HTML.
package payload

import (
	"encoding/hex"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxShown is the usual limit of a rendering, in bytes of the body.
	MaxShown = 64 << 10
	// dumpShare bounds the hex dump to a sixteenth of the limit, because a line of 79 characters shows 16 bytes.
	dumpShare = 16
	// minDump is the minimum bound of the hex dump, in bytes: sixteen lines.
	minDump = 256
)

// View is the rendering of a body. Its JSON is part of the output of commands and of the page.
type View struct {
	Size   int    `json:"size"`           // bytes of the whole body
	Shown  int    `json:"shown"`          // bytes at the beginning of the body that Text renders
	Text   string `json:"text,omitempty"` // empty unless all of Shown is text
	Dumped int    `json:"hex_shown"`      // bytes at the beginning of the body that Hex renders
	Hex    string `json:"hex,omitempty"`  // as hexdump -C prints it
}

// Render renders the first limit bytes of a body. A limit below one means MaxShown.
func Render(body []byte, limit int) View {
	if limit < 1 {
		limit = MaxShown
	}
	shown := body[:min(len(body), limit)]
	if len(shown) < len(body) {
		shown = wholeCharacters(shown)
	}
	dumped := body[:min(len(body), limit, max(limit/dumpShare, minDump))]
	v := View{Size: len(body), Shown: len(shown), Dumped: len(dumped), Hex: hex.Dump(dumped)}
	if isText(shown) {
		v.Text = string(shown)
	}
	return v
}

// Cut reports whether Text, or Hex if the body is not text, is less than the whole body.
func (v View) Cut() bool {
	if v.Text != "" {
		return v.Shown < v.Size
	}
	return v.Dumped < v.Size
}

// wholeCharacters removes an incomplete character at the end, which a cut may leave.
func wholeCharacters(text []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
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
	for _, r := range string(b) {
		switch {
		case r == '\n', r == '\r', r == '\t':
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return false
		}
	}
	return true
}
