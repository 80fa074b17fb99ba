// Package ratelog limits how often a log line is repeated. A problem with one message often occurs with thousands of
// messages, and during an outage an operation fails several times a second.
//
// The package uses the clock of this process. If it used a server's clock, a new leader whose clock is an hour behind
// would silence the log for an hour.
package ratelog

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Interval is the minimum interval between two lines of a Logger with the same message.
const Interval = 10 * time.Second

// A Limit allows an event at most once in an interval, and counts the suppressed events. The zero Limit is ready to
// use. It is safe for concurrent use.
type Limit struct {
	mu         sync.Mutex // guards the fields below
	lastTime   time.Time  // when an event was last allowed; zero means never
	suppressed int        // number of events that were suppressed since then
}

// Allow returns ok unless it has returned ok within the interval, with no Reset since then. With ok, suppressed is the
// number of calls since the previous ok that were not ok.
func (l *Limit) Allow(interval time.Duration) (suppressed int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.lastTime.IsZero() && time.Since(l.lastTime) < interval {
		l.suppressed++
		return 0, false
	}
	suppressed, l.suppressed, l.lastTime = l.suppressed, 0, time.Now()
	return suppressed, true
}

// Reset makes the next call of Allow return ok. It reports whether an event was allowed since the last Reset.
func (l *Limit) Reset() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	allowed := !l.lastTime.IsZero()
	l.lastTime, l.suppressed = time.Time{}, 0
	return allowed
}

// A Logger logs each message at most once in an interval, which is [Interval] unless the caller has another one. The
// attribute "more" is the number of lines with the message that were suppressed since its previous line. A Logger
// distinguishes messages only by their text and remembers every text, so the text must be constant. It is safe for
// concurrent use.
type Logger struct {
	log *slog.Logger

	mu     sync.Mutex // guards limits
	limits map[string]*Limit
}

// New returns a Logger that writes to log.
func New(log *slog.Logger) *Logger {
	return &Logger{log: log, limits: make(map[string]*Limit)}
}

// Log logs msg with the attributes of args, unless it has logged msg within the interval Interval.
func (l *Logger) Log(level slog.Level, msg string, args ...any) {
	l.LogEvery(Interval, level, msg, args...)
}

// LogEvery is like Log, with another interval.
func (l *Logger) LogEvery(interval time.Duration, level slog.Level, msg string, args ...any) {
	suppressed, ok := l.limit(msg).Allow(interval)
	if !ok {
		return
	}
	if suppressed > 0 {
		args = append(args[:len(args):len(args)], "more", suppressed)
	}
	l.log.Log(context.Background(), level, msg, args...)
}

// Reset makes the next call of Log with this msg log it. Call Reset when the problem that msg reports has ended.
func (l *Logger) Reset(msg string) { l.limit(msg).Reset() }

func (l *Logger) limit(msg string) *Limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := l.limits[msg]
	if limit == nil {
		limit = new(Limit)
		l.limits[msg] = limit
	}
	return limit
}
