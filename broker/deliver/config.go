package deliver

import (
	"cmp"
	"log/slog"
	"time"
)

// Config says how targets are reached.
type Config struct {
	Modes        Modes
	Limits       Limits
	Counts       *Counts       // of the results, made with the rates by target; nil for counts that nobody reads
	ReplyTimeout time.Duration // of mode request
	// Ours tells the broker's own streams, which acknowledge no delivery. Nil knows none.
	Ours func(stream string) bool
	// Window and WindowBytes bound the deliveries that are outstanding, and so the share of each group of targets. They
	// should be as large as what a lane may hold. A window too small to share is replaced by the smallest that is large
	// enough. The defaults are DefaultWindow and DefaultWindowBytes.
	Window      int
	WindowBytes int
	Log         *slog.Logger
}

// Bounds of Config.
const (
	DefaultWindow      = 32 << 10
	DefaultWindowBytes = 32 << 20

	// Silence counts as the answer of core subscribers after 50 ms. So a group of them takes no more than twenty times
	// its share in a second.
	minWindow      = 2 << 10
	minWindowBytes = 2 << 20
)

// window is the number of messages, and of their bytes, that may be outstanding.
func (c Config) window() (messages, bytes int) {
	return max(cmp.Or(c.Window, DefaultWindow), minWindow),
		max(cmp.Or(c.WindowBytes, DefaultWindowBytes), minWindowBytes)
}
