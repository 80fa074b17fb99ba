package deliver

import (
	"cmp"
	"log/slog"
	"time"
)

// Config is the configuration of a Deliverer.
type Config struct {
	Modes        Modes
	Limits       Limits
	Counts       *Counts       // counts the results; the result of NewCounts(Limits.ByTarget), or nil: New makes one
	ReplyTimeout time.Duration // the timeout of a service's reply in mode request
	// Ours reports whether a stream is the broker's own, which acknowledges no delivery. Nil means that no stream is.
	Ours func(stream string) bool
	// Window and WindowBytes are the maximum number and bytes of outstanding deliveries. They should be as large as the
	// memory of a lane. A smaller value than the minimum is raised to the minimum. Zero means DefaultWindow and
	// DefaultWindowBytes.
	Window      int
	WindowBytes int
	Log         *slog.Logger
}

// Bounds of Config.
const (
	DefaultWindow      = 32 << 10
	DefaultWindowBytes = 32 << 20

	// The minima of Window and WindowBytes. They keep each share large enough for core subscribers: their silence counts
	// as the answer after 50 ms, so a group of core subscribers takes at most twenty times its share in a second.
	minWindow      = 2 << 10
	minWindowBytes = 2 << 20
)

func (c Config) window() (messages, bytes int) {
	return max(cmp.Or(c.Window, DefaultWindow), minWindow),
		max(cmp.Or(c.WindowBytes, DefaultWindowBytes), minWindowBytes)
}
