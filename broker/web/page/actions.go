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

// operation has the functions that plan and execute a kind of action.
type operation struct {
	plan func(ctx context.Context, i *inspect.Inspector, a *action) (plan, error)
	act  func(ctx context.Context, i *inspect.Inspector, a action) (result, error)
}

// result is the result of an action.
type result struct {
	Sentence string   `json:"sentence"`
	Notes    []string `json:"notes,omitempty"`
	Good     bool     `json:"good"` // the whole plan was executed
}

// operationFor returns the operation of an action. A pause applies to a target, or to a recurring timer.
func operationFor(a action) (operation, error) {
	ofTimer := a.Key != "" || len(a.Timers) > 0
	switch verb := a.Verb; {
	case len(a.Timers) > 0 && slices.Contains([]string{"cancel", "move", "fire", "pause", "resume"}, verb):
		return operation{planSelected, actSelected}, nil
	case verb == "cancel", verb == "move", verb == "fire", ofTimer && (verb == "pause" || verb == "resume"):
		return operation{planTimers, actTimers}, nil
	case verb == "resend", verb == "remove":
		return operation{planLetters, actLetters}, nil
	case verb == "pause", verb == "resume":
		return operation{planPause, actPause}, nil
	}
	return operation{}, fmt.Errorf("%w: unknown verb %q", errAsked, a.Verb)
}

// counting formats a number with its noun.
func counting(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.FormatUint(n, 10) + " " + noun + "s"
}

// change returns the change of one timer for an action.
func (a action) change() (w store.Change, err error) {
	w = store.Change{Key: a.Key, Target: a.Target}
	w.Verb, w.Generation, w.ID = timer.Verb(a.Verb), a.Generation, a.Word
	if w.Verb != timer.Move {
		return w, nil
	}
	switch {
	case a.In != "" && a.At == "" && a.By == "":
		w.For = a.In
		_, err = levels.ParseDuration(a.In)
	case a.At != "" && a.In == "" && a.By == "":
		w.Until, err = time.Parse(time.RFC3339Nano, a.At)
	case a.By != "" && a.In == "" && a.At == "":
		w.By, err = store.ParseShift(a.By)
	default:
		return w, fmt.Errorf("%w: move: want one of in, at and by", errAsked)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", errAsked, err)
	}
	return w, err
}

// moveFlags adds the flags for the new time of a move.
func (a action) moveFlags(line shell) shell {
	if a.Verb != string(timer.Move) {
		return line
	}
	return line.flag("--in", a.In).flag("--at", a.At).flag("--by", a.By)
}

// planTimers reads one timer, or counts many.
func planTimers(ctx context.Context, i *inspect.Inspector, a *action) (plan, error) {
	w, err := a.change()
	if err != nil {
		return plan{}, err
	}
	if a.All {
		return planManyTimers(ctx, i, a)
	}
	got, err := doTimer(ctx, i, store.Change{Request: timer.Request{Verb: timer.Get}, Key: a.Key, Target: a.Target})
	if err != nil {
		return plan{}, err
	}
	if w.Generation > 0 && w.Generation != got.Generation {
		return plan{Sentence: "the timer was set again after this page read it: update the rows"}, nil
	}
	if got.Outcome != timer.Pending && got.Outcome != timer.Paused {
		return plan{Sentence: fmt.Sprintf("the timer is %s: no action is possible", got.Outcome)}, nil
	}
	a.Generation, a.Count, a.Shell = got.Generation, 1, a.timerLine(got)
	due := "due " + text.Moment(got.Due)
	if got.Outcome == timer.Paused {
		due = "paused"
	}
	return plan{Sentence: fmt.Sprintf("%s 1 timer: %s to %s, %s", a.Verb, a.Key, a.Target, due)}, nil
}

// timerLine returns the equivalent shell command. The command for a recurring timer, except a move, contains no
// generation, because a generation is valid for one round only.
func (a action) timerLine(got store.Answer) string {
	verb := timer.Verb(a.Verb)
	if got.Recurring == nil || verb == timer.Move {
		line := shell{"timers", a.Verb}.flag("--generation", strconv.FormatUint(got.Generation, 10))
		return a.moveFlags(line).words(a.Key, a.Target).String()
	}
	name := a.Verb
	if verb == timer.Cancel {
		name = "rm"
	}
	return shell{"schedules", name}.flag("--target", a.Target).words(a.Key).String()
}

// bulk returns the planned change of many timers, and the equivalent shell command.
func (a action) bulk() (b store.Bulk, line shell, err error) {
	b = store.Bulk{Verb: timer.Verb(a.Verb), Page: store.Page{UpTo: a.UpTo, Limit: store.MaxLimit}}
	if b.Verb == timer.Move {
		if b.By, err = store.ParseShift(a.By); err != nil {
			return b, nil, fmt.Errorf("%w: by: %w", errAsked, err)
		}
	}
	b.Filter, line, err = timerFilter(url.Values{
		"target": {a.Target}, "key": {a.Key}, "due_after": {a.DueAfter}, "due_before": {a.DueBefore},
	}, shell{"timers", a.Verb, "--all"})
	return b, a.moveFlags(line), err
}

// doTimer reads or changes one timer. If the server refuses the request, doTimer returns the refusal.
func doTimer(ctx context.Context, i *inspect.Inspector, w store.Change) (store.Answer, error) {
	got, err := i.Timers().Do(ctx, w)
	if err == nil && got.Outcome == timer.Unknown {
		err = inspect.RefusalOf(ctx)
	}
	return got, err
}

func planManyTimers(ctx context.Context, i *inspect.Inspector, a *action) (plan, error) {
	switch {
	case a.Verb == string(timer.Fire):
		return plan{}, fmt.Errorf("%w: only one timer can be fired at a time", errAsked)
	case a.Target == "":
		return plan{}, fmt.Errorf("%w: target missing; > means every target", errAsked)
	case a.Verb == string(timer.Move) && a.By == "":
		return plan{}, fmt.Errorf("%w: many timers can only be moved by a duration, such as +5m", errAsked)
	}
	b, line, err := a.bulk()
	if err != nil {
		return plan{}, err
	}
	// A duration counts from the time of the plan, not from the time of the action.
	a.DueAfter, a.DueBefore = exactly(b.Filter.DueFrom), exactly(b.Filter.DueTo)
	b.DryRun = true
	all, err := eachPage(ctx, i.Timers(), b)
	if err != nil {
		return plan{}, err
	}
	a.UpTo, a.Count, a.Shell = all.UpTo, uint64(all.Matched-all.Refused), line.String()
	made := plan{Sentence: a.Verb + " " + counting(a.Count, "timer")}
	if all.Refused > 0 {
		made.Notes = append(made.Notes, refusedOf(all))
	}
	return made, nil
}

// exactly formats a time without loss of precision. It returns "" for the zero time.
func exactly(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return text.Moment(t)
}

// eachPage changes the timers of all pages.
func eachPage(ctx context.Context, timers *store.Timers, b store.Bulk) (all store.Done, err error) {
	for {
		page, err := timers.Bulk(ctx, b)
		if err != nil {
			return all, err
		}
		all.Add(page)
		if refused := inspect.RefusalOf(ctx); refused != nil {
			return all, refused
		}
		if page.Next == 0 || ctx.Err() != nil {
			return all, nil
		}
		b.Page.After, b.Page.UpTo = page.Next, page.UpTo
	}
}

// actTimers executes a plan.
func actTimers(ctx context.Context, i *inspect.Inspector, a action) (result, error) {
	if a.All {
		b, _, err := a.bulk()
		if err != nil {
			return result{}, err
		}
		all, err := eachPage(ctx, i.Timers(), b)
		if err != nil && (all.Matched == 0 || all.Outcomes[timer.Unknown] == all.Matched) {
			return result{}, err
		}
		return manyDone(a, all, err), nil
	}
	w, err := a.change()
	if err != nil {
		return result{}, err
	}
	got, err := doTimer(ctx, i, w)
	if err != nil {
		return result{}, err
	}
	done := result{Sentence: string(got.Outcome)}
	switch got.Outcome {
	case timer.Paused:
		done = result{Sentence: "paused: the timer does not fire until it is resumed", Good: true}
	case timer.Pending:
		done = result{Sentence: "resumed: due " + text.Moment(got.Due), Good: true}
	case timer.Cancelled:
		done = result{Sentence: "cancelled: the timer will not be delivered", Good: true}
	case timer.Moved:
		done = result{Sentence: "moved: due " + text.Moment(got.Due), Good: true}
	case timer.Fired:
		done = result{Sentence: "fired", Good: true}
	case timer.TooLate:
		done.Sentence = "too late: the timer has fired"
	}
	if got.Why != "" {
		done.Notes = append(done.Notes, got.Why)
	}
	return done, nil
}

// refusedOf formats the number of timers that are refused, and the reason of the first.
func refusedOf(all store.Done) string {
	return text.Printable(fmt.Sprintf("%d refused, the first: %s", all.Refused, all.Why), 600)
}

func manyDone(a action, all store.Done, err error) result {
	good := map[timer.Verb]timer.Outcome{timer.Cancel: timer.Cancelled, timer.Move: timer.Moved}[timer.Verb(a.Verb)]
	done := result{
		Sentence: fmt.Sprintf("%d of %s %s", all.Outcomes[good], counting(a.Count, "timer"), good),
		Good:     err == nil && uint64(all.Outcomes[good]) == a.Count,
	}
	for _, what := range slices.Sorted(maps.Keys(all.Outcomes)) {
		if what != good {
			done.Notes = append(done.Notes, fmt.Sprintf("%d %s", all.Outcomes[what], what))
		}
	}
	if all.Refused > 0 {
		done.Notes = append(done.Notes, refusedOf(all))
	}
	if err != nil {
		done.Notes = append(done.Notes, "stopped by an error: "+err.Error())
	} else if all.Next > 0 {
		done.Notes = append(done.Notes, "stopped by the time limit: plan the rest")
	}
	for n, note := range done.Notes {
		done.Notes[n] = text.Printable(strings.TrimSpace(note), 600)
	}
	return done
}
