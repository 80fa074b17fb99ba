package pause

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
)

// read reads the record, and adopts a newer list. If the record is missing, or older than the present list, read writes
// the present list back: the stream was purged or deleted, or a change could not be stored.
func (k *Keeper) read(ctx context.Context) error {
	result, err := k.cfg.Store.Read(ctx)
	k.hasRead = k.hasRead || err == nil || errors.Is(err, jetstream.ErrStreamNotFound)
	list := k.List()
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		k.parked.Store(0)
		if len(list.Present()) == 0 {
			return nil
		}
		if k.cfg.Create == nil {
			return err
		}
		if err := k.cfg.Create(ctx); err != nil {
			return err
		}
		result, err = k.cfg.Store.Read(ctx)
	}
	if err != nil {
		return err
	}
	k.logUnopened(result, list)
	if result.List != nil {
		defer k.noteRead(result.List)
	}
	switch {
	case list == nil && result.List == nil:
		k.writeFirst(ctx, result)
	case result.List != nil && (list == nil || result.List.Version > list.Version):
		k.adopt(result.List)
	case result.List != nil && list != nil && result.List.Version == list.Version:
		k.adopt(result.List)
		if result.untidy() {
			if err := k.cfg.Store.tidy(ctx, result); err != nil {
				return err
			}
		}
	case result.List != nil && k.yield(result.List):
	case list != nil && (result.List == nil || result.List.Version < list.Version):
		switch _, err := k.cfg.Store.Write(ctx, list, result); {
		case err == nil:
			k.stored(list)
		case !errors.Is(err, ErrConflict):
			return err
		}
	}
	k.reseal(ctx, result)
	if len(k.List().Present()) == 0 {
		k.parked.Store(0)
		return nil
	}
	n, err := k.cfg.Count(ctx)
	if err == nil {
		k.parked.Store(n - min(n, 1)) // the record does not count
	}
	return err
}

// logUnopened logs that there is a list that this instance cannot open.
func (k *Keeper) logUnopened(result readResult, list *List) {
	if len(result.UnopenedList.Present()) == 0 {
		return
	}
	const problem = "the list of paused targets is sealed with a secret that DELAY_SECRET does not name; "
	consequence := "its targets stay paused until an operator resumes them"
	if list != nil {
		consequence = "this instance keeps its own list, and writes it back"
	}
	k.rateLog.Log(slog.LevelError, problem+consequence,
		"stream", k.cfg.Store.Names.PausedStream(), "patterns", result.UnopenedList.Patterns())
}

// writeFirst stores a first list if there is no list that can be opened. The first list has the pauses of the unopened
// lists: a message that waits too long is a smaller fault than a message that is sent to a stopped target. From then on
// there is a list that can be opened, and forged lists have no effect.
func (k *Keeper) writeFirst(ctx context.Context, result readResult) {
	first := &List{Version: 1}
	if len(result.UnopenedList.Present()) > 0 {
		first = result.UnopenedList.pauseAll(time.Now())
		k.adopt(first)
	}
	if _, err := k.cfg.Store.Write(ctx, first, result); err != nil && !errors.Is(err, ErrConflict) && ctx.Err() == nil {
		k.rateLog.Log(slog.LevelWarn, "a first list of paused targets cannot be stored; will retry", "err", err)
	}
}

// reseal stores the list again, as its next version, if the record's key is not the first key. Otherwise the list would
// be lost when an operator removes the record's key. While instances differ about the first key, each of them reseals
// at most once per idleInterval.
func (k *Keeper) reseal(ctx context.Context, result readResult) {
	list := k.List()
	if result.Key != message.LaterKey || list == nil || list.Version != result.List.Version ||
		!k.resealTime.IsZero() && time.Since(k.resealTime) < idleInterval {
		return
	}
	next := &List{Version: list.Version + 1, Pauses: list.Pauses}
	switch _, err := k.cfg.Store.Write(ctx, next, result); {
	case err == nil:
		k.resealTime = time.Now()
		k.adopt(next)
	case !errors.Is(err, ErrConflict) && ctx.Err() == nil:
		k.rateLog.Log(slog.LevelWarn, "the list of paused targets is still sealed with an earlier secret; will retry",
			"err", err)
	}
}
