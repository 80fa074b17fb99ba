package broker

import (
	"context"
	"maps"
	"time"

	"delaybroker/broker/deliver"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/pause"
)

// haltTimeout is the maximum time for which an instance waits for the results of sent messages when their targets are
// paused. The time is short, because a paused target may be silent.
const haltTimeout = 2 * time.Second

// A pauseControl applies the list of pauses to this instance.
type pauseControl struct {
	*pause.Keeper
	deliverer    *deliver.Deliverer     // set by Run
	loggedStates map[string]pause.State // last logged state of each pause in the list; only for applyPauses
}

func (b *Broker) newKeeper() *pause.Keeper {
	cfg := pause.Config{
		Store: pause.Store{
			Conn: b.links.Control, API: b.cfg.APIPrefix, Names: b.names, Keys: b.keys.Policy.Keys,
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

// applyPauses makes the deliverer halt exactly the paused targets; the engine asks the Keeper itself. applyPauses then
// waits for the results of the messages that were sent to these targets, and then until the server has received all
// sent messages. Each of the two waits takes at most haltTimeout.
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
	if err := b.links.Deliver.FlushWithContext(flushing); err != nil {
		b.log.Debug("cannot flush the deliveries sent before a pause", "err", err)
	}
}

// logPauses logs the changes of pauses. It logs the end of a pause only if this instance has read the pause before its
// end.
func (b *Broker) logPauses(l *pause.List) {
	maps.DeleteFunc(b.pauses.loggedStates, func(id string, _ pause.State) bool {
		_, known := l.Get(id)
		return !known
	})
	for _, p := range l.Pauses {
		lastState, known := b.pauses.loggedStates[p.ID]
		if lastState == p.State {
			continue
		}
		b.pauses.loggedStates[p.ID] = p.State
		switch p.State {
		case pause.Paused:
			b.log.Info("targets are paused: their messages wait", "pattern", p.Pattern, "since", p.Since)
		case pause.Resuming:
			b.log.Info("targets are resumed: the broker delivers their waiting messages", "pattern", p.Pattern)
		case pause.Over, pause.Open:
			if known {
				b.log.Info("a pause has ended: no message is left in its lane", "pattern", p.Pattern)
			}
		}
	}
}
