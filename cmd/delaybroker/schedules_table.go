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

// tableFlags are the flags for the times of a schedule.
type tableFlags struct {
	every, cron, zone, first, missed, jitter string
	last                                     time.Time
	rounds                                   int
}

func (o *tableFlags) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.every, "every", "", "interval: 15m, 1h30m; at least 1s")
	f.StringVar(&o.cron, "cron", "", "cron expression: '0 3 * * *', six fields with seconds, @daily")
	f.StringVar(&o.zone, "tz", "", "with --cron: the time zone, such as Europe/Berlin (default: UTC)")
	f.StringVar(&o.first, "first", "", "time of the first round, and phase of --every: a duration from now, or a time")
	f.IntVar(&o.rounds, "rounds", 0, "maximum number of rounds")
	momentFlag(f, &o.last, "last", "no round after this time: RFC 3339")
	f.StringVar(&o.missed, "missed", "", "policy for missed rounds: skip, one (default) or all")
	f.StringVar(&o.jitter, "jitter", "", "maximum random delay of each round: 5m")
	addCompletion(c, "missed", string(timetable.Skip), string(timetable.One), string(timetable.All))
}

// values returns the values of the flags, and the requested time of the first round, or zero.
func (o tableFlags) values(now time.Time) (w timetable.Words, first time.Time, err error) {
	w = timetable.Words{Every: o.every, Cron: o.cron, Zone: o.zone, Jitter: o.jitter, Missed: o.missed, Last: o.last}
	if o.rounds != 0 {
		w.Rounds = strconv.Itoa(o.rounds)
	}
	if d, bad := levels.ParseDuration(o.first); bad == nil {
		first = now.Add(d)
	} else if o.first != "" {
		first, err = parseTime("--first", o.first)
	}
	return w, first, err
}

// table returns the times of the flags, and the requested time of the first round.
func (o tableFlags) table(now time.Time) (timetable.Table, time.Time, error) {
	w, first, err := o.values(now)
	if err != nil {
		return timetable.Table{}, first, err
	}
	t, err := timetable.Parse(w)
	if parseErr, ok := errors.AsType[*timetable.Error](err); ok {
		flag := parseErr.Word
		if flag == "zone" {
			flag = "tz"
		}
		return t, first, fmt.Errorf("%w: --%s: %s", errUsage, flag, parseErr.Sentence)
	}
	return t, first, nil
}

// addTo adds the flags to the header of a set.
func (o tableFlags) addTo(header nats.Header) error {
	if _, _, err := o.table(time.Time{}); err != nil { // checks only the syntax; the server gets a duration as such
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
