package client

import (
	"context"
	"strconv"
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/timer/timetable"
	"delaybroker/levels"
)

// Schedule sets a recurring named timer. The options must have [Key], and [Every] or [Cron]. The first round is at the
// next time of the timetable. For a first round at another time, call In or At with the same options. Receipt.Due is
// the due time of the first round, without jitter.
//
// The generation of a series changes with each round. So Cancel with the receipt's generation works only until the
// first round has fired. [Client.CancelAny] ends the series in any round.
func (c *Client) Schedule(ctx context.Context, target string, body []byte, opts ...Option) (Receipt, error) {
	return c.publish(ctx, address{target: target, schedule: true}, body, opts)
}

// Every makes a named timer recur at an interval of at least a second. The rounds do not drift, even if a round fires
// late.
func Every(interval time.Duration) Option {
	return set(message.HeaderEvery, levels.FormatDuration(interval))
}

// Cron makes a named timer recur at the times of a cron expression: five fields, six fields with the seconds before the
// others, or a name such as @daily. The zone is a name of the IANA database, such as Europe/Berlin, or empty for UTC.
// If the hours are fixed, a round at a local time that a clock change skips fires right after the gap, and a round at a
// local time that occurs twice fires once. Package timetable has the details.
func Cron(expression, zone string) Option {
	return func(o *options) {
		o.brokerHeader.Set(message.HeaderCron, expression)
		if zone != "" {
			o.brokerHeader.Set(message.HeaderZone, zone)
		}
	}
}

func (o *options) recurs() bool { return o.first(message.HeaderEvery, message.HeaderCron) != "" }

// Rounds limits a series to n rounds that fire.
func Rounds(n int) Option { return set(message.HeaderRounds, strconv.Itoa(n)) }

// LastRound ends a series: no round is planned for a time after t.
func LastRound(t time.Time) Option { return set(message.HeaderLast, formatTime(t)) }

// Jitter delays each round of a series by a different duration below limit. So series with the same timetable do not
// fire at the same moment.
func Jitter(limit time.Duration) Option {
	return set(message.HeaderJitter, levels.FormatDuration(limit))
}

// Missed is the policy for missed rounds, which were due while the series was paused, or while no broker fired them.
type Missed = timetable.Missed

// The policies for missed rounds. The default is MissedOne.
const (
	MissedSkip = timetable.Skip // no missed round fires; the series continues with the next future round
	MissedOne  = timetable.One  // the first missed round fires late; the series continues with the next future round
	MissedAll  = timetable.All  // each missed round fires, in order
)

// MissedRounds sets the policy for missed rounds.
func MissedRounds(policy Missed) Option {
	return func(o *options) {
		if policy == "" {
			o.refuse("MissedRounds: want one of skip, one and all")
		}
		o.brokerHeader.Set(message.HeaderMissed, string(policy))
	}
}

// PauseAfter pauses a series when n of its rounds in a row have become dead letters. A delivered round ends the row,
// and so does [Client.Resume].
func PauseAfter(n int) Option { return set(message.HeaderPauseAfter, strconv.Itoa(n)) }
