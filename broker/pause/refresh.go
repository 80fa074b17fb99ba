package pause

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
)

// read reads the record. It writes the present list back if the record is older or missing, because the stream was
// purged or deleted, or a change could not be stored.
func (k *Keeper) read(ctx context.Context) error {
	read, err := k.cfg.Store.Read(ctx)
	known := k.List()
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		k.waiting.Store(0)
		if len(known.Present()) == 0 {
			return nil
		}
		if k.cfg.Create == nil {
			return err
		}
		if err := k.cfg.Create(ctx); err != nil {
			return err
		}
		read, err = k.cfg.Store.Read(ctx)
	}
	if err != nil {
		return err
	}
	k.logUnopened(read, known)
	switch {
	case known == nil && read.List == nil:
		k.writeFirst(ctx, read)
	case read.List != nil && (known == nil || read.List.Version > known.Version):
		k.adopt(read.List)
	case known != nil && (read.List == nil || read.List.Version < known.Version):
		if _, err := k.cfg.Store.Write(ctx, known, read); err != nil && !errors.Is(err, ErrConflict) {
			return err
		}
	case read.untidy():
		if err := k.cfg.Store.Tidy(ctx, read); err != nil {
			return err
		}
	}
	k.reseal(ctx, read)
	if len(k.List().Present()) == 0 {
		k.waiting.Store(0)
		return nil
	}
	n, err := k.cfg.Count(ctx)
	if err == nil {
		k.waiting.Store(n - min(n, 1)) // the record does not count
	}
	return err
}

// logUnopened logs that there is a list that this instance cannot open.
func (k *Keeper) logUnopened(read ReadResult, known *List) {
	if len(read.Unopened.Present()) == 0 {
		return
	}
	const problem = "the list of paused targets is sealed with a secret that DELAY_SECRET does not name; "
	next := "its targets stay paused until an operator resumes them"
	if known != nil {
		next = "this instance keeps its own list, and writes it back"
	}
	k.notes.Log(slog.LevelError, problem+next,
		"stream", k.cfg.Store.Names.PausedStream(), "patterns", read.Unopened.Patterns())
}

// writeFirst stores a first list if there is no list that can be opened. The first list has the pauses of the unopened
// lists: a message that waits too long is a smaller fault than a message that is sent to a stopped target. From then on
// there is a list that can be opened, and forged lists have no effect.
func (k *Keeper) writeFirst(ctx context.Context, read ReadResult) {
	first := &List{Version: 1}
	if len(read.Unopened.Present()) > 0 {
		first = read.Unopened.allPaused(time.Now())
		k.adopt(first)
	}
	if _, err := k.cfg.Store.Write(ctx, first, read); err != nil && !errors.Is(err, ErrConflict) && ctx.Err() == nil {
		k.notes.Log(slog.LevelWarn, "a first list of paused targets cannot be stored; will retry", "err", err)
	}
}

// reseal stores the list again, as its next version, if the record's key is not the first key, because an operator may
// remove the record's key. While instances differ about the first key, each of them reseals at most once per
// idleInterval.
func (k *Keeper) reseal(ctx context.Context, read ReadResult) {
	known := k.List()
	if read.Key != message.LaterKey || known == nil || known.Version != read.List.Version ||
		!k.resealed.IsZero() && time.Since(k.resealed) < idleInterval {
		return
	}
	next := known.nextVersion()
	switch _, err := k.cfg.Store.Write(ctx, next, read); {
	case err == nil:
		k.resealed = time.Now()
		k.adopt(next)
	case !errors.Is(err, ErrConflict) && ctx.Err() == nil:
		k.notes.Log(slog.LevelWarn, "the list of paused targets is still sealed with an earlier secret; will retry",
			"err", err)
	}
}
