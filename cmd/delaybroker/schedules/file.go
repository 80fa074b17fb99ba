package schedules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
	"delaybroker/cmd/delaybroker/spelling"
)

// errFile is returned when a file of schedules is invalid. The error has a line for each problem.
var errFile = errors.New("the file of schedules is invalid; nothing was changed")

// MaxBytes is the maximum size of a file.
const MaxBytes = 4 << 20

// A File is the schedules of one file.
type File struct {
	Set       string     // the value of Delay-Owner for these schedules
	Schedules []Schedule // in the order of the file; names are unique
}

// Read parses a file. If there are problems, the error wraps errFile.
func Read(name string, text []byte, policy message.Policy, now time.Time) (File, error) {
	r := reader{name: name, policy: policy, now: now}
	f := r.file(text)
	if len(r.problems) > 0 {
		return File{}, fmt.Errorf("%w:\n%s", errFile, strings.Join(r.problems, "\n"))
	}
	return f, nil
}

// reader parses a file. It notes each problem and continues.
type reader struct {
	name     string
	policy   message.Policy
	now      time.Time
	problems []string
}

// refuse notes a problem at a line of the file.
func (r *reader) refuse(line int, format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf("%s:%d: %s", r.name, line, fmt.Sprintf(format, args...)))
}

func (r *reader) file(text []byte) (f File) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	err := d.Decode(&document)
	switch {
	case errors.Is(err, io.EOF):
		r.refuse(1, "the file is empty: want set and schedules")
		return f
	case err == nil:
		if err = d.Decode(&second); err == nil {
			r.refuse(second.Line, "want one document, got a second one")
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		r.problems = append(r.problems, fmt.Sprintf("%s: %v", r.name, err))
		return f
	}
	top := document.Content[0]
	fields, ok := r.fields(top, "the file", []string{"set", "schedules"})
	if !ok {
		return f
	}
	if f.Set = r.text(fields["set"]); f.Set == "" {
		r.refuse(top.Line, "set is missing: a name by which later runs recognize these schedules")
	} else if problem := entry.CheckKey(f.Set); problem != nil {
		r.refuse(fields["set"].Line, "set: %s", strings.Replace(problem.Sentence, "the key", "the name", 1))
	}
	if fields["schedules"] == nil {
		r.refuse(top.Line, "schedules is missing: a mapping from names to schedules; {} for none")
		return f
	}
	for _, pair := range r.pairs(fields["schedules"], "schedules") {
		if s, ok := r.schedule(pair.key, pair.value); ok {
			f.Schedules = append(f.Schedules, s)
		}
	}
	return f
}

// pair is a key of a mapping with its value.
type pair struct{ key, value *yaml.Node }

// pairs returns the pairs of a mapping. It checks for duplicate keys, since the library does not check nodes.
func (r *reader) pairs(n *yaml.Node, owner string) (list []pair) {
	n = resolveAlias(n)
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		r.refuse(n.Line, "%s: want keys and values", owner)
		return nil
	}
	seen := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if first := seen[key.Value]; first > 0 {
			r.refuse(key.Line, "%s: duplicate key %q, first in line %d", owner, key.Value, first)
			continue
		}
		seen[key.Value] = key.Line
		list = append(list, pair{key, resolveAlias(n.Content[i+1])})
	}
	return list
}

// fields returns the values of a mapping, by key. It reports unknown keys.
func (r *reader) fields(n *yaml.Node, owner string, known []string) (values map[string]*yaml.Node, ok bool) {
	if resolveAlias(n).Kind != yaml.MappingNode {
		r.refuse(n.Line, "%s: want keys and values: %s", owner, strings.Join(known, ", "))
		return nil, false
	}
	values = make(map[string]*yaml.Node)
	for _, p := range r.pairs(n, owner) {
		switch {
		case slices.Contains(known, p.key.Value):
			values[p.key.Value] = p.value
		case keyHints[p.key.Value] != "":
			r.refuse(p.key.Line, "%s: %s", owner, keyHints[p.key.Value])
		default:
			hint := "want " + strings.Join(known, ", ")
			if nearest := spelling.Nearest(p.key.Value, known); nearest != "" {
				hint = nearest + "?"
			}
			r.refuse(p.key.Line, "%s: unknown key %q (%s)", owner, p.key.Value, hint)
		}
	}
	return values, true
}

// keyHints has explanations for unknown keys that a user may expect to exist.
var keyHints = map[string]string{
	"rounds": "rounds is not allowed in a file, only in delaybroker schedules add: a file is applied repeatedly, and " +
		"the number of past rounds is unknown; set last instead",
	"<<": "merge keys are not supported: write all keys",
}

// text returns the text of a scalar as written, or "" without a scalar.
func (r *reader) text(n *yaml.Node) (text string) {
	if n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode {
		r.refuse(n.Line, "want text; quote other values")
		return ""
	}
	if err := n.Decode(&text); err != nil {
		r.refuse(n.Line, "want text: %v", err)
	}
	return text
}

// resolveAlias returns the node that an alias refers to.
func resolveAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
