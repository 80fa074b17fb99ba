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

// figuresRecord is the JSON of the stored figures. A step replaces the map and the slices, and never changes them.
type figuresRecord struct {
	Active  string               `json:"active"` // the instance that stored them
	Hour    history.Series       `json:"hour"`
	Day     history.Series       `json:"day"`
	Targets []stats.TargetAnswer `json:"targets"` // inherited counts and own counts together
	Lanes   map[string][]uint64  `json:"lanes"`   // pending messages at the latest steps, by stream: see stats.Recent
	Marks   []stats.Mark         `json:"marks"`
}

// figures are the figures of the fleet that no history has: the targets, the lanes and the marks.
type figures struct {
	mu        sync.Mutex    // guards the fields below
	latest    figuresRecord // as stored last, without Hour and Day; zero before the first step
	inherited []stats.TargetCount
	own       []stats.TargetCount // the counts of this instance at the last step
	at        time.Time           // time of the last step as the active instance; zero on a stand-by
	paused    []string            // patterns paused at the last step
}

// count adds a step of the active instance.
func (f *figures) count(now time.Time, id string, s Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	interval := now.Sub(f.at)
	if f.at.IsZero() { // this instance has just become active
		interval = 0
		f.inherited = stats.SubtractTargets(countsOf(f.latest.Targets), f.own)
		if f.latest.Active != "" {
			f.mark(now, fmt.Sprintf("%s took over from %s", id, f.latest.Active))
		}
	}
	before := f.latest.Targets
	f.latest.Targets = stats.InheritTargets(f.inherited, stats.TargetsSince(s.Targets, f.own, interval))
	stats.ContinueTargets(f.latest.Targets, before, interval)
	if interval > 0 { // the lanes of an instance that has just become active are not counted yet
		lanes := make(map[string][]uint64, len(s.Lanes))
		for _, l := range s.Lanes {
			lanes[l.Stream] = stats.Recent(f.latest.Lanes[l.Stream], l.Pending)
		}
		f.latest.Lanes = lanes
	}
	f.own, f.at, f.latest.Active = s.Targets, now, id
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
	marks := append(slices.Clone(f.latest.Marks), stats.Mark{At: at.UTC(), Text: text})
	marks = slices.DeleteFunc(marks, func(m stats.Mark) bool { return at.Sub(m.At) > markAge })
	f.latest.Marks = marks[max(0, len(marks)-maxMarks):]
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
	f.latest = r
	f.latest.Hour, f.latest.Day = history.Series{}, history.Series{}
}

// record returns the latest figures, without Hour and Day.
func (f *figures) record() figuresRecord {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.latest
}

func countsOf(targets []stats.TargetAnswer) []stats.TargetCount {
	var counts []stats.TargetCount
	for _, t := range targets {
		counts = append(counts, t.TargetCount)
	}
	return counts
}
