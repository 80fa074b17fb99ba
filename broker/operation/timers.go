package operation

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/store"
)

// Timers reads and changes the named timers: a [store.Timers], or a broker that is asked to.
type Timers interface {
	Do(ctx context.Context, c change.Change) (change.Answer, error)
	Read(ctx context.Context, key, target string) (timer.State, error)
	List(ctx context.Context, f store.Filter, p store.Page) (store.Listing, error)
	ListRecurring(ctx context.Context, f store.Filter) iter.Seq2[store.Row, error]
	Bulk(ctx context.Context, b store.Bulk) (store.BulkResult, error)
}

// OutcomeCodes are the lines of a help about the exit codes of a change of one timer.
const OutcomeCodes = `exit codes: 0 done, 1 failed, 2 bad arguments or settings, 3 too late: the
timer has fired, 4 not found, 5 conflict with another generation, 6 unknown: a change may have been made`

var timerOperations = []Operation{
	{
		Name: "timers ls", Noun: "timer", New: listTimers, ManyEndpoint: "timers",
		Short: "List timers",
		Long: `List pending timers, or those in another --state, in the order in which they were set or moved. With --order
due, the pending timers that are due next are first. The command reads the headers of all timers of the targets. --limit
bounds the number of rows, and --after continues a list.

exit codes: 0 shown, 1 failed, 2 bad arguments or settings`,
		Example: "  delaybroker timers ls --target 'orders.>' --key 'order-*' --due-before 2026-12-24T18:00:00Z",
		Columns: []Column{
			{Name: "key", Field: "key", Kind: Key, Min: 8}, {Name: "target", Field: "target", Kind: Target, Min: 10},
			{Name: "state", Field: "state", Kind: State, Drop: 1},
			{Name: "generation", Field: "generation", Kind: Number, Drop: 2}, {Name: "due", Field: "due", Kind: Time},
			{Name: "recurs", Field: "recurring.table", Drop: 3, Min: 10, Rare: true},
			{Name: "round", Field: "recurring.round", Kind: Number, Drop: 3, Rare: true},
			{Name: "bytes", Field: "size", Kind: Number, Drop: 4},
			{Name: "because", Field: "why", Rare: true, Drop: 1, Min: 12, Wrap: true},
		},
		Actions: timerActions,
	},
	{
		Name: "timers show", Noun: "timer", New: showTimer(false), Words: []string{"key", "target"}, Least: 2, Facts: true,
		Usage: "KEY TARGET", Endpoint: "get",
		Short: "Show the state of one timer",
		Long: "Show the state of one timer. The state of an ended timer is kept for DELAY_TIMER_HISTORY. With --json, the\n" +
			"body is base64.\n\n" + OutcomeCodes,
		Example: "  delaybroker timers show order-42 orders.expire",
		Columns: timerFacts, Actions: timerActions,
	},
	{
		Name: "timers cancel", Noun: "timer", Label: "Cancel", Done: "cancelled", Loses: true, Final: true,
		New: changeTimers(timer.Cancel), Words: []string{"key", "target"},
		Usage: "(KEY TARGET | --all --target PATTERN)", Endpoint: "cancel", ManyEndpoint: "cancel-all",
		Short: "Cancel one timer, or all that match",
		Long: `Cancel one timer, or all that match. A timer with the outcome cancelled is never delivered. With --all, some
timers may be cancelled although the exit code is not 0: the output has the number of each outcome.

` + OutcomeCodes,
		Example: `  delaybroker timers cancel order-42 orders.expire
  delaybroker timers cancel --all --target 'orders.>' --key 'order-*' --dry-run`,
		Columns: AnswerColumns,
	},
	{
		Name: "timers move", Noun: "timer", Label: "Move", Done: "moved", New: changeTimers(timer.Move),
		Words: []string{"key", "target"}, Endpoint: "move", ManyEndpoint: "shift",
		Usage: "(KEY TARGET | --all --target PATTERN) (--in DURATION | --at TIME | --by DURATION)",
		Short: "Move one timer to another time, or shift all that match",
		Long: `Move one timer to another time, or shift all that match. A moved timer keeps its body and headers, and gets a
new generation. A move of a schedule moves only the pending round. The following rounds keep their times. With --all,
some timers may be moved although the exit code is not 0: the output has the number of each outcome.

` + OutcomeCodes,
		Example: `  delaybroker timers move order-42 orders.expire --in 15m
  delaybroker timers move --all --target 'orders.>' --by +5m --dry-run`,
		Columns: AnswerColumns,
	},
	{
		Name: "timers fire", Noun: "timer", Label: "Fire now", Done: "fired", Final: true,
		New: changeTimers(timer.Fire), Words: []string{"key", "target"}, Least: 2, Usage: "KEY TARGET", Endpoint: "fire",
		Short: "Make one timer due immediately",
		Long: `Make one timer due immediately. The timer is delivered as soon as a broker runs. For a recurring timer, this is
an additional delivery, and the pending round fires at its time.

` + OutcomeCodes,
		Example: "  delaybroker timers fire order-42 orders.expire",
		Columns: AnswerColumns,
	},
}

var ofTimer = map[string]string{"key": "key", "target": "target", "generation": "generation"}

var timerActions = []Action{
	{Operation: "timers cancel", With: ofTimer, States: []string{"pending", "paused"}, Many: true},
	{Operation: "timers move", With: ofTimer, States: []string{"pending"}, Many: true},
	{Operation: "timers fire", With: ofTimer, States: []string{"pending"}},
}

// AnswerColumns are the columns of the answer to a change of one timer.
var AnswerColumns = []Column{
	{Name: "key", Field: "key", Kind: Key, Min: 8}, {Name: "target", Field: "target", Kind: Target, Min: 10},
	{Name: "outcome", Field: "outcome", Kind: State}, {Name: "generation", Field: "generation", Kind: Number, Drop: 2},
	{Name: "due", Field: "due", Kind: Time, Rare: true, Drop: 1},
	{Name: "because", Field: "why", Min: 12, Wrap: true, Rare: true},
}

var timerFacts = []Column{
	{Name: "key", Field: "key", Kind: Key}, {Name: "target", Field: "target", Kind: Target},
	{Name: "state", Field: "outcome", Kind: State}, {Name: "because", Field: "why"},
	{Name: "generation", Field: "generation", Kind: Number}, {Name: "due", Field: "due", Kind: Time},
	{Name: "recurs", Field: "recurring.table"}, {Name: "round", Field: "recurring.round", Kind: Number},
	{Name: "first", Field: "first", Kind: Time}, {Name: "last", Field: "last", Kind: Time},
	{Name: "rounds", Field: "rounds", Kind: Number}, {Name: "missed", Field: "missed"}, {Name: "jitter", Field: "jitter"},
	{Name: "then", Field: "next", Kind: Rounds},
	{Name: "set", Field: "recurring.set"}, {Name: "series", Field: "recurring.series", Kind: Number},
	{Name: "header", Field: "headers", Kind: Header}, {Name: "bytes", Field: "size", Kind: Number},
	{Name: "last runs", Field: "runs", Kind: Runs, Columns: RunColumns}, {Name: "runs unknown", Field: "runs_problem"},
}

// timerChoice has the parameters that select timers.
type timerChoice struct {
	key, target          string
	dueAfter, dueBefore  inspect.Bound
	once, recurring, all bool
	set, prefix, state   string
	order                string
	generation, series   uint64
	token                string
	after, upTo          uint64
	limit                int
}

// name returns the parameters of one timer.
func (c *timerChoice) name() []*Param {
	key, target := word(&c.key, "key", "the key of the timer"), word(&c.target, "target", "the target of the timer")
	key.Names, target.Names = "key", "target"
	return selecting(key, target)
}

// matching returns the parameters that select many timers, and those of a page of them.
func (c *timerChoice) matching() []*Param {
	key := word(&c.key, "key", "only with this key; * for any characters, as in 'order-*'")
	key.Names, key.Field, key.Hint = "key", true, "order-*"
	once := flag(&c.once, "once", "only timers that do not recur")
	prefix := word(&c.prefix, "prefix", "")
	upTo := Count(&c.upTo, "up-to", "", 0, 0, NoBound)
	prefix.Hidden, upTo.Hidden = true, true
	return selecting(
		key, pattern(&c.target), ahead(&c.dueAfter, "due-after", "only due at this time or later"),
		ahead(&c.dueBefore, "due-before", "only due before this time"), once, prefix, upTo,
	)
}

func selecting(params ...*Param) []*Param {
	for _, p := range params {
		p.Selects = true
	}
	return params
}

// continued returns the parameters of a list of timers.
func (c *timerChoice) continued(b Bounds) []*Param {
	return selecting(
		Count(&c.after, "after", "continue after this sequence, which an earlier list printed", 0, 0, NoBound),
		b.rows(&c.limit),
	)
}

func (c *timerChoice) filter() store.Filter {
	now := time.Now()
	f := store.Filter{
		Key: c.key, DueFrom: c.dueAfter.Time(now), DueTo: c.dueBefore.Time(now), OneShot: c.once, Recurring: c.recurring,
		Set: c.set, State: timer.Outcome(c.state), Prefix: c.prefix,
	}
	if c.state == "all" {
		f.State = ""
	}
	if c.target != "" {
		f.Targets = []string{c.target}
	}
	return f
}

func listTimers(b Bounds) *Use {
	c := timerChoice{state: "pending"}
	states := []string{"pending", "paused", "fired", "cancelled", "all"}
	state := Parsed(&c.state, "state", "pending, paused, fired (already delivered or not), cancelled, or all",
		OneOf(states))
	if b.AllStates {
		c.state = "all"
	}
	state.Choices, state.Default, state.Field = states, c.state, true
	orders := []string{orderSet, orderDue}
	order := Parsed(&c.order, "order", "set: in the order in which they were set; due: the next due first, if pending",
		OneOf(orders))
	order.Choices, order.Default = orders, orderSet
	recurring, set := flag(&c.recurring, "recurring", "only timers that recur"), word(&c.set, "set", setHelp)
	return &Use{
		Params: slices.Concat(c.matching(), []*Param{state, order, recurring, set}, c.continued(b)),
		Look: func(ctx context.Context, d *Desk, show func(any) error) (End, error) {
			return c.list(ctx, d, "no timers", func(r store.Row) any { return r }, show)
		},
	}
}

// The orders of a list of timers.
const orderSet, orderDue = "set", "due"

const setHelp = "only of this set: see schedules apply"

// list lists page by page, up to the last page or the limit.
func (c *timerChoice) list(
	ctx context.Context, d *Desk, empty string, rowOf func(store.Row) any, show func(any) error,
) (End, error) {
	end := End{Empty: empty}
	page := store.Page{Start: c.after, UpTo: c.upTo, Limit: store.MaxLimit}
	page.ByDue = c.order == orderDue && c.state == string(timer.Pending)
	f := c.filter()
	for shown := 0; ; {
		if c.limit > 0 {
			page.Limit = min(store.MaxLimit, c.limit-shown)
		}
		l, err := d.Timers.List(ctx, f, page)
		if err != nil {
			return End{}, err
		}
		for _, r := range l.Timers {
			if err := show(rowOf(r)); err != nil {
				return End{}, err
			}
		}
		end.Answer = l
		shown += len(l.Timers)
		page.Start, page.UpTo = l.Next, l.UpTo
		if l.Partial {
			end.Notes = []string{"not all timers were read: choose a target"}
		}
		if l.Next == 0 {
			return end, nil
		}
		if page.ByDue {
			f.DueFrom = l.NextDue
		}
		if d.OnePage || c.limit > 0 && shown >= c.limit {
			end.Next = map[string]string{"after": fmt.Sprint(l.Next)}
			if page.ByDue {
				end.Next["due_after"] = l.NextDue.Format(time.RFC3339Nano)
			}
			return end, nil
		}
	}
}

// timersTimeout bounds the requests to JetStream about one timer, with their retries.
const timersTimeout = 5 * time.Second

// do carries out a change of one timer, within timersTimeout. After a refused request, the outcome unknown has the
// reason.
func (d *Desk) do(ctx context.Context, c change.Change) (change.Answer, error) {
	limited, cancel := context.WithTimeout(ctx, timersTimeout)
	defer cancel()
	answer, err := d.Timers.Do(limited, c)
	if refused := inspect.RefusalOf(ctx); refused != nil && (err != nil || answer.Outcome == timer.Unknown) {
		return answer, refused
	}
	return answer, err
}

// read reads the state of a timer, within timersTimeout.
func (d *Desk) read(ctx context.Context, key, target string) (timer.State, error) {
	limited, cancel := context.WithTimeout(ctx, timersTimeout)
	defer cancel()
	return d.Timers.Read(limited, key, target)
}

var errNoSchedule = errors.New("there is no such schedule")

// checkName checks the name of a schedule.
func (c *timerChoice) checkName() error {
	if isScheduleName(c.key) {
		return nil
	}
	if problem := entry.CheckKey(c.key); problem != nil {
		return invalid("%s", problem.Sentence)
	}
	return nil
}

// findTarget sets the target to that of the only schedule with the name. A schedule in nats-server's format needs none.
func (c *timerChoice) findTarget(ctx context.Context, d *Desk) error {
	if isScheduleName(c.key) || c.target != "" {
		return nil
	}
	var targets []string
	for row, err := range d.Timers.ListRecurring(ctx, store.Filter{Key: c.key}) {
		if inspect.RefusalOf(ctx) != nil {
			return invalid("this user may not read the stream of timers, and the target of the schedule %s is in that "+
				"stream: set --target, to ask a broker", c.key)
		}
		if err != nil {
			return err
		}
		targets = append(targets, row.Target)
	}
	switch len(targets) {
	case 0:
		return errNoSchedule
	case 1:
		c.target = targets[0]
		return nil
	}
	slices.Sort(targets)
	return invalid("there are schedules %s for several targets: set --target %s", c.key,
		text.Sentence(strings.Join(targets, ", or --target ")))
}

func (c *timerChoice) absent(err error) (End, error) {
	if !errors.Is(err, errNoSchedule) {
		return End{}, err
	}
	answer := change.Answer{Outcome: timer.NotFound, Key: c.key, Target: c.target, At: time.Now().UTC()}
	return End{Answer: answer, Empty: fmt.Sprintf("there is no schedule %s: not_found", c.key),
		Exit: OutcomeError{timer.NotFound}}, nil
}
