package operation

import (
	"context"
	"errors"
	"slices"

	"delaybroker/broker/timer"
	"delaybroker/broker/timer/store"
)

const (
	defaultRuns = 5
	maxRuns     = 1000
)

var scheduleOperations = []Operation{
	{
		Name: "schedules ls", Noun: "schedule", New: listSchedules,
		Short: "List schedules",
		Long: `List schedules, in the order in which their pending rounds were stored. The command reads the headers of all
timers of the targets.

exit codes: 0 shown, 1 failed, 2 bad arguments or settings`,
		Example: "  delaybroker schedules ls --target 'reports.>' --name 'night*'",
		Columns: []Column{
			{Name: "name", Field: "key", Kind: Key, Min: 8}, {Name: "target", Field: "target", Kind: Target, Min: 10},
			{Name: "recurs", Field: "recurring.table", Drop: 1, Min: 10},
			{Name: "round", Field: "recurring.round", Kind: Number, Drop: 2},
			{Name: "state", Field: "state", Kind: State, Drop: 1},
			{Name: "due", Field: "due", Kind: Time}, {Name: "then", Field: "next", Kind: Rounds},
			{Name: "set", Field: "recurring.set", Drop: 3, Min: 6, Rare: true},
			{Name: "because", Field: "why", Rare: true, Drop: 1, Min: 12, Wrap: true},
		},
		Actions: scheduleActions,
	},
	{
		Name: "schedules show", Noun: "schedule", New: showTimer(true), Words: []string{"name", "target"}, Least: 1,
		Usage: "NAME [TARGET]", Facts: true,
		Short: "Show one schedule, with its headers, its body and its last runs",
		Long: `Show one schedule, with its headers, its body and its last runs. With --json, the body is base64.

The runs are the rounds in the journal (DELAY_JOURNAL), delivered or dead letters. A round that the broker still retries
is not among them.

` + OutcomeCodes,
		Example: "  delaybroker schedules show nightly --runs 20",
		Columns: timerFacts, Actions: scheduleActions,
	},
	scheduleChange("pause", "Pause", "paused", timer.Pause, "Stop a schedule until it is resumed",
		"The pending round does not fire. A round that has fired is still delivered."),
	scheduleChange("resume", "Resume", "resumed", timer.Resume, "Continue a paused schedule",
		"The rounds during the pause are missed rounds: the schedule's option --missed decides which fire."),
	scheduleChange("fire", "Fire now", "fired", timer.Fire, "Deliver a schedule's message once, now",
		"This is an additional delivery, as soon as a broker runs. The pending round\nfires at its time."),
	scheduleChange("rm", "Delete", "removed", timer.Cancel, "Remove a schedule",
		"No further round fires. A round that has fired is still delivered."),
	{
		Name: "schedules next", Noun: "schedule", New: nextTimes, Words: []string{"name", "target"},
		Usage: "(NAME [TARGET] | --every DURATION | --cron EXPRESSION [--tz ZONE]) [-n COUNT]",
		Short: "Print the next times of a schedule, or of an interval or cron expression",
		Long: `Print the next times of a schedule, with their zone, and mark the changes of the zone's clocks. With --every or
--cron the command sends no request.

If a clock change skips a time, the round fires right after the gap. If a time occurs twice, the round fires once, at
the first of the two. A cron expression for every hour fires in each hour, including the repeated one.

exit codes: 0 shown, 1 failed, 2 bad arguments or settings, 4 there is no such schedule`,
		Example: `  delaybroker schedules next nightly -n 5
  delaybroker schedules next --cron '30 2 * * *' --tz Europe/Berlin -n 300 | grep clocks`,
		Columns: []Column{
			{Name: "time", Field: "at", Kind: LocalTime}, {Name: "zone", Field: "zone"},
			{Name: "in", Field: "at", Kind: DueIn}, {Name: "clocks", Field: "clocks", Drop: 1, Rare: true},
		},
	},
	{
		Name:     "schedules retime",
		Noun:     "schedule",
		New:      retime,
		Words:    []string{"key", "target"},
		Endpoint: "retime",
		Hidden:   true,
	},
}

var ofSchedule = map[string]string{"name": "key", "target": "target", "generation": "generation"}

var scheduleActions = []Action{
	{Operation: "schedules rm", With: ofSchedule, States: []string{"pending", "paused"}, Many: true},
	{Operation: "timers move", With: ofTimer, States: []string{"pending"}},
	{Operation: "schedules fire", With: ofSchedule, States: []string{"pending"}},
	{Operation: "schedules pause", With: ofSchedule, States: []string{"pending"}, Many: true},
	{Operation: "schedules resume", With: ofSchedule, States: []string{"paused"}, Many: true},
}

func scheduleChange(name, label, done string, verb timer.Verb, short, long string) Operation {
	o := Operation{
		Name: "schedules " + name, Noun: "schedule", Label: label, Done: done, Short: short,
		Long:    short + ". " + long + "\n\n" + OutcomeCodes,
		Example: "  delaybroker schedules " + name + " nightly",
		Words:   []string{"name", "target"}, Least: 1, Usage: "NAME [TARGET]", Columns: AnswerColumns,
		Final: verb == timer.Cancel || verb == timer.Fire, Loses: verb == timer.Cancel, New: changeSchedule(verb),
	}
	if verb == timer.Pause || verb == timer.Resume { // fire and cancel are the same as for any timer
		o.Endpoint = name
	}
	return o
}

// scheduleName returns the parameters of one schedule. Its name is the timer's key.
func (c *timerChoice) scheduleName() []*Param {
	name := word(&c.key, "name", "the name of the schedule")
	target := word(&c.target, "target", "the target, if several have a schedule with the name")
	name.Names, target.Names = "schedule", "target"
	return selecting(name, target)
}

func changeSchedule(verb timer.Verb) func(Bounds) *Use {
	return func(Bounds) *Use {
		var c timerChoice
		more := c.one()
		more[0].Hidden = true // a generation is valid for only one round
		u := &Use{Params: append(c.scheduleName(), more...)}
		u.Check = func() error { return errors.Join(c.checkName(), c.checkOne()) }
		absent := func(err error) (Result, error) {
			end, err := c.absent(err)
			if err != nil {
				return Result{}, err
			}
			r := Result{Value: end.Answer, Row: end.Answer, Sentence: end.Empty}
			r.Outcomes = []Outcome{{Outcome: string(timer.NotFound), Count: 1}}
			return r, nil
		}
		u.Plan = func(ctx context.Context, d *Desk) (Plan, error) {
			if err := c.findTarget(ctx, d); err != nil {
				r, err := absent(err)
				return Plan{Sentence: r.Sentence, Result: r}, err
			}
			p, err := c.planOne(ctx, d, u, verb)
			if err == nil && c.target != "" {
				u.fix("target", c.target)
			}
			return p, err
		}
		u.Act = func(ctx context.Context, d *Desk) (Result, error) {
			if err := c.findTarget(ctx, d); err != nil {
				return absent(err)
			}
			return c.changeOne(ctx, d, c.change(verb, newTime{}))
		}
		return u
	}
}

// schedule is the row of a schedule.
type schedule struct {
	store.Row
	Next []Round `json:"next"` // the planned times of the rounds after the pending round
}

func listSchedules(b Bounds) *Use {
	c := timerChoice{recurring: true}
	name := word(&c.key, "name", "only with this name; * for any characters, as in 'night*'")
	name.Names, name.Field, name.Hint = "schedule", true, "night*"
	limit := c.continued(b)
	if b.MaxRows == 0 {
		limit[1].Default, c.limit = "0", 0
	}
	rowOf := func(r store.Row) any { return schedule{r, roundsAfter(r.Recurring, maxUpcoming)} }
	return &Use{
		Params: slices.Concat([]*Param{pattern(&c.target), name, word(&c.set, "set", setHelp)}, limit),
		Look: func(ctx context.Context, d *Desk, show func(any) error) (End, error) {
			if c.limit > 0 {
				return c.list(ctx, d, "no schedules", rowOf, show)
			}
			// This list has each schedule once, even if a round fires meanwhile.
			for r, err := range d.Timers.ListRecurring(ctx, c.filter()) {
				if err == nil {
					err = show(rowOf(r))
				}
				if err != nil {
					return End{}, err
				}
			}
			return End{Empty: "no schedules"}, nil
		},
	}
}
