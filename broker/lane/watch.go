package lane

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"
)

// minWatch and maxWatch bound the interval at which a reader at the tail of a lane on a single server asks the leader
// whether the consumer lacks a message. The interval is a quarter of the lane's delay, so that no message is due before
// the reader has asked.
const minWatch, maxWatch = 5 * time.Second, time.Minute

// Trouble returns why the lane is not read, or nil. It stays until a consumer has proved that it lacks no message: a
// new consumer alone proves nothing.
func (r *Reader) Trouble() error {
	if err := r.trouble.Load(); err != nil {
		return *err
	}
	return nil
}

// noteTrouble records why a consumer is replaced. It logs only the first reason. The latest one stays, but a short loss
// of the connection hides no other reason: a link on which reads go unanswered is opened again and again.
func (r *Reader) noteTrouble(ctx context.Context, err error) {
	earlier := r.trouble.Load()
	if earlier == nil || !errors.Is(err, ErrOffline) {
		r.trouble.Store(&err)
	}
	if earlier != nil {
		return
	}
	level := slog.LevelInfo
	// The program that owns the connection also logs the loss of the connection.
	if errors.Is(err, ErrOffline) || strings.Contains(err.Error(), "Server Shutdown") {
		level = slog.LevelDebug
	}
	r.cfg.Log.Log(ctx, level, "reading the lane was interrupted; creating another consumer", "stream", r.cfg.Stream,
		"reason", err, "after", r.knowledge.lastRead.Sequence)
}

// endTrouble ends the trouble: the consumer has sent a message, or has proved that it lacks none.
func (r *Reader) endTrouble() { r.trouble.Store(nil) }

// watchInterval returns the interval at which the reader asks for lacking messages at the tail of the lane. Zero means
// never: in a cluster, the heartbeats do.
func (p *pull) watchInterval() time.Duration {
	if p.clustered {
		return 0
	}
	return max(minWatch, min(p.r.cfg.Delay/4, maxWatch))
}

// whyBehind returns ErrPaused if the consumer that lacks a message is paused, and otherwise ErrBehind.
func (p *pull) whyBehind(ctx context.Context) error {
	paused := false
	err := p.r.request(ctx, func(ctx context.Context) error {
		c, err := p.r.cfg.JetStream.Consumer(ctx, p.r.cfg.Stream, p.name)
		paused = err == nil && c.CachedInfo().Paused
		return err
	})
	if err == nil && paused {
		return ErrPaused
	}
	return ErrBehind
}
