package page

import (
	"slices"
	"strings"

	"delaybroker/broker/text"
)

// shell is the line of a shell that does the same. Words are pairs: a flag and its value, left out where that is empty.
// Words alone are arguments, and come last.
type shell []string

func (s shell) flag(name, value string) shell {
	if value == "" {
		return s
	}
	return append(s, name, quoted(value))
}

// words ends the line with arguments. One that begins with - is a flag to a verb unless it stands behind --.
func (s shell) words(values ...string) shell {
	if slices.ContainsFunc(values, func(v string) bool { return strings.HasPrefix(v, "-") }) {
		s = append(s, "--")
	}
	for _, v := range values {
		s = append(s, quoted(v))
	}
	return s
}

// String is the line, or empty where no command does the same.
func (s shell) String() string {
	if len(s) == 0 {
		return ""
	}
	return "delaybroker " + strings.Join(s, " ")
}

// quoted is a word as any shell takes it. Keys and targets are in a stranger's words.
func quoted(word string) string {
	word = text.Printable(word, 600)
	plain := word != "" && strings.IndexFunc(word, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._:/+@%,-", r))
	}) < 0 && word[0] != '-'
	if plain {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
