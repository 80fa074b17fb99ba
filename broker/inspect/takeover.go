package inspect

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/control"
	"delaybroker/broker/dialect"
	"delaybroker/broker/lane"
)

// TakeOver takes the schedules of a stream of the server's into the broker. Learn comes first: what it stores needs the
// brokers' seal.
func (i *Inspector) TakeOver(dry bool) dialect.TakeOver {
	timers := i.Timers()
	sample := func(ctx context.Context, stream string) (lane.Sample, error) {
		var info jetstream.StreamInfo
		if err := i.api.Ask(ctx, "STREAM.INFO."+stream, struct{}{}, &info); err != nil {
			return lane.Sample{}, err
		}
		return lane.SampleOf(&info, time.Now()), nil
	}
	return dialect.TakeOver{
		Store: dialect.Store{
			Policy: timers.Policy, Publish: timers.Publish,
			Entries: control.Entries{API: timers.API, Policy: timers.Policy, Sample: sample},
		},
		Grounds: i.cfg.Schedules, API: timers.API, Scan: timers.Scan, Dry: dry,
	}
}
