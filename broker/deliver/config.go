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
	Counts       *Counts       // counts the results; made by NewCounts from Limits.ByTarget; if nil, New makes it
	ReplyTimeout time.Duration // the time for which mode request waits for the service's reply
	// Ours reports whether a stream is the broker's own, which acknowledges no delivery. Nil means that no stream is.
	Ours func(stream string) bool
	// Window and WindowBytes bound the outstanding deliveries, and so the share of each group of targets. They should be
	// as large as the memory of a lane. A value that is too small to share is raised to the smallest sufficient value.
	// The defaults are DefaultWindow and DefaultWindowBytes.
	Window      int
	WindowBytes int
	Log         *slog.Logger
}

// Bounds of Config.
const (
	DefaultWindow      = 32 << 10
	DefaultWindowBytes = 32 << 20

	// The minima keep a share large enough for core subscribers: their silence counts as the answer after 50 ms, so a
	// group of them takes at most twenty times its share in a second.
	minWindow      = 2 << 10
	minWindowBytes = 2 << 20
)

// window is the number of messages, and of their bytes, that may be outstanding.
func (c Config) window() (messages, bytes int) {
	return max(cmp.Or(c.Window, DefaultWindow), minWindow),
		max(cmp.Or(c.WindowBytes, DefaultWindowBytes), minWindowBytes)
}
