package page

import (
	"strings"

	"delaybroker/broker/inspect"
)

// shell is the line of a shell that does the same. Words are pairs: a flag and its value, left out where that is empty.
// A word alone is an argument.
type shell []string

func (s shell) flag(name, value string) shell {
	if value == "" {
		return s
	}
	return append(s, name, quoted(value))
}

func (s shell) word(value string) shell { return append(s, quoted(value)) }

func (s shell) String() string { return "delaybroker " + strings.Join(s, " ") }

// quoted is a word as any shell takes it. Keys and targets are in a stranger's words.
func quoted(word string) string {
	word = inspect.Printable(word, 600)
	plain := word != "" && strings.IndexFunc(word, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._:/+@%,-", r))
	}) < 0 && word[0] != '-'
	if plain {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
