package inspect

import "delaybroker/broker/dialect"

// TakeOver takes the schedules of a stream of the server's into the broker. Learn comes first: what it stores needs the
// brokers' seal.
func (i *Inspector) TakeOver(dry bool) dialect.TakeOver {
	return dialect.TakeOver{Store: dialect.Store{Timers: i.Timers()}, Grounds: i.cfg.Schedules, Dry: dry}
}
