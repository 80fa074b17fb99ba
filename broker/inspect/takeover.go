package inspect

import "delaybroker/broker/timer/schedules"

// TakeOver takes the schedules of a stream of the server's into the broker. Learn comes first: what it stores needs the
// brokers' seal.
func (i *Inspector) TakeOver(dry bool) schedules.TakeOver {
	return schedules.TakeOver{Store: schedules.Store{Timers: i.Timers()}, Grounds: i.cfg.Schedules, Dry: dry}
}
