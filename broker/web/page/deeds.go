package page

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/store"
	"delaybroker/levels"
)

// work is how a verb is planned, and done.
type work struct {
	plan func(ctx context.Context, i *inspect.Inspector, d *deed) (plan, error)
	act  func(ctx context.Context, i *inspect.Inspector, d deed) (done, error)
}

// done is what came of an action.
type done struct {
	Sentence string   `json:"sentence"`
	Notes    []string `json:"notes,omitempty"`
	Good     bool     `json:"good"` // all that was planned was done
}

// workFor finds how a deed is done. A pause is one of a target, or of a timer that recurs.
func workFor(d deed) (work, error) {
	ofTimer := d.Key != "" || len(d.Timers) > 0
	switch verb := d.Verb; {
	case len(d.Timers) > 0 && slices.Contains([]string{"cancel", "move", "fire", "pause", "resume"}, verb):
		return work{planSelected, actSelected}, nil
	case verb == "cancel", verb == "move", verb == "fire", ofTimer && (verb == "pause" || verb == "resume"):
		return work{planTimers, actTimers}, nil
	case verb == "resend", verb == "remove":
		return work{planLetters, actLetters}, nil
	case verb == "pause", verb == "resume":
		return work{planPause, actPause}, nil
	}
	return work{}, fmt.Errorf("%w: verb %q", errAsked, d.Verb)
}

// counting is a number of things.
func counting(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.FormatUint(n, 10) + " " + what + "s"
}

// wish is what a deed wants of one timer.
func (d deed) wish() (w store.Change, err error) {
	w = store.Change{Key: d.Key, Target: d.Target}
	w.Verb, w.Generation, w.ID = timer.Verb(d.Verb), d.Generation, d.Word
	if w.Verb != timer.Move {
		return w, nil
	}
	switch {
	case d.In != "" && d.At == "" && d.By == "":
		w.For = d.In
		_, err = levels.ParseDuration(d.In)
	case d.At != "" && d.In == "" && d.By == "":
		w.Until, err = time.Parse(time.RFC3339Nano, d.At)
	case d.By != "" && d.In == "" && d.At == "":
		w.By, err = store.ParseShift(d.By)
	default:
		return w, fmt.Errorf("%w: move it to when? one of in, at and by", errAsked)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", errAsked, err)
	}
	return w, err
}

// when are the flags for the time of a move.
func (d deed) when(line shell) shell {
	if d.Verb != string(timer.Move) {
		return line
	}
	return line.flag("--in", d.In).flag("--at", d.At).flag("--by", d.By)
}

// planTimers looks at one timer, or counts many.
func planTimers(ctx context.Context, i *inspect.Inspector, d *deed) (plan, error) {
	w, err := d.wish()
	if err != nil {
		return plan{}, err
	}
	if d.All {
		return planManyTimers(ctx, i, d)
	}
	a, err := doTimer(ctx, i, store.Change{Request: timer.Request{Verb: timer.Get}, Key: d.Key, Target: d.Target})
	if err != nil {
		return plan{}, err
	}
	if w.Generation > 0 && w.Generation != a.Generation {
		return plan{Sentence: "it was set anew since you looked: look again"}, nil
	}
	if a.Outcome != timer.Pending && a.Outcome != timer.Paused {
		return plan{Sentence: fmt.Sprintf("it is %s: nothing can be done", a.Outcome)}, nil
	}
	d.Generation, d.Count, d.Shell = a.Generation, 1, d.timerLine(a)
	due := "due " + text.Moment(a.Due)
	if a.Outcome == timer.Paused {
		due = "paused"
	}
	return plan{Sentence: fmt.Sprintf("%s 1 timer: %s to %s, %s", d.Verb, d.Key, d.Target, due)}, nil
}

// timerLine is the line of a shell that does it. Of what recurs, a generation lasts for a round only.
func (d deed) timerLine(a store.Answer) string {
	verb := timer.Verb(d.Verb)
	if a.Recurring == nil || verb == timer.Move {
		line := shell{"timers", d.Verb}.flag("--generation", strconv.FormatUint(a.Generation, 10))
		return d.when(line).words(d.Key, d.Target).String()
	}
	name := d.Verb
	if verb == timer.Cancel {
		name = "rm"
	}
	return shell{"schedules", name}.flag("--target", d.Target).words(d.Key).String()
}

// bulk is a deed for many timers, as far as it was planned.
func (d deed) bulk() (b store.Bulk, line shell, err error) {
	b = store.Bulk{Verb: timer.Verb(d.Verb), Page: store.Page{UpTo: d.UpTo, Limit: store.MaxLimit}}
	if b.Verb == timer.Move {
		if b.By, err = store.ParseShift(d.By); err != nil {
			return b, nil, fmt.Errorf("%w: by: %w", errAsked, err)
		}
	}
	b.Filter, line, err = timerFilter(url.Values{
		"target": {d.Target}, "key": {d.Key}, "due_after": {d.DueAfter}, "due_before": {d.DueBefore},
	}, shell{"timers", d.Verb, "--all"})
	return b, d.when(line), err
}

// doTimer asks for one timer, or changes it. If the server refuses that, the refusal is the error.
func doTimer(ctx context.Context, i *inspect.Inspector, w store.Change) (store.Answer, error) {
	a, err := i.Timers().Do(ctx, w)
	if err == nil && a.Outcome == timer.Unknown {
		err = inspect.Forbidden(ctx)
	}
	return a, err
}

func planManyTimers(ctx context.Context, i *inspect.Inspector, d *deed) (plan, error) {
	switch {
	case d.Verb == string(timer.Fire):
		return plan{}, fmt.Errorf("%w: timers are fired one by one", errAsked)
	case d.Target == "":
		return plan{}, fmt.Errorf("%w: to which target? > is every one", errAsked)
	case d.Verb == string(timer.Move) && d.By == "":
		return plan{}, fmt.Errorf("%w: many are moved by a duration, as in +5m", errAsked)
	}
	b, line, err := d.bulk()
	if err != nil {
		return plan{}, err
	}
	// A duration counts from now, and not from when it is done.
	d.DueAfter, d.DueBefore = exactly(b.Filter.DueFrom), exactly(b.Filter.DueTo)
	b.DryRun = true
	all, err := eachPage(ctx, i.Timers(), b)
	if err != nil {
		return plan{}, err
	}
	d.UpTo, d.Count, d.Shell = all.UpTo, uint64(all.Matched-all.Refused), line.String()
	made := plan{Sentence: d.Verb + " " + counting(d.Count, "timer")}
	if all.Refused > 0 {
		made.Notes = append(made.Notes, refusedOf(all))
	}
	return made, nil
}

// exactly is a time as it is read again; empty for none.
func exactly(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return text.Moment(t)
}

// eachPage goes through all pages.
func eachPage(ctx context.Context, timers *store.Timers, b store.Bulk) (all store.Done, err error) {
	for {
		page, err := timers.Bulk(ctx, b)
		if err != nil {
			return all, err
		}
		all.Add(page)
		if refused := inspect.Forbidden(ctx); refused != nil {
			return all, refused
		}
		if page.Next == 0 || ctx.Err() != nil {
			return all, nil
		}
		b.Page.After, b.Page.UpTo = page.Next, page.UpTo
	}
}

// actTimers does what was planned.
func actTimers(ctx context.Context, i *inspect.Inspector, d deed) (done, error) {
	if d.All {
		b, _, err := d.bulk()
		if err != nil {
			return done{}, err
		}
		all, err := eachPage(ctx, i.Timers(), b)
		if err != nil && (all.Matched == 0 || all.Outcomes[timer.Unknown] == all.Matched) {
			return done{}, err
		}
		return manyDone(d, all, err), nil
	}
	w, err := d.wish()
	if err != nil {
		return done{}, err
	}
	a, err := doTimer(ctx, i, w)
	if err != nil {
		return done{}, err
	}
	said := done{Sentence: string(a.Outcome)}
	switch a.Outcome {
	case timer.Paused:
		said = done{Sentence: "paused: it does not fire until it is resumed", Good: true}
	case timer.Pending:
		said = done{Sentence: "resumed: due " + text.Moment(a.Due), Good: true}
	case timer.Cancelled:
		said = done{Sentence: "cancelled: it will not be delivered", Good: true}
	case timer.Moved:
		said = done{Sentence: "moved: due " + text.Moment(a.Due), Good: true}
	case timer.Fired:
		said = done{Sentence: "fired", Good: true}
	case timer.TooLate:
		said.Sentence = "too late: it has fired"
	}
	if a.Why != "" {
		said.Notes = append(said.Notes, a.Why)
	}
	return said, nil
}

// refusedOf says how many timers were refused, or would be.
func refusedOf(all store.Done) string {
	return text.Printable(fmt.Sprintf("%d refused, the first: %s", all.Refused, all.Why), 600)
}

func manyDone(d deed, all store.Done, err error) done {
	good := map[timer.Verb]timer.Outcome{timer.Cancel: timer.Cancelled, timer.Move: timer.Moved}[timer.Verb(d.Verb)]
	said := done{
		Sentence: fmt.Sprintf("%d of %s %s", all.Outcomes[good], counting(d.Count, "timer"), good),
		Good:     err == nil && uint64(all.Outcomes[good]) == d.Count,
	}
	for _, what := range slices.Sorted(maps.Keys(all.Outcomes)) {
		if what != good {
			said.Notes = append(said.Notes, fmt.Sprintf("%d %s", all.Outcomes[what], what))
		}
	}
	if all.Refused > 0 {
		said.Notes = append(said.Notes, refusedOf(all))
	}
	if err != nil {
		said.Notes = append(said.Notes, "then it failed: "+err.Error())
	} else if all.Next > 0 {
		said.Notes = append(said.Notes, "there was no time for more: plan the rest")
	}
	for n, note := range said.Notes {
		said.Notes[n] = text.Printable(strings.TrimSpace(note), 600)
	}
	return said
}
