package page

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"delaybroker/broker/inspect"
	"delaybroker/broker/pause"
	"delaybroker/broker/text"
)

func planPause(ctx context.Context, i *inspect.Inspector, a *action) (plan, error) {
	if err := checkPattern(a.Target); err != nil {
		return plan{}, err
	}
	a.Shell = shell{a.Verb}.words(a.Target).String()
	pauses, err := i.Pauses(ctx)
	if err != nil {
		return plan{}, err
	}
	index := slices.IndexFunc(pauses, func(p inspect.Pause) bool { return p.Pattern == a.Target })
	if a.Verb == "resume" {
		if index < 0 || pauses[index].State != pause.Paused {
			return plan{Sentence: "the pattern is not paused: resume the exact pattern of a pause"}, nil
		}
		a.Count = 1
		return plan{Sentence: fmt.Sprintf("resume %s: %s now waiting will be delivered", a.Target,
			formatCount(*pauses[index].Waiting, "message"))}, nil
	}
	if index >= 0 && pauses[index].State == pause.Paused {
		return plan{Sentence: "the pattern is already paused"}, nil
	}
	f, err := i.Forecast(ctx, inspect.ForecastQuery{
		Length: time.Hour, Step: time.Hour, Target: a.Target, MaxRead: aheadRead,
	})
	if err != nil {
		return plan{}, err
	}
	a.Count = 1
	return plan{Sentence: fmt.Sprintf("pause %s: %s now pending, and all later messages, will wait when due",
		a.Target, formatCount(f.Pending, "message"))}, nil
}

func actPause(ctx context.Context, i *inspect.Inspector, a action) (result, error) {
	change, state := i.Pause, "paused"
	if a.Verb == "resume" {
		change, state = i.Resume, "resumed: the waiting messages are delivered"
	}
	c, err := change(ctx, a.Target)
	if err != nil && !errors.Is(err, inspect.ErrUnconfirmed) {
		return result{}, err
	}
	r := result{
		Sentence: fmt.Sprintf("%s is %s; confirmed by %d of %s", a.Target, state, len(c.Confirmed),
			formatCount(uint64(len(c.Confirmed)+len(c.Unconfirmed)), "instance")),
		Good: err == nil && c.NotStored == "",
	}
	if c.NotStored != "" {
		r.Notes = append(r.Notes, "the change is not stored yet: "+text.Printable(c.NotStored, 300))
	}
	return r, nil
}
