package capacity

import (
	"strconv"
	"time"

	"delaybroker/levels"
)

// A Load is the load of one or several fleets. A fleet is the brokers that share one set of streams.
type Load struct {
	Rate   float64       `json:"rate"`       // plain messages per second
	Timers float64       `json:"timers"`     // named timers set per second, none of them cancelled
	Delay  time.Duration `json:"delay_ns"`   // delay of messages and timers
	Series float64       `json:"series"`     // number of recurring timers
	Every  time.Duration `json:"every_ns"`   // interval between two rounds of a series
	Bytes  float64       `json:"body_bytes"` // size of the body, with the client's own headers

	Fleets   int           `json:"fleets"` // they divide the plain messages evenly; one has all timers and series
	Replicas int           `json:"replicas"`
	Streams  int           `json:"streams"` // of each fleet
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
	maxBytes    = 64 << 20 // max_payload is at most max_pending, by default 64 MiB
	maxReplicas = 5
	maxStorage  = 1 << 60 // bytes of memory or disk
	maxCores    = 4096
	minEvery    = time.Second
)

// A problem is an invalid value of a load.
type problem struct{ Field, Value, Want string }

// Check returns all problems of a load.
func (l Load) Check() (problems []problem) {
	checkNumber := func(field string, n, low, high float64) {
		if !(n >= low && n <= high) { // written in this form because it refuses NaN
			problems = append(problems, problem{field, number(n), number(low) + " to " + number(high)})
		}
	}
	checkDuration := func(field string, d, low, high time.Duration) {
		if d < low || d > high {
			problems = append(problems, problem{field, levels.FormatDuration(d),
				levels.FormatDuration(low) + " to " + levels.FormatDuration(high)})
		}
	}
	checkNumber("rate", l.Rate, 0, maxRate)
	checkNumber("timers", l.Timers, 0, maxRate)
	checkNumber("series", l.Series, 0, maxSeries)
	checkNumber("bytes", l.Bytes, 0, maxBytes)
	checkNumber("fleets", float64(l.Fleets), 1, MaxFleets)
	checkNumber("replicas", float64(l.Replicas), 1, maxReplicas)
	checkDuration("delay", l.Delay, 0, maxDelay)
	if l.Series > 0 || l.Every != 0 {
		checkDuration("every", l.Every, minEvery, maxDelay)
	}
	if l.Series == 0 && l.Every != 0 {
		problems = append(problems, problem{"series", "0", "1 or more with --every"})
	}
	if l.Rate == 0 && l.Timers == 0 && l.Series == 0 {
		problems = append(problems, problem{"rate", "0", "more than 0, or a value for --timers or --series"})
	}
	checkNumber("server-memory", l.Server.Memory, 1<<20, maxStorage)
	checkNumber("server-disk", l.Server.Disk, 1<<20, maxStorage)
	checkNumber("server-cores", l.Server.Cores, 1, maxCores)
	return problems
}

func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// path returns the names of the lanes that a plain message passes: its level, or the intake and a chain of levels. The
// name of the intake is empty.
func (l Load) path() []string {
	for _, level := range l.Ladder.Levels() {
		if level.Delay == l.Delay {
			return []string{level.Name}
		}
	}
	return append([]string{""}, l.chain(l.Delay)...)
}

// markerPath returns the levels that the marker of a timer passes, at least one.
func (l Load) markerPath(delay time.Duration) []string {
	if path := l.chain(delay); len(path) > 0 {
		return path
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

// markerDelay returns the time from the set of a timer until its marker is sent: see package timer.
func markerDelay(delay time.Duration) time.Duration { return min(delay/2, 10*time.Second) }
