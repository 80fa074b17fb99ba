package inspect

import "delaybroker/broker/timer/schedules"

// TakeOver returns the takeover of schedules from streams with the server's schedules. Call Learn first: the timers
// that it stores need the brokers' seal.
func (i *Inspector) TakeOver(dry bool) schedules.TakeOver {
	return schedules.TakeOver{Store: schedules.Store{Timers: i.Timers()}, Grounds: i.cfg.Schedules, Dry: dry}
}
