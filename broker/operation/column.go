package operation

import (
	"encoding"
	"reflect"
	"strings"
	"time"
)

// A Column is a column of a list, or a line of a look-up.
type Column struct {
	Name  string `json:"name"`           // with lower case
	Field string `json:"field"`          // of the row's JSON object, or a path, as in recurring.round
	Kind  Kind   `json:"kind,omitempty"` // empty for a text
	// On a narrow terminal, the column with the highest Drop is left out first, and zero never. Min is the minimum width
	// in characters; zero if the column is not narrowed. With Wrap, it is wrapped instead of cut.
	Drop int  `json:"drop,omitempty"`
	Min  int  `json:"-"`
	Wrap bool `json:"wrap,omitempty"`
	// A Rare column is hidden if it is empty in all rows.
	Rare bool `json:"rare,omitempty"`
	// Columns are those of a value that is a list of rows.
	Columns []Column `json:"columns,omitempty"`
}

// Kind is the kind of a column's values.
type Kind string

const (
	Text         Kind = ""
	LocalTime    Kind = "local" // a time in its own zone
	Number       Kind = "number"
	Bytes        Kind = "bytes"
	Time         Kind = "time"
	Instant      Kind = "instant" // a time, to the millisecond
	Lateness     Kind = "late"    // seconds after the row's field "due"
	DueIn        Kind = "due"     // the time until this time; in place of it the row's field "problem", if set
	Code         Kind = "code"    // of a dead letter
	LetterNumber Kind = "letter"  // the number of a dead letter
	Target       Kind = "target"
	Targets      Kind = "targets"  // the number of targets of a group of dead letters
	Key          Kind = "key"      // of a timer, with the target in the row's field "target"
	ID           Kind = "id"       // a Delay-Id
	Tries        Kind = "tries"    // attempts; the row's field "attempts_allowed" is the maximum
	Header       Kind = "header"   // an object of lists
	Rounds       Kind = "rounds"   // the next rounds of a schedule
	State        Kind = "state"    // of a timer; the row's field "became", if set, is shown in its place
	Runs         Kind = "runs"     // the latest runs of a schedule
	Refusals     Kind = "refusals" // the refused deliveries of a message; the row's field "attempts" is their number
)

// Value returns the value of a field of a row, by the names of its JSON object; nil if there is none.
func Value(row any, field string) any {
	name, rest, nested := strings.Cut(field, ".")
	v, ok := fieldOf(reflect.ValueOf(row), name)
	switch {
	case !ok:
		return nil
	case nested:
		return Value(v.Interface(), rest)
	}
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	_, isTime := v.Interface().(time.Time)
	if v.IsZero() && (isTime || v.Kind() == reflect.String || v.Kind() == reflect.Bool) {
		return nil
	}
	if _, isText := v.Interface().(encoding.TextMarshaler); v.Kind() == reflect.String && !isText {
		return v.String()
	}
	return v.Interface()
}

func fieldOf(v reflect.Value, name string) (reflect.Value, bool) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return v, false
		}
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return v, false
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == name:
			return v.Field(i), true
		case f.Anonymous && tag == "":
			if found, ok := fieldOf(v.Field(i), name); ok {
				return found, true
			}
		}
	}
	return v, false
}
