package operation

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"

	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
)

var setOperations = []Operation{
	{
		Name: "timers set", Command: "pub", Noun: "timer", New: setTimer(false), Words: []string{"key", "target"},
		Endpoint: "set", Message: true, Hidden: true, Columns: AnswerColumns,
	},
	{
		Name: "schedules add", Noun: "schedule", New: setTimer(true), Words: []string{"name", "body"}, Least: 1,
		Usage: "NAME --target TARGET (--every DURATION | --cron EXPRESSION [--tz ZONE]) [BODY]", Columns: AnswerColumns,
		Short: "Add a schedule",
		Long: `Add a schedule: a message that is delivered to TARGET repeatedly. NAME is the key of its timer. The body is
read from stdin if BODY is -, or if BODY is missing and stdin is not a terminal.

If a schedule with that name and target exists, nothing is changed, and the exit code is 5. With --replace, the schedule
is replaced, and its rounds count from 1 again.

` + OutcomeCodes,
		Example: `  delaybroker schedules add nightly --cron '0 3 * * *' --tz Europe/Berlin --target reports.run '{"id":1}'
  delaybroker schedules add pulse --every 15m --target reports.pulse --missed skip --jitter 1m
  delaybroker schedules add trial --every 1d --first 2026-12-24T18:00:00Z --rounds 3 --target mail.send`,
	},
}

// setTimer returns the uses of a set of a timer, or of a schedule.
func setTimer(schedule bool) func(Bounds) *Use {
	return func(Bounds) *Use {
		var c timerChoice
		var t tableChoice
		w := change.Change{Call: timer.Call{Verb: timer.Set}, Header: message.Header{}}
		replace := false
		u := &Use{}
		if schedule {
			name := word(&c.key, "name", "the name of the schedule")
			target := word(&c.target, "target", "the subject to deliver to")
			u.Params = append(t.newParams(), name, target, flag(&replace, "replace", "replace an existing schedule"),
				word(&t.pause, "pause-after", "number of dead letters in a row that pause the schedule (default: never)"))
		} else {
			u.Params = append(c.name(), c.one()[1], Parsed(&w.Conditional, "if",
				"absent, or the generation that the message replaces", func(text string) (bool, error) {
					var err error
					if w.Generation, err = strconv.ParseUint(text, 10, 63); text != "absent" && (err != nil || w.Generation == 0) {
						return false, errors.New("want absent, or a generation")
					}
					return true, nil
				}))
		}
		u.Params = append(u.Params, Headers(w.Header, "header, as in 'Key: value'; may be repeated"),
			body(&w.Body, "the body"))
		u.Check = func() error {
			switch {
			case c.target == "":
				return invalidParam("target", "is missing: want the subject to deliver to")
			case schedule:
				return t.header(w.Header)
			}
			return nil
		}
		u.Act = func(ctx context.Context, d *Desk) (Result, error) {
			if c.token == "" { // a broker recognizes a set that this process has already made
				c.token = rand.Text()
			}
			w.Key, w.Target, w.ID = c.key, c.target, c.token
			w.Conditional = w.Conditional || schedule && !replace
			r, err := c.changeOne(ctx, d, w)
			if answer, _ := r.Row.(change.Answer); !schedule || err != nil || answer.Outcome != timer.Conflict {
				return r, err
			}
			// The last entry of an ended timer stays stored for a time, and is no schedule.
			s, err := d.read(ctx, w.Key, w.Target)
			if err != nil || !s.Ended() {
				return r, nil
			}
			w.Generation = s.Sequence
			return c.changeOne(ctx, d, w)
		}
		return u
	}
}

// Headers returns the parameter for headers of a message.
func Headers(into message.Header, help string) *Param {
	return &Param{Name: "header", Short: "H", Kind: "strings", Private: true, Help: help, set: func(text string) error {
		key, value, ok := strings.Cut(text, ":")
		if key = strings.TrimSpace(key); !ok || key == "" {
			return errors.New("want 'Key: value'")
		}
		into[key] = append(into[key], strings.TrimSpace(value))
		return nil
	}}
}

// body returns the parameter for the body of a message.
func body(into *[]byte, help string) *Param {
	return &Param{Name: "body", Kind: "string", Help: help + "; - reads it from stdin", Body: true,
		set: func(text string) error {
			*into = append([]byte{}, text...)
			return nil
		}}
}
