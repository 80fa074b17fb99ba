package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"delaybroker/broker/message"
	"delaybroker/broker/text"
	"delaybroker/broker/timer/timetable"
	"delaybroker/levels"
)

// tableFlags are the flags of a time table.
type tableFlags struct {
	every, cron, zone, first, missed, jitter string
	last                                     time.Time
	rounds                                   int
}

func (o *tableFlags) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.every, "every", "", "every so often: 15m, 1h30m; at least 1s")
	f.StringVar(&o.cron, "cron", "", "at the times of a cron expression: '0 3 * * *', six fields with seconds, @daily")
	f.StringVar(&o.zone, "tz", "", "with --cron: whose clocks count, as in Europe/Berlin (default: UTC)")
	f.StringVar(&o.first, "first", "", "the first round: after a duration, or at a time, with which --every keeps in step")
	f.IntVar(&o.rounds, "rounds", 0, "so many rounds, and no more")
	momentFlag(f, &o.last, "last", "no round after this time: RFC 3339")
	f.StringVar(&o.missed, "missed", "", "rounds that no broker was there for: skip, one (default) or all")
	f.StringVar(&o.jitter, "jitter", "", "each round is late by a part of this, another part each time: 5m")
	completes(c, "missed", string(timetable.Skip), string(timetable.One), string(timetable.All))
}

// words returns the fields of the table that the flags give, and the requested time of the first round; zero if they
// give none.
func (o tableFlags) words(now time.Time) (w timetable.Words, first time.Time, err error) {
	w = timetable.Words{Every: o.every, Cron: o.cron, Zone: o.zone, Jitter: o.jitter, Missed: o.missed, Last: o.last}
	if o.rounds != 0 {
		w.Rounds = strconv.Itoa(o.rounds)
	}
	if d, bad := levels.ParseDuration(o.first); bad == nil {
		first = now.Add(d)
	} else if o.first != "" {
		first, err = zoned("--first", o.first)
	}
	return w, first, err
}

// table returns the time table of the flags, and the requested time of its first round.
func (o tableFlags) table(now time.Time) (timetable.Table, time.Time, error) {
	w, first, err := o.words(now)
	if err != nil {
		return timetable.Table{}, first, err
	}
	t, err := timetable.Parse(w)
	if wrong, ok := errors.AsType[*timetable.Error](err); ok {
		flag := wrong.Word
		if flag == "zone" {
			flag = "tz"
		}
		return t, first, fmt.Errorf("%w: --%s: %s", errUsage, flag, wrong.Sentence)
	}
	return t, first, nil
}

// into adds the flags to the header of a set.
func (o tableFlags) into(header nats.Header) error {
	if _, _, err := o.table(time.Time{}); err != nil { // only the syntax: a duration goes to the server as one
		return err
	}
	words := map[string]string{
		message.HeaderEvery: o.every, message.HeaderCron: o.cron, message.HeaderZone: o.zone,
		message.HeaderLast: text.Moment(o.last), message.HeaderMissed: o.missed, message.HeaderJitter: o.jitter,
	}
	if o.rounds != 0 {
		words[message.HeaderRounds] = strconv.Itoa(o.rounds)
	}
	if _, bad := levels.ParseDuration(o.first); bad == nil {
		words[message.HeaderFor] = o.first // by the server's clock
	} else {
		words[message.HeaderUntil] = o.first
	}
	for name, value := range words {
		if value != "" {
			header.Set(name, value)
		}
	}
	return nil
}
