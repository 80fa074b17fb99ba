package operation

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/dustin/go-humanize/english"

	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/text"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/store"
	"delaybroker/broker/timer/timetable"
)

// newTime has the parameters of a move. Exactly one must be set.
type newTime struct {
	in string
	at time.Time
	by time.Duration
}

func (m *newTime) params() []*Param {
	by := Parsed(&m.by, "by", "due later or earlier by a duration: +5m, -5m", change.ParseShift)
	all := []*Param{
		by, Duration(&m.in, "in", "due after a duration: 15m, 1h30m, 1500ms"),
		Parsed(&m.at, "at", "due at a time: RFC 3339 with a zone", ParseMoment),
	}
	for n, hint := range []string{"+5m or -5m", "15m", ""} {
		all[n].Field, all[n].Hint = true, hint
	}
	return all
}

func (m *newTime) count() (n int) {
	for _, given := range []bool{m.in != "", !m.at.IsZero(), m.by != 0} {
		if given {
			n++
		}
	}
	return n
}

// change returns the change of one timer.
func (c *timerChoice) change(verb timer.Verb, m newTime) change.Change {
	return change.Change{
		Call: timer.Call{Verb: verb, Generation: c.generation, Series: c.series, ID: c.token},
		Key:  c.key, Target: c.target, For: m.in, Until: m.at, By: m.by,
	}
}

// one returns the parameters of a change of one timer, beside its name.
func (c *timerChoice) one() []*Param {
	generation := Count(&c.generation, "generation", "change the timer only if it has this generation", 0, 0, NoBound)
	token := Parsed(&c.token, "word", "id of this request; a repetition with the same id changes nothing more",
		func(text string) (string, error) { return text, entry.CheckToken(text) })
	series := Count(&c.series, "series", "", 0, 0, NoBound)
	series.Hidden = true
	for _, p := range []*Param{generation, token, series} {
		p.Single = true
	}
	return []*Param{generation, token, series}
}

func isScheduleName(key string) bool {
	_, ok := message.ParseScheduleName(key)
	return ok
}

func (c *timerChoice) checkOne() error {
	if c.generation > 0 && c.series > 0 {
		return invalid("generation and series exclude each other: give one of them")
	}
	return nil
}

// changeTimers returns the uses of a change of one timer, or of all that match.
func changeTimers(verb timer.Verb) func(Bounds) *Use {
	return func(b Bounds) *Use {
		var c timerChoice
		var m newTime
		u := &Use{Params: append(c.name(), c.one()...)}
		if verb != timer.Fire {
			page := c.continued(Bounds{Rows: store.MaxLimit, MaxRows: store.MaxLimit})
			page[0].Hidden, page[1].Hidden = true, true
			u.Params = slices.Concat(c.matching(), c.one(), page, selecting(
				flag(&c.all, "all", "change all timers that match the other flags, instead of one"),
			))
			for _, p := range u.Params {
				p.Field = false // a form has no field for what is selected already
			}
		}
		if verb == timer.Move {
			u.Params = append(u.Params, m.params()...)
		}
		u.Check = func() error { return c.check(verb, m) }
		u.Plan = func(ctx context.Context, d *Desk) (Plan, error) {
			if c.all {
				return c.planAll(ctx, d, u, verb, m)
			}
			return c.planOne(ctx, d, u, verb)
		}
		u.Act = func(ctx context.Context, d *Desk) (Result, error) {
			if c.all {
				return c.changeAll(ctx, d, c.bulk(verb, m))
			}
			if c.token == "" { // a broker recognizes a change that this process has already made
				c.token = rand.Text()
			}
			return c.changeOne(ctx, d, c.change(verb, m))
		}
		return u
	}
}

func (c *timerChoice) check(verb timer.Verb, m newTime) error {
	many := c.once || !c.dueAfter.IsZero() || !c.dueBefore.IsZero()
	switch {
	case c.all && c.target == "" && c.prefix == "":
		return invalid("--all needs --target; '>' means every target")
	case c.all && verb == timer.Move && (m.by == 0 || m.in != "" || !m.at.IsZero()):
		return invalid("--all needs --by, and excludes --in and --at")
	case c.all:
		return nil
	case c.key == "" || c.target == "" && !isScheduleName(c.key):
		return invalid("want KEY TARGET, or --all --target PATTERN")
	case many:
		return invalid("--due-after, --due-before and --once need --all")
	case verb == timer.Move && m.count() != 1:
		return invalid("want one of in, at and by; got %d", m.count())
	}
	return c.checkOne()
}

// planOne reads the timer. It fixes the generation, unless the change has the generation of a schedule's series.
func (c *timerChoice) planOne(ctx context.Context, d *Desk, u *Use, verb timer.Verb) (Plan, error) {
	got, err := d.do(ctx, change.Change{Call: timer.Call{Verb: timer.Get}, Key: c.key, Target: c.target})
	switch {
	case err != nil:
		return Plan{}, err
	case c.generation > 0 && c.generation != got.Generation:
		return c.refusedPlan("the timer has changed since its row was read: update the rows", timer.Conflict), nil
	case got.Outcome != timer.Pending && got.Outcome != timer.Paused:
		return c.refusedPlan(fmt.Sprintf("no action is possible on this timer: its state is %s", got.Outcome),
			cmp.Or(map[timer.Outcome]timer.Outcome{timer.Fired: timer.TooLate}[got.Outcome], timer.NotFound)), nil
	}
	u.fix("generation", strconv.FormatUint(got.Generation, 10))
	due := "due " + text.Moment(got.Due)
	if got.Outcome == timer.Paused {
		due = "paused"
	}
	sentence := fmt.Sprintf("%s 1 timer: %s to %s, %s", verb, c.key, c.target, due)
	return Plan{Count: 1, Sentence: sentence, Result: Result{Sentence: sentence, Good: true, Value: got}}, nil
}

func (c *timerChoice) refusedPlan(sentence string, outcome timer.Outcome) Plan {
	return Plan{Sentence: sentence, Result: Result{
		Sentence: sentence, Outcomes: []Outcome{{Outcome: string(outcome), Count: 1, Why: sentence}},
	}}
}

// changeOne changes one timer. It repeats a change that needs a seal with the secrets of the brokers.
func (c *timerChoice) changeOne(ctx context.Context, d *Desk, w change.Change) (Result, error) {
	answer, err := d.do(ctx, w)
	if err != nil {
		return Result{}, err
	}
	r := Result{
		Value:    answer,
		Row:      answer,
		Outcomes: []Outcome{{Outcome: string(answer.Outcome), Count: 1, Why: answer.Why}},
	}
	r.Sentence, r.Good = sentenceOf(answer)
	if answer.Why != "" {
		r.Notes = append(r.Notes, answer.Why)
	}
	return r, nil
}

func (c *timerChoice) bulk(verb timer.Verb, m newTime) store.Bulk {
	return store.Bulk{
		Verb: verb, By: m.by, Filter: c.filter(), Page: store.Page{Start: c.after, UpTo: c.upTo, Limit: c.limit},
	}
}

// planAll counts the timers that match. It fixes their times and the upper bound of their generations.
func (c *timerChoice) planAll(ctx context.Context, d *Desk, u *Use, verb timer.Verb, m newTime) (Plan, error) {
	b := c.bulk(verb, m)
	b.DryRun = true
	for name, at := range map[string]time.Time{"due-after": b.Filter.DueFrom, "due-before": b.Filter.DueTo} {
		if !at.IsZero() {
			u.fix(name, text.Moment(at))
		}
	}
	r, err := c.changeAll(ctx, d, b)
	if err != nil {
		return Plan{}, err
	}
	total := r.Value.(store.BulkResult)
	u.fix("up-to", strconv.FormatUint(total.UpTo, 10))
	p := Plan{Count: uint64(total.Matched - total.Refused), Result: r, Notes: r.Notes}
	p.Sentence = string(verb) + " " + english.Plural(int(p.Count), "timer", "")
	return p, nil
}

// changeAll repeats a change for each page of the timers, until the last page, an error, or the end of ctx. An error
// after the first change is only in the notes.
func (c *timerChoice) changeAll(ctx context.Context, d *Desk, b store.Bulk) (Result, error) {
	if d.OnePage && b.Verb == timer.Move && !b.DryRun && b.Page.UpTo == 0 {
		return Result{}, invalid("up_to is missing: first send the request with dry_run, and copy up_to from the answer; " +
			"then a repeated page shifts no timer twice")
	}
	var total store.BulkResult
	var failed error
	for {
		page, err := d.Timers.Bulk(ctx, b)
		if err != nil {
			failed = err
			break
		}
		total.Add(page)
		if refused := inspect.RefusalOf(ctx); refused != nil {
			failed = refused
			break
		}
		if page.Next == 0 || d.OnePage {
			break
		}
		if failed = ctx.Err(); failed != nil {
			break
		}
		b.Page.Start, b.Page.UpTo = page.Next, page.UpTo
	}
	success := map[timer.Verb]timer.Outcome{timer.Cancel: timer.Cancelled, timer.Move: timer.Moved}[b.Verb]
	r := Result{Value: total, Good: failed == nil && total.Outcomes[success] == total.Matched}
	r.Sentence = fmt.Sprintf("%d of %s %s", total.Outcomes[success], english.Plural(total.Matched, "timer", ""), success)
	if total.Matched == 0 {
		r.Sentence = "no timer matches"
	}
	if b.DryRun && total.Matched > total.Refused {
		r.Outcomes = append(r.Outcomes, Outcome{Outcome: string(success), Count: total.Matched - total.Refused})
	}
	for _, outcome := range slices.Sorted(maps.Keys(total.Outcomes)) {
		r.Outcomes = append(r.Outcomes, Outcome{Outcome: string(outcome), Count: total.Outcomes[outcome]})
	}
	if total.Refused > 0 {
		r.Outcomes = append(r.Outcomes, Outcome{Outcome: "refused", Count: total.Refused, Why: "the first: " + total.Why})
	}
	for _, o := range r.Outcomes {
		if o.Outcome != string(success) {
			r.Notes = append(r.Notes, sentence(o))
		}
	}
	if failed != nil && (total.Matched == 0 || total.Outcomes[timer.Unknown] == total.Matched) {
		return Result{}, failed
	}
	return r, failed
}

// retime returns the uses of a change of a series' table.
func retime(Bounds) *Use {
	var c timerChoice
	var m newTime
	var t tableChoice
	var table timetable.Table
	u := &Use{Params: slices.Concat(c.name(), c.one(), m.params()[1:], t.params())}
	u.Check = func() (err error) {
		if table, err = t.parse(); err != nil {
			return err
		}
		if m.count() > 1 {
			return invalid("want one of in and at; got %d", m.count())
		}
		return c.checkOne()
	}
	u.Act = func(ctx context.Context, d *Desk) (Result, error) {
		w := c.change(timer.Retime, m)
		w.Table = &table
		return c.changeOne(ctx, d, w)
	}
	return u
}
