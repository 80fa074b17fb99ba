package operation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"delaybroker/broker/deadletter"
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
)

// letterChoice has the parameters that select dead letters.
type letterChoice struct {
	period
	filter       deadletter.Filter
	before       time.Time // fixed by a plan: the letters must have become dead letters before this time
	reason, find string
	all          bool
}

func (c *letterChoice) params() []*Param {
	code := List(&c.filter.Codes, "code", "only with this code", OneOf(message.Codes()))
	code.Choices, code.Field, code.Hint = texts(message.Codes()), true, "undelivered"
	id := List(&c.filter.Sequences, "id", "only with this Delay-Id, or this number in dead ls", c.parseID)
	reason := word(&c.reason, "reason", "only with this reason; # matches a number")
	before := Parsed(&c.before, "before", "", ParseMoment)
	before.Hidden = true
	return slices.Concat([]*Param{code, pattern(&c.filter.Target), reason}, c.period.params("stored"),
		[]*Param{id, before})
}

// parseID parses the number of a letter. It adds a Delay-Id to the filter itself, and returns zero.
func (c *letterChoice) parseID(text string) (uint64, error) {
	if n, err := strconv.ParseUint(text, 10, 63); err == nil && n > 0 {
		return n, nil
	}
	id, err := message.ParseID(text)
	if err != nil {
		return 0, fmt.Errorf("want a number, or a %w", err)
	}
	c.filter.IDs = append(c.filter.IDs, id)
	return 0, nil
}

// period has the parameters of an interval in the past.
type period struct{ since, until inspect.Bound }

func (p *period) params(what string) []*Param {
	return []*Param{
		ago(&p.since, "since", "only "+what+" at this time (RFC 3339) or later, or at most this long ago (2h)"),
		ago(&p.until, "until", "only "+what+" before this time, or longer ago than this"),
	}
}

func (p *period) check() error {
	now := time.Now() // two durations have the same order at each time
	if since, until := p.since.Time(now), p.until.Time(now); !since.IsZero() && !until.IsZero() && !since.Before(until) {
		return invalid("--since is not before --until")
	}
	return nil
}

// check requires a choice.
func (c *letterChoice) check() error {
	isEmpty := c.filter.SelectsAll() && c.reason == "" && c.since.IsZero() && c.until.IsZero()
	switch {
	case isEmpty && !c.all:
		return invalid("want --code, --target, --reason, --since, --until, --id, or --all")
	case !isEmpty && c.all:
		return invalid("--all excludes --code, --target, --reason, --since, --until and --id")
	}
	return c.period.check()
}

// open opens the dead letters. Durations in the choice count back from the server's time.
func (c *letterChoice) open(ctx context.Context, d *Desk) (*inspect.Letters, deadletter.Filter, error) {
	letters, err := d.Letters(ctx)
	if err != nil {
		return nil, c.filter, err
	}
	f := c.filter
	f.Sequences = slices.DeleteFunc(slices.Clone(f.Sequences), func(n uint64) bool { return n == 0 }) // Delay-Ids
	f.Since, f.Until = c.since.Time(letters.Opened), c.until.Time(letters.Opened)
	if !c.before.IsZero() && (f.Until.IsZero() || c.before.Before(f.Until)) {
		f.Until = c.before
	}
	return letters, f, nil
}

// keep reports whether a letter has the reason and the text of the choice. The text is a Delay-Id or its beginning up
// to a hyphen, a Nats-Msg-Id, a pattern of targets, or a part of the reason.
func (c *letterChoice) keep(l deadletter.Letter) bool {
	reason := inspect.Reason(l)
	return (c.reason == "" || c.reason == reason || c.reason == inspect.ReasonGroup(l)) &&
		(c.find == "" || c.find == l.ID || c.find == l.MsgID || strings.HasPrefix(l.ID, c.find+"-") ||
			message.Match(c.find, l.Target) || strings.Contains(reason, c.find))
}

// readsAll reports whether a list must read each letter to know which match.
func (c *letterChoice) readsAll(f deadletter.Filter) bool {
	return c.reason+c.find+f.Target != "" || !f.Since.IsZero() || !f.Until.IsZero() || len(f.IDs)+len(f.Sequences) > 0
}

func (c *letterChoice) nothing(f deadletter.Filter) string {
	if f.SelectsAll() && c.reason+c.find == "" {
		return "no dead letters"
	}
	return "no matching dead letters"
}

func listLetters(b Bounds) *Use {
	var c letterChoice
	var by []string
	var limit int
	const each = "letter"
	properties := []string{inspect.ByCode, inspect.ByTarget, inspect.ByReason}
	group := List(&by, "by", "count the letters by some of code, target and reason, or list each letter",
		OneOf(append(properties, each)))
	group.Choices = append(properties, each)
	find := word(&c.find, "find", "only with this text: a part of the reason, a Delay-Id, a Nats-Msg-Id, or a target")
	find.Field, find.Hint = true, "Id, Nats-Msg-Id or reason"
	u := &Use{Params: append(c.params(), find, group, b.rows(&limit)), Check: c.period.check}
	u.Look = func(ctx context.Context, d *Desk, show func(any) error) (End, error) {
		letters, f, err := c.open(ctx, d)
		if err != nil {
			return End{}, err
		}
		grouped := len(by) == 0 && d.Terminal && c.find == "" && len(f.IDs)+len(f.Sequences) == 0
		if grouped {
			by = []string{inspect.ByReason}
		}
		var tooLarge []string
		if d.Terminal { // a note for people; without an answer, there is none
			lanes, _ := d.Lanes(ctx, 0)
			tooLarge = tooLargeLines(lanes.TooLarge())
		}
		if len(by) == 0 || slices.Contains(by, each) {
			end, err := c.list(ctx, d, letters, f, limit, show)
			end.Notes = append(end.Notes, tooLarge...)
			return end, err
		}
		u.Columns = slices.DeleteFunc(slices.Clone(groupColumns), func(column Column) bool {
			return slices.Contains(properties, column.Name) && !slices.Contains(by, column.Name) ||
				column.Kind == Targets && slices.Contains(by, inspect.ByTarget)
		})
		end, err := c.count(ctx, d, letters, f, by, limit, show)
		end.Notes = append(end.Notes, tooLarge...)
		if grouped {
			end.Notes = append(end.Notes, "--by letter lists each letter")
		}
		return end, err
	}
	return u
}

func (c *letterChoice) list(
	ctx context.Context, d *Desk, letters *inspect.Letters, f deadletter.Filter, limit int, show func(any) error,
) (End, error) {
	listed, matching := 0, 0
	var selected uint64 // number of letters that the server has selected for the query
	q := deadletter.Query{Filter: f, HeadersOnly: true, Progress: func(read, total uint64) {
		selected = total
		d.progress(read, total)
	}}
	for l, err := range letters.List(ctx, q) {
		if err != nil {
			return End{}, err
		}
		if !c.keep(l) {
			continue
		}
		if matching++; limit > 0 && listed == limit {
			if !c.readsAll(f) {
				matching = int(selected) // the server has counted the matching letters, so no further letter is read
				break
			}
			if d.Brief {
				break
			}
			continue
		}
		listed++
		if err := show(letterOf(l, d)); err != nil {
			return End{}, err
		}
	}
	end := End{Empty: c.nothing(f)}
	switch {
	case matching > listed && d.Brief && c.readsAll(f):
		end.Notes = []string{"there are more dead letters: choose a time, or use the command"}
	case matching > listed:
		end.Notes = []string{fmt.Sprintf("%d of %d dead letters; --limit shows more, --by code,target,reason counts them",
			listed, matching)}
	case listed > 0:
		end.Notes = []string{english.Plural(listed, "dead letter", "")}
	}
	return end, nil
}

// count counts letters. With a deadline, it stops some time before, and returns what it has counted.
func (c *letterChoice) count(
	ctx context.Context, d *Desk, letters *inspect.Letters, f deadletter.Filter, by []string, limit int,
	show func(any) error,
) (End, error) {
	counting, cancel := ctx, context.CancelFunc(func() {})
	if deadline, ok := ctx.Deadline(); ok {
		counting, cancel = context.WithTimeout(ctx, time.Until(deadline)*7/10)
	}
	defer cancel()
	counted, err := letters.Count(counting, f, by, c.keep, d.progress)
	partial := err != nil && ctx.Err() == nil && errors.Is(counting.Err(), context.DeadlineExceeded)
	if err != nil && !partial {
		return End{}, err
	}
	if err := showAll(counted.Groups, limit, show); err != nil {
		return End{}, err
	}
	note := english.Plural(counted.Letters, "dead letter", "") + " in " + english.Plural(len(counted.Groups), "group", "")
	if limit > 0 && len(counted.Groups) > limit {
		note += fmt.Sprintf(", the first %d shown; --limit 0 shows all", limit)
	}
	if partial {
		note += "; the count is incomplete, because counting took too long"
	}
	return End{Value: map[string]any{"letters": counted.Letters, "groups": len(counted.Groups), "partial": partial},
		Notes: []string{note}, Empty: c.nothing(f)}, nil
}

func showLetter(Bounds) *Use {
	var c letterChoice
	id := c.params()[5]
	id.Help = "the Delay-Id of the letter, or its number in dead ls"
	return &Use{
		Params: []*Param{id},
		Check: func() error {
			if len(c.filter.IDs)+len(c.filter.Sequences) == 0 {
				return invalid("want the Delay-Id or the number of a dead letter")
			}
			return nil
		},
		Look: func(ctx context.Context, d *Desk, show func(any) error) (End, error) {
			letters, f, err := c.open(ctx, d)
			if err != nil {
				return End{}, err
			}
			shown := 0
			for l, err := range letters.List(ctx, deadletter.Query{Filter: f, Progress: d.progress}) {
				v := letterOf(l, d)
				v.Refusals = l.Refusals()
				if err = cmp.Or(err, show(v)); err != nil {
					return End{}, err
				}
				shown++
			}
			end := End{Empty: "there is no such dead letter: it may have been resent or removed"}
			if shown == 0 {
				end.Exit = errNotFound
			}
			return end, nil
		},
	}
}
