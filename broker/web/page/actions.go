package page

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/store"
	"delaybroker/levels"
)

// operation has the functions that plan and execute a kind of action. The function plan sets the action's count, shell
// command and bounds.
type operation struct {
	plan func(ctx context.Context, i *inspect.Inspector, a *action) (plan, error)
	act  func(ctx context.Context, i *inspect.Inspector, a action) (result, error)
}

type result struct {
	Sentence string   `json:"sentence"`
	Notes    []string `json:"notes,omitempty"` // about the objects that were not changed
	Good     bool     `json:"good"`            // all objects of the plan were changed
}

// operationFor returns the operation of an action. The object of a pause is a recurring timer, or a pattern of targets.
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
	return operation{}, fmt.Errorf("%w: unknown verb %q", errRequest, a.Verb)
}

func formatCount(n uint64, noun string) string { return english.Plural(int(n), noun, "") }

// change returns the change of one timer that an action requests.
func (a action) change() (c store.Change, err error) {
	c = store.Change{Key: a.Key, Target: a.Target}
	c.Verb, c.Generation, c.ID = timer.Verb(a.Verb), a.Generation, a.IdempotencyKey
	if c.Verb != timer.Move {
		return c, nil
	}
	switch {
	case a.In != "" && a.At == "" && a.By == "":
		c.For = a.In
		_, err = levels.ParseDuration(a.In)
	case a.At != "" && a.In == "" && a.By == "":
		c.Until, err = time.Parse(time.RFC3339Nano, a.At)
	case a.By != "" && a.In == "" && a.At == "":
		c.By, err = store.ParseShift(a.By)
	default:
		return c, fmt.Errorf("%w: move: want exactly one of in, at and by", errRequest)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", errRequest, err)
	}
	return c, err
}

func (a action) moveFlags(line shell) shell {
	if a.Verb != string(timer.Move) {
		return line
	}
	return line.flag("--in", a.In).flag("--at", a.At).flag("--by", a.By)
}

// planTimers plans an action on one timer, or on all timers that match the action's filter.
func planTimers(ctx context.Context, i *inspect.Inspector, a *action) (plan, error) {
	c, err := a.change()
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
	if c.Generation > 0 && c.Generation != got.Generation {
		return plan{Sentence: "the timer has changed since the page read its row: update the rows"}, nil
	}
	if got.Outcome != timer.Pending && got.Outcome != timer.Paused {
		return plan{Sentence: fmt.Sprintf("no action is possible on this timer: its state is %s", got.Outcome)}, nil
	}
	a.Generation, a.Count, a.Shell = got.Generation, 1, a.timerLine(got)
	due := "due " + text.Moment(got.Due)
	if got.Outcome == timer.Paused {
		due = "paused"
	}
	return plan{Sentence: fmt.Sprintf("%s 1 timer: %s to %s, %s", a.Verb, a.Key, a.Target, due)}, nil
}

// timerLine returns the equivalent shell command. For a recurring timer, only a move has a command with a generation,
// because a generation is valid for only one round.
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

// bulk returns the change of all timers that match the action's filter, and the equivalent shell command.
func (a action) bulk() (b store.Bulk, line shell, err error) {
	b = store.Bulk{Verb: timer.Verb(a.Verb), Page: store.Page{UpTo: a.UpTo, Limit: store.MaxLimit}}
	if b.Verb == timer.Move {
		if b.By, err = store.ParseShift(a.By); err != nil {
			return b, nil, fmt.Errorf("%w: by: %w", errRequest, err)
		}
	}
	kind := "all"
	if a.Once {
		kind = "once"
	}
	b.Filter, line, err = timerFilter(url.Values{
		"target": {a.Target}, "key": {a.Key}, "due_after": {a.DueAfter}, "due_before": {a.DueBefore}, "kind": {kind},
	}, shell{"timers", a.Verb, "--all"})
	return b, a.moveFlags(line), err
}

// doTimer reads or changes one timer. It returns an error if a permission is missing.
func doTimer(ctx context.Context, i *inspect.Inspector, c store.Change) (store.Answer, error) {
	got, err := i.Timers().Do(ctx, c)
	if err == nil && got.Outcome == timer.Unknown {
		err = inspect.RefusalOf(ctx)
	}
	return got, err
}

func planManyTimers(ctx context.Context, i *inspect.Inspector, a *action) (plan, error) {
	switch {
	case a.Verb == string(timer.Fire):
		return plan{}, fmt.Errorf("%w: fire: want a single timer", errRequest)
	case a.Target == "":
		return plan{}, fmt.Errorf("%w: the target is missing: > means every target", errRequest)
	case a.Verb == string(timer.Move) && a.By == "":
		return plan{}, fmt.Errorf("%w: move: many timers need a duration, such as +5m", errRequest)
	}
	b, line, err := a.bulk()
	if err != nil {
		return plan{}, err
	}
	// The plan replaces a relative bound, such as 5m, with a time, so the action has the same bounds as the plan.
	a.DueAfter, a.DueBefore = exactTime(b.Filter.DueFrom), exactTime(b.Filter.DueTo)
	b.DryRun = true
	total, err := bulkPages(ctx, i.Timers(), b)
	if err != nil {
		return plan{}, err
	}
	a.UpTo, a.Count, a.Shell = total.UpTo, uint64(total.Matched-total.Refused), line.String()
	p := plan{Sentence: a.Verb + " " + formatCount(a.Count, "timer")}
	if total.Refused > 0 {
		p.Notes = append(p.Notes, refusalNote(total))
	}
	return p, nil
}

// exactTime formats a time with full precision. It returns "" for the zero time.
func exactTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return text.Moment(t)
}

// bulkPages repeats a change of many timers for each page of their list, until the last page or the end of ctx.
func bulkPages(ctx context.Context, timers *store.Timers, b store.Bulk) (total store.BulkResult, err error) {
	for {
		page, err := timers.Bulk(ctx, b)
		if err != nil {
			return total, err
		}
		total.Add(page)
		if refused := inspect.RefusalOf(ctx); refused != nil {
			return total, refused
		}
		if page.Next == 0 || ctx.Err() != nil {
			return total, nil
		}
		b.Page.Start, b.Page.UpTo = page.Next, page.UpTo
	}
}

// actTimers executes a plan for one timer, or for all timers that match the action's filter.
func actTimers(ctx context.Context, i *inspect.Inspector, a action) (result, error) {
	if a.All {
		b, _, err := a.bulk()
		if err != nil {
			return result{}, err
		}
		total, err := bulkPages(ctx, i.Timers(), b)
		if err != nil && (total.Matched == 0 || total.Outcomes[timer.Unknown] == total.Matched) {
			return result{}, err
		}
		return bulkResult(a, total, err), nil
	}
	c, err := a.change()
	if err != nil {
		return result{}, err
	}
	got, err := doTimer(ctx, i, c)
	if err != nil {
		return result{}, err
	}
	r := result{Sentence: map[timer.Outcome]string{
		timer.Paused:    "paused: the timer does not fire until it is resumed",
		timer.Pending:   "resumed: due " + text.Moment(got.Due),
		timer.Cancelled: "cancelled: the timer will not be delivered",
		timer.Moved:     "moved: due " + text.Moment(got.Due),
		timer.Fired:     "fired: the timer is delivered now",
	}[got.Outcome]}
	if r.Good = r.Sentence != ""; !r.Good {
		r.Sentence = cmp.Or(map[timer.Outcome]string{
			timer.TooLate:  "too late: the timer has fired",
			timer.NotFound: "not changed: the timer has ended",
			timer.Conflict: "not changed: the timer has changed since the plan: plan the action again",
			timer.Unknown:  "no answer: the timer may have been changed: plan the action again",
		}[got.Outcome], string(got.Outcome))
	}
	if got.Why != "" {
		r.Notes = append(r.Notes, got.Why)
	}
	return r, nil
}

// refusalNote formats the number of refused changes, and the reason of the first refusal.
func refusalNote(total store.BulkResult) string {
	return text.Printable(fmt.Sprintf("%d refused; the reason of the first: %s", total.Refused, total.Why), 600)
}

// bulkResult returns the result of a change of many timers. If err is not nil, the change has stopped early.
func bulkResult(a action, total store.BulkResult, err error) result {
	success := timer.Outcome(participles[a.Verb])
	r := result{
		Sentence: fmt.Sprintf("%d of %s %s", total.Outcomes[success], formatCount(a.Count, "timer"), success),
		Good:     err == nil && uint64(total.Outcomes[success]) == a.Count,
	}
	for _, outcome := range slices.Sorted(maps.Keys(total.Outcomes)) {
		if outcome != success {
			r.Notes = append(r.Notes, fmt.Sprintf("%d %s", total.Outcomes[outcome], outcome))
		}
	}
	if total.Refused > 0 {
		r.Notes = append(r.Notes, refusalNote(total))
	}
	if err != nil {
		r.Notes = append(r.Notes, "stopped by an error: "+err.Error())
	} else if total.Next > 0 {
		r.Notes = append(r.Notes, "stopped by a timeout: plan the action again for the other timers")
	}
	for n, note := range r.Notes {
		r.Notes[n] = text.Printable(strings.TrimSpace(note), 600)
	}
	return r
}
