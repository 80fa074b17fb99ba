// Package ratelog keeps one thing from filling the log. What happens to one message happens to thousands, and an outage
// fails several times a second.
//
// It measures by the clock of this process, and never by that of a server: a new leader whose clock is an hour behind
// would silence the log for an hour.
package ratelog

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Every is how often a Logger repeats a message at most.
const Every = 10 * time.Second

// A Limit lets something happen at most once in an interval, and counts how often it did not. The zero Limit is ready,
// and may be used by several goroutines.
type Limit struct {
	mu         sync.Mutex // guards what follows
	last       time.Time  // when it was allowed; zero means never
	suppressed int        // since then
}

// Allow reports whether the interval has passed since it last returned true. It returns how many calls were refused
// meanwhile.
func (l *Limit) Allow(interval time.Duration) (suppressed int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.last.IsZero() && time.Since(l.last) < interval {
		l.suppressed++
		return 0, false
	}
	suppressed, l.suppressed, l.last = l.suppressed, 0, time.Now()
	return suppressed, true
}

// Reset has the next call allowed. It reports whether one was allowed since the last reset.
func (l *Limit) Reset() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	used := !l.last.IsZero()
	l.last, l.suppressed = time.Time{}, 0
	return used
}

// A Logger logs each message at most once in the interval [Every], and then with the number of times it was left out,
// as "more". It tells messages apart by their text alone, so the text must not hold what varies: it remembers every
// one. It may be used by several goroutines.
type Logger struct {
	log *slog.Logger

	mu     sync.Mutex // guards limits
	limits map[string]*Limit
}

// New returns a Logger that writes to log.
func New(log *slog.Logger) *Logger {
	return &Logger{log: log, limits: make(map[string]*Limit)}
}

// Log logs msg with the attributes of args, unless it did so just now.
func (l *Logger) Log(level slog.Level, msg string, args ...any) {
	suppressed, ok := l.limit(msg).Allow(Every)
	if !ok {
		return
	}
	if suppressed > 0 {
		args = append(args[:len(args):len(args)], "more", suppressed)
	}
	l.log.Log(context.Background(), level, msg, args...)
}

// Reset has msg logged at the next call: what it was about is over.
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
