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

func (o *tableFlags) addFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.every, "every", "", "interval: 15m, 1h30m; at least 1s")
	f.StringVar(&o.cron, "cron", "", "cron expression: '0 3 * * *', six fields with seconds, @daily")
	f.StringVar(&o.zone, "tz", "", "with --cron: the time zone, such as Europe/Berlin (default: UTC)")
	f.StringVar(&o.first, "first", "",
		"time of the first round, from which --every counts: a duration from now, or a time (RFC 3339)")
	f.IntVar(&o.rounds, "rounds", 0, "maximum number of rounds; 0 for no maximum")
	addTimeFlag(f, &o.last, "last", "no round after this time (RFC 3339)")
	f.StringVar(&o.missed, "missed", "",
		"which missed rounds fire after an outage or a pause: skip (none), one (default) or all")
	f.StringVar(&o.jitter, "jitter", "", "delay each round by a part of this duration: 5m")
	addCompletion(c, "missed", string(timetable.Skip), string(timetable.One), string(timetable.All))
}

// table converts the flags to a timetable, and returns the requested time of the first round, or zero without --first.
func (o tableFlags) table(now time.Time) (t timetable.Table, first time.Time, err error) {
	if d, notDuration := levels.ParseDuration(o.first); notDuration == nil {
		first = now.Add(d)
	} else if o.first != "" {
		if first, err = parseTime("--first", o.first); err != nil {
			return t, first, err
		}
	}
	t, err = timetable.Parse(timetable.Settings{
		Every: o.every, Cron: o.cron, Zone: o.zone, Jitter: o.jitter, Missed: o.missed, Last: o.last, Rounds: o.roundsText(),
	})
	if parseErr, ok := errors.AsType[*timetable.Error](err); ok {
		flag := parseErr.Setting
		if flag == "zone" {
			flag = "tz"
		}
		return t, first, fmt.Errorf("%w: --%s: %s", errUsage, flag, parseErr.Sentence)
	}
	return t, first, nil
}

func (o tableFlags) roundsText() string {
	if o.rounds == 0 {
		return ""
	}
	return strconv.Itoa(o.rounds)
}

// addTo adds the flags to the header of a set.
func (o tableFlags) addTo(header nats.Header) error {
	if _, _, err := o.table(time.Time{}); err != nil { // checks only the syntax
		return err
	}
	words := map[string]string{
		message.HeaderEvery: o.every, message.HeaderCron: o.cron, message.HeaderZone: o.zone,
		message.HeaderLast: text.Moment(o.last), message.HeaderMissed: o.missed, message.HeaderJitter: o.jitter,
		message.HeaderRounds: o.roundsText(),
	}
	if _, notDuration := levels.ParseDuration(o.first); notDuration == nil {
		words[message.HeaderFor] = o.first // counts from the server's time
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
