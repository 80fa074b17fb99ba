package page

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/store"
)

const (
	// defaultRows is the default number of rows in a table, and maxRows the maximum.
	defaultRows, maxRows = 50, 200
	// maxRuns is the maximum number of runs in the view of a schedule.
	maxRuns = 10
	// maxRead is the maximum number of messages whose headers a question reads.
	maxRead = 100_000
)

// pending lists the waiting messages in the order of their due times.
func (p *Page) pending(ctx context.Context, i *inspect.Inspector, v url.Values) (any, error) {
	query := inspect.PendingQuery{MaxRead: maxRead, Find: v.Get("find")}
	line := shell{"pending", "ls"}
	var err error
	if query.Target, err = parseTarget(v); err != nil {
		return nil, err
	}
	if query.Limit, err = parseLimit(v); err != nil {
		return nil, err
	}
	if query.MinDue, err = parseBound(v, "due_after"); err != nil {
		return nil, err
	}
	if query.MaxDue, err = parseBound(v, "due_before"); err != nil {
		return nil, err
	}
	if c := v.Get("cursor"); c != "" {
		if query.Cursor, err = inspect.ParseCursor(c); err != nil {
			return nil, err
		}
	}
	line = line.flag("--target", query.Target).flag("--due-after", v.Get("due_after")).
		flag("--due-before", v.Get("due_before")).flag("--cursor", v.Get("cursor"))
	if query.Find != "" {
		line = nil // no command has this filter
	}
	l, err := i.Pending(ctx, query)
	return answer{line.String(), struct {
		Rows []inspect.PendingMessage `json:"rows"`
		inspect.ListEnd
	}{append([]inspect.PendingMessage{}, l.Messages...), l.ListEnd}}, err
}

// where finds one message by its Delay-Id, or by its stream and sequence.
func (p *Page) where(ctx context.Context, i *inspect.Inspector, v url.Values) (any, error) {
	ref, err := inspect.ParseMessageRef(v.Get("id"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRequest, err)
	}
	w, err := i.Where(ctx, ref, maxRead, func(uint64, uint64) {})
	return answer{shell{"where"}.words(v.Get("id")).String(), w}, err
}

// timerFilter parses the filter of timers, and appends the filter's flags to the shell command.
func timerFilter(v url.Values, line shell) (store.Filter, shell, error) {
	t, err := parseTarget(v)
	if err != nil {
		return store.Filter{}, line, err
	}
	f := store.Filter{Key: v.Get("key")}
	switch kind := v.Get("kind"); kind {
	case "", "once":
		f.OneShot = true
	case "all":
	default:
		return f, line, fmt.Errorf("%w: kind %q: want once or all", errRequest, kind)
	}
	if t != "" {
		f.Targets = []string{t}
	}
	now := time.Now()
	if f.DueFrom, err = parseTime(v, "due_after", now, false); err != nil {
		return f, line, err
	}
	if f.DueTo, err = parseTime(v, "due_before", now, false); err != nil {
		return f, line, err
	}
	line = line.flag("--target", t).flag("--key", f.Key)
	for _, due := range []struct {
		flag string
		at   time.Time
	}{{"--due-from", f.DueFrom}, {"--due-to", f.DueTo}} {
		if !due.at.IsZero() {
			line = line.flag(due.flag, due.at.UTC().Format(time.RFC3339))
		}
	}
	if f.OneShot {
		line = append(line, "--once")
	}
	return f, line, nil
}

// timerPage parses the size of a page of timers, and the sequence after which the page begins.
func timerPage(v url.Values) (page store.Page, err error) {
	if page.Limit, err = parseLimit(v); err != nil {
		return page, err
	}
	if page.Start, err = strconv.ParseUint(cmp.Or(v.Get("after"), "0"), 10, 63); err != nil {
		err = fmt.Errorf("%w: after %q: want a number", errRequest, v.Get("after"))
	}
	return page, err
}

// timers lists named timers in the order in which they were set.
func (p *Page) timers(ctx context.Context, i *inspect.Inspector, v url.Values) (any, error) {
	f, line, err := timerFilter(v, shell{"timers", "ls"})
	if err != nil {
		return nil, err
	}
	state := cmp.Or(v.Get("state"), string(timer.Pending))
	line = line.flag("--state", state)
	if f.State = timer.Outcome(state); state == "all" {
		f.State = ""
	}
	page, err := timerPage(v)
	if err != nil {
		return nil, err
	}
	if page.Start > 0 {
		line = line.flag("--after", strconv.FormatUint(page.Start, 10))
	}
	l, err := i.Timers().List(ctx, f, page)
	return answer{line.String(), l}, err
}

// timer returns the state of one timer. For a schedule, it also returns the newest runs.
func (p *Page) timer(ctx context.Context, i *inspect.Inspector, v url.Values) (any, error) {
	get := store.Change{Request: timer.Request{Verb: timer.Get}, Key: v.Get("key"), Target: v.Get("target")}
	view := struct {
		store.Answer
		*inspect.Runs        // the newest runs of a schedule; nil if they cannot be read
		Trouble       string `json:"trouble,omitempty"` // why the runs cannot be read
	}{}
	var err error
	line := shell{"timers", "show"}.words(get.Key, get.Target)
	if view.Answer, err = doTimer(ctx, i, get); err != nil || view.Recurring == nil {
		return answer{line.String(), view}, err
	}
	line = shell{"schedules", "show"}.flag("--target", get.Target).words(get.Key)
	runs, err := i.Runs(ctx, view.Recurring.Series, maxRuns)
	if err == nil {
		view.Runs = &runs
	} else {
		view.Trouble = text.Printable(err.Error(), 300)
	}
	return answer{line.String(), view}, nil
}

func (p *Page) retrying(ctx context.Context, i *inspect.Inspector, v url.Values) (any, error) {
	query := inspect.RetryQuery{MaxRead: maxRead, Progress: func(uint64, uint64) {}}
	var err error
	if query.Target, err = parseTarget(v); err != nil {
		return nil, err
	}
	r, err := i.Retrying(ctx, query)
	if len(r.Groups) > maxRows {
		r.Groups = r.Groups[:maxRows]
	}
	return answer{shell{"retrying"}.flag("--target", query.Target).String(), r}, err
}
