package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"delaybroker/broker/operation"
	"delaybroker/broker/text"
	"delaybroker/cmd/delaybroker/terminal"
)

// cell returns the text of a row's value in a table.
func cell(c operation.Column, row any) any {
	v := operation.Value(row, c.Field)
	switch c.Kind {
	case operation.DueIn:
		problem, _ := operation.Value(row, "problem").(string)
		due, _ := v.(time.Time)
		return formatDueIn(problem, due, time.Now())
	case operation.Tries:
		if allowed, _ := operation.Value(row, "attempts_allowed").(int); allowed > 0 {
			return fmt.Sprintf("%d of %d", v, allowed)
		}
	case operation.State:
		if became := operation.Value(row, "became"); became != nil {
			return fmt.Sprintf("%v (%v)", v, became)
		}
	case operation.Instant:
		return text.Millisecond(v.(time.Time))
	case operation.Lateness:
		due, _ := operation.Value(row, "due").(time.Time)
		return formatLateness(due, time.Duration(v.(float64)*float64(time.Second)))
	case operation.LocalTime:
		return v.(time.Time).Format(time.RFC3339Nano)
	}
	switch v := v.(type) {
	case nil:
		return "-"
	case time.Time:
		return text.ShortMoment(v)
	case string:
		return text.Printable(v, terminal.MaxCell)
	case bool:
		return c.Name
	}
	return v
}

// fact returns the text of a row's value in a list of facts; empty if there is none.
func fact(c operation.Column, row any) string {
	v := operation.Value(row, c.Field)
	switch v := v.(type) {
	case time.Time:
		return text.Moment(v)
	case []operation.Round:
		var times []string
		for _, r := range v {
			times = append(times, r.Clock)
		}
		return strings.Join(times, ", ")
	}
	if v == nil || c.Field != "size" && reflect.ValueOf(v).IsZero() {
		return ""
	}
	return fmt.Sprint(cell(c, row))
}

// formatLateness formats the lateness of a delivery. It returns a dash without a due time.
func formatLateness(due time.Time, late time.Duration) string {
	switch {
	case due.IsZero():
		return "-"
	case late < 10*time.Millisecond:
		return fmt.Sprintf("%.1fms", float64(late)/float64(time.Millisecond))
	}
	return text.Span(late)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
