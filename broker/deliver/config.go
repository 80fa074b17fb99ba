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
	Counts       *Counts       // of the results, made with the rates by target; may be nil
	ReplyTimeout time.Duration // of mode request
	// Ours reports whether a stream is the broker's own: such a stream acknowledges no delivery. Nil means that none is.
	Ours func(stream string) bool
	// Window and WindowBytes bound the deliveries that are outstanding, and so the share of each group of targets. They
	// should be as large as the memory of a lane. A window that is too small to share is raised to the smallest one that
	// is large enough. The defaults are DefaultWindow and DefaultWindowBytes.
	Window      int
	WindowBytes int
	Log         *slog.Logger
}

// Bounds of Config.
const (
	DefaultWindow      = 32 << 10
	DefaultWindowBytes = 32 << 20

	// Silence counts as the answer of core subscribers after 50 ms. So a group of core subscribers takes at most twenty
	// times its share in a second.
	minWindow      = 2 << 10
	minWindowBytes = 2 << 20
)

// window is the number of messages, and of their bytes, that may be outstanding.
func (c Config) window() (messages, bytes int) {
	return max(cmp.Or(c.Window, DefaultWindow), minWindow),
		max(cmp.Or(c.WindowBytes, DefaultWindowBytes), minWindowBytes)
}
