package client

import (
	"context"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
	"delaybroker/broker/timetable"
	"delaybroker/levels"
)

// Schedule sets a named timer that recurs, with [Key] and [Every] or [Cron]: its first round is the next time of the
// table. In and At with the same options say when the first round is. Receipt.Due is the first round's.
//
// The generation of a series changes with each round. So Cancel with that of a receipt holds until the first round has
// fired, and [Client.CancelAny] ends the series whatever the round.
func (c *Client) Schedule(ctx context.Context, target string, body []byte, opts ...Option) (Receipt, error) {
	return c.now(ctx, ask{target: target, table: true}, body, opts)
}

// Every makes a named timer recur every so often, at least a second. It keeps its phase: no round drifts, however late
// the one before was.
func Every(interval time.Duration) Option {
	return recurs(message.HeaderEvery, levels.FormatDuration(interval))
}

// Cron makes a named timer recur at the times of a cron expression: five fields, six with seconds before them, or a
// name such as @daily. The zone is one of the IANA database, as in Europe/Berlin; empty for UTC. A time that a change
// of clocks skips runs when the clocks go on, and one that comes twice runs once.
func Cron(expression, zone string) Option {
	return func(o *options) {
		recurs(message.HeaderCron, expression)(o)
		if zone != "" {
			o.protocol.Set(message.HeaderZone, zone)
		}
	}
}

func recurs(header, value string) Option {
	return func(o *options) {
		o.timer.recurs = true
		o.protocol.Set(header, value)
	}
}

// Rounds is how many rounds of a series fire.
func Rounds(n int) Option {
	return func(o *options) { o.protocol.Set(message.HeaderRounds, strconv.Itoa(n)) }
}

// LastRound is the end of a series: no round is planned for later.
func LastRound(t time.Time) Option {
	return func(o *options) { o.protocol.Set(message.HeaderLast, t.UTC().Format(time.RFC3339Nano)) }
}

// Jitter makes each round of a series late by a part of this, another part each time: of many series with one table,
// not all fire at one moment.
func Jitter(most time.Duration) Option {
	return func(o *options) { o.protocol.Set(message.HeaderJitter, levels.FormatDuration(most)) }
}

// Missed is what becomes of rounds of a series that no broker was there for.
type Missed = timetable.Missed

// What becomes of them. Without MissedRounds it is MissedOne.
const (
	MissedSkip = timetable.Skip // nothing: the next round that is still to come
	MissedOne  = timetable.One  // one fires late, and then the next that is still to come
	MissedAll  = timetable.All  // each fires, in order
)

// MissedRounds says what becomes of rounds that no broker was there for.
func MissedRounds(what Missed) Option {
	return func(o *options) {
		if what == "" {
			o.refuse("MissedRounds: want one of skip, one and all")
		}
		o.protocol.Set(message.HeaderMissed, string(what))
	}
}

// ofSeries are the headers that say that a timer recurs, or how.
var ofSeries = []string{
	message.HeaderEvery, message.HeaderCron, message.HeaderRounds, message.HeaderLast, message.HeaderJitter,
	message.HeaderMissed,
}

// ofTable is the first of the headers of a table that is there; empty for none.
func ofTable(h nats.Header) string {
	for _, name := range ofSeries {
		if _, ok := h[name]; ok {
			return name
		}
	}
	return ""
}
