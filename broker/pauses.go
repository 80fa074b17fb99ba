package broker

import (
	"context"
	"time"

	"delaybroker/broker/deliver"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/pause"
)

// haltTimeout is how long an instance that learns of a pause waits for the results of what it has sent. A target that
// answers nothing may be the reason for the pause.
const haltTimeout = 2 * time.Second

// pausing applies the list of pauses to this instance.
type pausing struct {
	*pause.Keeper
	deliverer *deliver.Deliverer     // set by Run
	logged    map[string]pause.State // of the pauses that were logged; belongs to applyPauses
}

// newKeeper makes the keeper of the list of pauses.
func (b *Broker) newKeeper() *pause.Keeper {
	cfg := pause.Config{
		Store: pause.Store{
			Conn: b.conns.Control, API: b.cfg.APIPrefix, Names: b.names, Keys: b.keys.Policy.Keys,
		},
		Apply: b.applyPauses, Log: b.log,
		Count: func(ctx context.Context) (uint64, error) {
			ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
			defer cancel()
			sample, err := b.jetstream.Sample(ctx, b.names.PausedStream())
			return sample.Messages, err
		},
	}
	if b.cfg.Provision {
		cfg.Create = b.streams.CreatePaused
	}
	return pause.NewKeeper(cfg)
}

// applyPauses stops deliveries to paused targets. Decisions go by the list already. It returns when all that was
// sent before has reached its server and, but for silent targets, has been answered.
func (b *Broker) applyPauses(ctx context.Context, l *pause.List) {
	b.logPauses(l)
	if len(l.Present()) == 0 {
		b.pauses.deliverer.Halt(ctx, nil)
		return
	}
	halting, cancel := context.WithTimeout(ctx, haltTimeout)
	defer cancel()
	b.pauses.deliverer.Halt(halting, l.Stops)
	flushing, cancelFlush := context.WithTimeout(ctx, haltTimeout)
	defer cancelFlush()
	if err := b.conns.Deliver.FlushWithContext(flushing); err != nil {
		b.log.Debug("flushing deliveries to targets that are paused now", "err", err)
	}
}

// logPauses logs changes. The end of a pause that was over before this instance learned of it is no change.
func (b *Broker) logPauses(l *pause.List) {
	for _, p := range l.Pauses {
		last, known := b.pauses.logged[p.ID]
		if last == p.State {
			continue
		}
		b.pauses.logged[p.ID] = p.State
		switch p.State {
		case pause.Paused:
			b.log.Info("a target is paused: its messages wait", "pattern", p.Pattern, "since", p.Since)
		case pause.Resuming:
			b.log.Info("a target is resumed: its messages go out", "pattern", p.Pattern)
		case pause.Over:
			if known {
				b.log.Info("the messages of a target that was paused are out", "pattern", p.Pattern)
			}
		}
	}
}
