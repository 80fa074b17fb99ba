package message

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// A HeaderEdit is an operator's change of a dead letter's headers. Names are case-insensitive.
type HeaderEdit struct {
	Drop []string `json:"drop,omitempty"` // headers to remove; a missing header is no error
	Set  Header   `json:"set,omitempty"`  // headers to set; the values replace all earlier values of the header
}

// editable returns the names of the request headers that an operator may set on a dead letter. All but HeaderUntil may
// be dropped.
func editable() []string { return namesOf(rowsWhere(func(r *row) bool { return r.edit })) }

// Edit returns a dead letter with changed headers. If Edit returns a problem, the letter may have only a part of the
// changes. The bounds for the headers of clients apply. The editable request headers have the same meaning as in a
// request, with three exceptions: Delay-Until may be in the past, MaxDelay counts from now, and a duration in
// Delay-Expires counts from the later of now and the due time. A change of any other header of the broker or of the
// server is a problem: with such a header, an operator could forge an id, or purge the target's stream.
func (p Policy) Edit(l Letter, edit HeaderEdit, now time.Time) (Letter, *Problem) {
	b, problem := SplitHeader(edit.Set, true)
	if problem = cmp.Or(problem, b.CheckSpelling()); problem != nil {
		return l, problem
	}
	for name := range edit.Set {
		if problem := checkEdit(name); problem != nil {
			return l, problem
		}
	}
	l.User = maps.Clone(l.User)
	for _, name := range edit.Drop {
		if problem := checkEdit(name); problem != nil {
			return l, problem
		}
		if problem := l.drop(name); problem != nil {
			return l, problem
		}
	}
	for name := range b.User {
		l.dropUser(name)
	}
	if l.User == nil {
		l.User = b.User
	} else {
		maps.Copy(l.User, b.User)
	}
	if _, problem := SplitHeader(l.User, true); problem != nil { // bounds for all headers together
		return l, problem
	}
	problem = p.editOptions(&l, b, now)
	return l, problem
}

// checkEdit returns a problem if an operator must not change the header. It accepts an unknown Delay-* name: the letter
// has lost the misspelt headers of its request, and an operator may drop them anyway.
func checkEdit(name string) *Problem {
	canonical := CanonicalName(name)
	if canonical != "" && !slices.Contains(editable(), canonical) || isReserved(plainName(name)) {
		return Problemf(BadOption, "the header %s is reserved: of the headers that begin with Delay- or Nats-, an operator "+
			"may change only %s", Excerpt(name), strings.Join(editable(), ", "))
	}
	return nil
}

func (l *Letter) drop(name string) *Problem {
	canonical := CanonicalName(name)
	if canonical == HeaderUntil {
		return Problemf(BadOption, "Delay-Until cannot be dropped: set another time, or deliver the message immediately")
	}
	l.Request = l.withOptions(Request{}, canonical)
	l.dropUser(name)
	return nil
}

func (l *Letter) dropUser(name string) {
	name = strings.TrimSpace(name)
	maps.DeleteFunc(l.User, func(k string, _ []string) bool { return strings.EqualFold(k, name) })
}

func (p Policy) editOptions(l *Letter, b Block, now time.Time) *Problem {
	until, problem := b.Value(HeaderUntil)
	if problem != nil {
		return problem
	}
	if b.Delay[HeaderUntil] != nil {
		due, problem := ParseTime(until)
		if problem = cmp.Or(problem, p.CheckDelay(now, due)); problem != nil {
			return problem
		}
		l.Due, l.DueEdited = due, true
	}
	base := l.Request
	base.Expires = time.Time{}
	if base.Due.Before(now) {
		base.Due = now
	}
	edited, problem := p.readOptions(base, b)
	if problem != nil {
		return problem
	}
	l.Request = l.withOptions(edited, slices.Collect(maps.Keys(b.Delay))...)
	return nil
}
