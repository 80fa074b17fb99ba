package deliver

import (
	"log/slog"
	"time"
)

// Config is the configuration of a Deliverer.
type Config struct {
	Modes        Modes
	Limits       Limits
	InProgress   InProgress
	Counts       *Counts       // NewCounts(Limits.ByTarget)
	ReplyTimeout time.Duration // the timeout of a service's reply in mode request
	// Ours reports whether a stream is one of the broker's own. No target is in such a stream, so in modes auto and
	// stream its acknowledgement does not count. A nil Ours is false for all streams.
	Ours func(stream string) bool
	// Window and WindowBytes are the maximum number and bytes of outstanding deliveries: see engine.Window. New raises a
	// smaller value to minWindow or minWindowBytes.
	Window      int
	WindowBytes int
	Log         *slog.Logger
}

// minWindow and minWindowBytes keep each share large enough for core subscribers. The silence of core subscribers
// counts as a delivery only after 50 ms, so their group takes at most twenty times its share in a second.
const (
	minWindow      = 2 << 10
	minWindowBytes = 2 << 20
)
