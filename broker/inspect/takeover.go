package inspect

import "delaybroker/broker/dialect"

// TakeOver takes the schedules of a stream of the server's into the broker. Learn comes first: what it stores needs the
// brokers' seal.
func (i *Inspector) TakeOver(dry bool) dialect.TakeOver {
	timers := i.Timers()
	return dialect.TakeOver{
		Store:   dialect.Store{Policy: timers.Policy, Publish: timers.Publish, Entries: timers.Entries()},
		Grounds: i.cfg.Schedules, API: timers.API, Scan: timers.Scan, Dry: dry,
	}
}
