package operation

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"delaybroker/broker/inspect"
	"delaybroker/levels"
)

// A Param is one parameter of a [Use]. It implements the interface of a flag's value, so a door needs no other parser.
type Param struct {
	Name    string   // as a flag; a JSON object and a form have underscores in place of hyphens
	Short   string   // the flag's short form, one letter; empty for none
	Help    string   // one line
	Kind    string   // of the value: string, int, bool, or strings for a list
	Default string   // the text of the value without the parameter
	Choices []string // all allowed values, if these are few
	Names   string   // the kind of names that a shell completes: target, key, schedule, pause; empty for none
	Hint    string   // an example, for an empty field of a form
	Field   bool     // a form of the page has a field for it
	Hidden  bool     // no flag: only a plan or a request sets it
	Selects bool     // it selects objects
	Single  bool     // it is for a change of one object
	Private bool     // a log must not have the value
	Body    bool     // the text may be long: the flag reads it from stdin for -, and a command line has - in its place

	set   func(text string) error
	texts []string
}

// Set parses a text. A list adds the text to the earlier ones.
func (p *Param) Set(text string) error {
	if err := p.set(text); err != nil {
		return err
	}
	if p.Kind != "strings" {
		p.texts = nil
	}
	p.texts = append(p.texts, text)
	return nil
}

// String returns the texts of the parameter, or its default.
func (p *Param) String() string {
	if len(p.texts) == 0 {
		return p.Default
	}
	return strings.Join(p.texts, ",")
}

// Type returns the kind of the value.
func (p *Param) Type() string { return p.Kind }

// Given reports whether the parameter has been set, to another text than the empty one.
func (p *Param) Given() bool { return len(p.texts) > 0 && (p.Body || p.texts[0] != "") }

// FieldName returns the name of the parameter in a JSON object and in a form.
func (p *Param) FieldName() string { return fieldName(p.Name) }

func fieldName(name string) string { return strings.ReplaceAll(name, "-", "_") }

// Parsed returns a parameter that parse converts. An empty text, as in an empty field of a form, has no effect.
func Parsed[T any](into *T, name, help string, parse func(text string) (T, error)) *Param {
	return &Param{Name: name, Help: help, Kind: "string", set: func(text string) error {
		if text == "" {
			return nil
		}
		v, err := parse(text)
		if err == nil {
			*into = v
		}
		return err
	}}
}

func word(into *string, name, help string) *Param {
	return Parsed(into, name, help, func(text string) (string, error) { return text, nil })
}

func flag(into *bool, name, help string) *Param {
	p := Parsed(into, name, help, func(text string) (bool, error) {
		if text != "true" && text != "false" { // not "1": other code compares the text
			return false, errors.New("want true or false")
		}
		return text == "true", nil
	})
	p.Kind = "bool"
	return p
}

// Count returns a parameter for a whole number from low to high, both included.
func Count[N int | uint64](into *N, name, help string, fallback, low, high int) *Param {
	*into = N(fallback)
	p := Parsed(into, name, help, ParseCount[N](low, high))
	p.Kind, p.Default = "int", strconv.Itoa(fallback)
	return p
}

// List returns a parameter with any number of values. One text may have several, separated by commas.
func List[T any](into *[]T, name, help string, parse func(text string) (T, error)) *Param {
	return &Param{Name: name, Help: help + "; several are comma separated", Kind: "strings", set: func(text string) error {
		for part := range strings.SplitSeq(text, ",") {
			if part == "" {
				continue
			}
			v, err := parse(part)
			if err != nil {
				return err
			}
			*into = append(*into, v)
		}
		return nil
	}}
}

// OneOf returns a parser of the choices.
func OneOf[T ~string](choices []T) func(text string) (T, error) {
	return func(text string) (T, error) {
		if !slices.Contains(choices, T(text)) {
			return "", fmt.Errorf("want %s", strings.Join(texts(choices), ", "))
		}
		return T(text), nil
	}
}

func texts[T ~string](values []T) (all []string) {
	for _, v := range values {
		all = append(all, string(v))
	}
	return all
}

// pattern returns the parameter for a pattern of targets.
func pattern(into *string) *Param {
	p := Parsed(into, "target", "only for this target, or for a pattern of targets, as in 'orders.>'", ParsePattern)
	p.Names, p.Hint, p.Field = "target", "orders.>", true
	return p
}

// ahead returns a parameter for a time: a duration counts from now.
func ahead(into *inspect.Bound, name, help string) *Param {
	p := Parsed(into, name, help+": a duration from now (10m), or a time with a zone", inspect.ParseBound)
	p.Hint, p.Field = "10m, or a time", true
	return p
}

// ago returns a parameter for a time: a duration counts back from now.
func ago(into *inspect.Bound, name, help string) *Param {
	p := Parsed(into, name, help, func(text string) (inspect.Bound, error) {
		b, err := inspect.ParseBound(text)
		if b.Offset != nil {
			*b.Offset = -*b.Offset
		}
		return b, err
	})
	p.Hint, p.Field = "2h, or a time", true
	return p
}

// Duration returns a parameter for a duration, as a text.
func Duration(into *string, name, help string) *Param {
	return Parsed(into, name, help, func(text string) (string, error) {
		_, err := levels.ParseDuration(text)
		return text, err
	})
}
