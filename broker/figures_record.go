package broker

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"delaybroker/broker/stats"
	"delaybroker/broker/stats/history"
)

const (
	maxMarks = 100 // the oldest of further marks are dropped
	markAge  = 24 * time.Hour
)

// figuresRecord is the JSON of the stored figures.
type figuresRecord struct {
	Active  string               `json:"active"` // the instance that stored them
	Hour    history.Series       `json:"hour"`
	Day     history.Series       `json:"day"`
	Targets []stats.TargetAnswer `json:"targets"`
	Lanes   map[string][]uint64  `json:"lanes"`
	Marks   []stats.Mark         `json:"marks"`
}

// figures are the figures of the fleet that no history has: the targets, the lanes and the marks.
type figures struct {
	mu        sync.Mutex // guards the fields below
	active    string     // the instance that has stored the figures last; empty if none did
	inherited []stats.TargetCount
	targets   []stats.TargetAnswer // inherited counts and own counts together; nil before the first step
	lanes     map[string][]uint64  // pending messages at the latest steps, by stream: see stats.Recent
	own       []stats.TargetCount  // the counts of this instance at the last step
	at        time.Time            // time of the last step as the active instance; zero on a stand-by
	paused    []string             // patterns paused at the last step
	marks     []stats.Mark
}

// count adds a step of the active instance.
func (f *figures) count(now time.Time, id string, s Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	interval := now.Sub(f.at)
	if f.at.IsZero() { // this instance has just become active
		interval = 0
		f.inherited = stats.SubtractTargets(countsOf(f.targets), f.own)
		if f.active != "" {
			f.mark(now, fmt.Sprintf("%s took over from %s", id, f.active))
		}
	}
	before := f.targets
	f.targets = stats.InheritTargets(f.inherited, stats.TargetsSince(s.Targets, f.own, interval))
	stats.ContinueTargets(f.targets, before, interval)
	if interval > 0 { // the lanes of an instance that has just become active are not counted yet
		lanes := make(map[string][]uint64, len(s.Lanes))
		for _, l := range s.Lanes {
			lanes[l.Stream] = stats.Recent(f.lanes[l.Stream], l.Pending)
		}
		f.lanes = lanes
	}
	f.own, f.at, f.active = s.Targets, now, id
	paused := []string{}
	for _, p := range s.Pauses {
		paused = append(paused, p.Pattern)
	}
	for _, p := range paused {
		if f.paused != nil && !slices.Contains(f.paused, p) {
			f.mark(now, "paused "+p)
		}
	}
	for _, p := range f.paused {
		if !slices.Contains(paused, p) {
			f.mark(now, "resumed "+p)
		}
	}
	f.paused = paused
}

// mark adds a mark. The caller holds mu.
func (f *figures) mark(at time.Time, text string) {
	f.marks = append(f.marks, stats.Mark{At: at.UTC(), Text: text})
	f.marks = slices.DeleteFunc(f.marks, func(m stats.Mark) bool { return at.Sub(m.At) > markAge })
	f.marks = f.marks[max(0, len(f.marks)-maxMarks):]
}

// standBy notes that this instance is not active, and its counts, which the figures of the active instance contain.
func (f *figures) standBy(s Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.own, f.at, f.paused = s.Targets, time.Time{}, nil
}

// inherit replaces the targets and the marks by those of the active instance.
func (f *figures) inherit(r figuresRecord) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.active, f.targets, f.lanes, f.marks = r.Active, r.Targets, r.Lanes, r.Marks
}

// record returns the figures to store.
func (f *figures) record(book *history.Book, now time.Time) figuresRecord {
	f.mu.Lock()
	defer f.mu.Unlock()
	return figuresRecord{
		Active: f.active, Hour: book.Hour(now), Day: book.Day(now), Targets: f.targets, Lanes: f.lanes, Marks: f.marks,
	}
}

func (f *figures) latestTargets() []stats.TargetAnswer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.targets
}

func (f *figures) latestLanes() map[string][]uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lanes // a step replaces the map, and never changes it
}

func (f *figures) latestMarks() []stats.Mark {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.marks
}

func countsOf(targets []stats.TargetAnswer) []stats.TargetCount {
	var counts []stats.TargetCount
	for _, t := range targets {
		counts = append(counts, t.TargetCount)
	}
	return counts
}
