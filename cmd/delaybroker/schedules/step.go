package schedules

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/text"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/entry"
)

// Action is the kind of a step.
type Action string

// The kinds.
const (
	Same   Action = "same"   // no action: the entry matches the file, or the set no longer has the schedule to remove
	Ended  Action = "over"   // no action: the stream has no pending round, and the file gives no further one
	Add    Action = "add"    // the stream has no pending round
	Change Action = "change" // the entry differs from the file
	Remove Action = "remove" // the schedule is no longer in the file, or its last time has passed
	Leave  Action = "leave"  // no action, although the entry may differ from the file: see Why and Result.Err
)

// A Difference is one difference between a schedule's entry and the file.
type Difference struct {
	Field string `json:"in"`
	Old   string `json:"was"`
	New   string `json:"will"`
}

// A Decision is the decision about one schedule.
type Decision struct {
	Action      Action       `json:"what"`
	Name        string       `json:"name"`
	Target      string       `json:"target"`
	Table       string       `json:"table,omitempty"`
	Differences []Difference `json:"differences,omitempty"`
	Why         string       `json:"why,omitempty"`

	change change.Change // the change to request
}

// plan returns the step for a schedule of the file. Current has the schedule's entry. With adopt, the set takes over a
// schedule of another set, or of none.
func (f File) plan(s Schedule, current timer.State, policy message.Policy, now time.Time, adopt bool) Decision {
	step := Decision{Name: s.Name, Target: s.Target}
	want := s.request(f.Set, policy, now)
	step.Table = want.Series.Table.String()
	recurring := change.RecurringOf(current.Entry)
	switch {
	case current.Ended() && s.hasEnded(want, now):
		step.Action = Ended
		return step
	case current.Ended():
		step.Action = Add
		return step.set(f.Set, s, current, s.First)
	case current.Entry.Kind == entry.Fired:
		return step.leave("its last round has fired, and has not been delivered yet")
	case current.Entry.Kind == entry.Unproven:
		return step.leave("its entry is sealed with a secret that is not set here")
	case recurring == nil:
		return step.leave("a named timer that does not recur has this key and target")
	case recurring.Set != f.Set && !adopt:
		return step.leave(fmt.Sprintf("the schedule already exists, %s; --adopt takes it over", ownerText(recurring.Set)))
	case s.hasEnded(want, now):
		return File{Set: recurring.Set}.removal(current, step.Name, step.Target) // of another set, if adopt is true
	}
	step.Differences = differences(want, current, s, now)
	switch {
	case len(step.Differences) == 0:
		step.Action = Same
		return step
	case recurring.Paused:
		return step.leave("the schedule is paused, and a change would resume it: first resume or remove it")
	}
	step.Action = Change
	return step.set(f.Set, s, current, phase(want, current, s, now))
}

// removal returns the step for a schedule that is no longer in the file, or whose last time has passed.
func (f File) removal(current timer.State, name, target string) Decision {
	step := Decision{Action: Remove, Name: name, Target: target}
	recurring := change.RecurringOf(current.Entry)
	if recurring == nil || recurring.Set != f.Set { // changed by another client meanwhile
		step.Action = Same
		return step
	}
	step.Table = recurring.Table
	step.change = change.Change{
		Call: timer.Call{Verb: timer.Cancel, Generation: current.Sequence}, Key: name, Target: target,
	}
	return step
}

func ownerText(set string) string {
	if set == "" {
		return "without a set"
	}
	return "in the set " + set
}

// leave returns the step as one that changes nothing, for the given reason.
func (p Decision) leave(why string) Decision {
	p.Action, p.Why = Leave, why
	return p
}

// set adds to the step the change that stores the schedule.
func (p Decision) set(owner string, s Schedule, current timer.State, first time.Time) Decision {
	p.change = change.Change{
		Call: timer.Call{Verb: timer.Set, Conditional: true, Generation: current.Sequence},
		Key:  s.Name, Target: s.Target, Header: s.header(owner, first), Body: s.Body,
	}
	return p
}

// phase returns the requested time of the first round of a schedule that replaces an entry, or zero for the next time
// that every or cron gives. The package comment has the reason.
func phase(want entry.Pending, current timer.State, s Schedule, now time.Time) time.Time {
	r := current.Entry.Pending
	switch {
	case !s.First.IsZero():
		return s.First
	case want.Series.Table.Every > 0 && want.Series.Table.Every == r.Series.Table.Every:
		return r.Series.First
	case want.Series.Table.Cron != "" && want.Series.Table.Cron == r.Series.Table.Cron &&
		want.Series.Table.Zone == r.Series.Table.Zone && !r.Series.Planned.After(now) && r.Due.After(now):
		return r.Due // the planned time has passed, and the round waits for the end of its jitter
	}
	return time.Time{}
}

// differences returns the differences between the file and the entry.
func differences(want entry.Pending, current timer.State, s Schedule, now time.Time) (list []Difference) {
	stored := current.Entry.Pending
	note := func(field, old, next string) {
		if old != next {
			list = append(list, Difference{field, old, next})
		}
	}
	note("set", stored.Series.Owner, want.Series.Owner)
	storedTable, wantTable := stored.Series.Table, want.Series.Table
	note("table", storedTable.String(), wantTable.String())
	if !sameFirst(want, stored, s, now) {
		note("first", text.Moment(stored.Series.First), text.Moment(s.First))
	}
	note("rounds", strconv.Itoa(storedTable.Rounds), strconv.Itoa(wantTable.Rounds))
	note("last", text.Moment(storedTable.Last), text.Moment(s.Last))
	note("missed", string(storedTable.Missed), string(wantTable.Missed))
	note("jitter", storedTable.Settings().Jitter, wantTable.Settings().Jitter)
	note("pause-after", strconv.Itoa(stored.Origin().PauseAfter), strconv.Itoa(want.Origin().PauseAfter))
	had, wanted := stored.OptionHeader(), want.OptionHeader()
	for _, name := range message.Options() {
		note("header "+name, strings.Join(had[name], ""), strings.Join(wanted[name], ""))
	}
	names := slices.Collect(maps.Keys(stored.User))
	names = slices.AppendSeq(names, maps.Keys(want.User))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		note("header "+name, strings.Join(stored.User[name], ", "), strings.Join(want.User[name], ", "))
	}
	note("body", string(current.Message.Data), string(s.Body))
	return list
}

// sameFirst reports whether the entry has the first time of the file, as far as that time matters. A past first time
// matters only for an interval, whose rounds are at that time plus multiples of the interval. Without a first time in
// the file, or with another interval, sameFirst returns true.
func sameFirst(want, stored entry.Pending, s Schedule, now time.Time) bool {
	every, first := want.Series.Table.Every, stored.Series.First
	switch {
	case s.First.IsZero(), every > 0 && every != stored.Series.Table.Every:
		return true
	case s.First.After(now):
		return first.Equal(s.First)
	case every > 0:
		return first.Sub(s.First)%every == 0
	}
	return true
}
