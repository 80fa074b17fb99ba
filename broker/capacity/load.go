package capacity

import (
	"strconv"
	"time"

	"delaybroker/levels"
)

// A Load is the load of one fleet of brokers.
type Load struct {
	Rate   float64       `json:"rate"`       // plain messages a second
	Timers float64       `json:"timers"`     // named timers set per second, none of them cancelled
	Delay  time.Duration `json:"delay_ns"`   // of messages and timers
	Series float64       `json:"series"`     // timers that recur
	Every  time.Duration `json:"every_ns"`   // from one round of a series to the next
	Bytes  float64       `json:"body_bytes"` // the body, with the client's own headers

	Replicas int           `json:"replicas"`
	Streams  int           `json:"streams"` // of the fleet
	Ladder   levels.Ladder `json:"-"`
	Server   Server        `json:"server"`
}

// A Server has the resources of one server. There are as many servers as replicas, and each has a copy of every stream.
type Server struct {
	Memory float64 `json:"memory_bytes"`
	Disk   float64 `json:"disk_bytes"`
	Cores  float64 `json:"cores"`
}

// The bounds of a Load.
const (
	maxRate     = 100_000_000     // per second
	maxSeries   = 100_000_000_000 // in total
	maxDelay    = 10 * 366 * 24 * time.Hour
	maxBytes    = 64 << 20 // nats-server's own bound on max_payload
	maxReplicas = 5
	maxRoom     = 1 << 60 // bytes
	maxCores    = 4096
	minEvery    = time.Second
)

// A Problem is an invalid value of a load.
type Problem struct{ Field, Value, Want string }

// Check returns all problems of a load.
func (l Load) Check() (all []Problem) {
	within := func(field string, n, low, high float64) {
		if !(n >= low && n <= high) { // so written, it refuses NaN
			all = append(all, Problem{field, number(n), number(low) + " to " + number(high)})
		}
	}
	lasts := func(field string, d, low, high time.Duration) {
		if d < low || d > high {
			all = append(all, Problem{field, levels.FormatDuration(d),
				levels.FormatDuration(low) + " to " + levels.FormatDuration(high)})
		}
	}
	within("rate", l.Rate, 0, maxRate)
	within("timers", l.Timers, 0, maxRate)
	within("series", l.Series, 0, maxSeries)
	within("bytes", l.Bytes, 0, maxBytes)
	within("replicas", float64(l.Replicas), 1, maxReplicas)
	lasts("delay", l.Delay, 0, maxDelay)
	if l.Series > 0 || l.Every != 0 {
		lasts("every", l.Every, minEvery, maxDelay)
	}
	if l.Series == 0 && l.Every != 0 {
		all = append(all, Problem{"series", "0", "1 or more beside every"})
	}
	if l.Rate == 0 && l.Timers == 0 && l.Series == 0 {
		all = append(all, Problem{"rate", "0", "1 or more of rate, timers or series"})
	}
	within("server-memory", l.Server.Memory, 1<<20, maxRoom)
	within("server-disk", l.Server.Disk, 1<<20, maxRoom)
	within("server-cores", l.Server.Cores, 1, maxCores)
	return all
}

func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// way returns the lanes that a plain message passes: its level, or the intake and a chain of levels. The intake has no
// name.
func (l Load) way() []string {
	for _, level := range l.Ladder.Levels() {
		if level.Delay == l.Delay {
			return []string{level.Name}
		}
	}
	return append([]string{""}, l.chain(l.Delay)...)
}

// markers returns the levels that the marker of a timer passes: at least one.
func (l Load) markers(delay time.Duration) []string {
	if way := l.chain(delay); len(way) > 0 {
		return way
	}
	return []string{l.Ladder.Levels()[0].Name}
}

func (l Load) chain(d time.Duration) (names []string) {
	hops, _ := l.Ladder.Chain(d)
	for _, level := range hops {
		names = append(names, level.Name)
	}
	return names
}

// rest returns how long a set waits before its marker is sent: see broker/timer.
func rest(delay time.Duration) time.Duration { return min(delay/2, 10*time.Second) }
