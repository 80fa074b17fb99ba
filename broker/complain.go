package broker

import (
	"context"
	"log/slog"
	"time"
)

// complainEvery is how often a lane says the same thing. What happens to one message happens to thousands.
const complainEvery = 10 * time.Second

// complaint is one thing a lane has to say.
type complaint struct {
	said time.Time
	more int // since then, unsaid
}

// complain logs a message, with how often it was left unsaid since the last time.
func (w *worker) complain(now time.Time, level slog.Level, msg string, args ...any) {
	c := w.complaints[msg]
	if now.Sub(c.said) < complainEvery {
		c.more++
		w.complaints[msg] = c
		return
	}
	if c.more > 0 {
		args = append(args, "more", c.more)
	}
	w.log.Log(context.Background(), level, msg, args...)
	w.complaints[msg] = complaint{said: now}
}
