package journal

import (
	"cmp"
	"slices"
	"time"
)

const (
	// If the running instances are unknown, an instance without a batch for deadAfter counts as killed.
	deadAfter = 2*heartbeatInterval + 30*time.Second
	// DoubtAfter is the time without a batch after which, in the same case, an instance may have been killed.
	DoubtAfter = heartbeatInterval + time.Second
	// MaxStoreDelay is the maximum time from a delivery until its record is stored, if the stream works. The broker waits
	// for refusals by core subscribers, and then for further records of the batch.
	MaxStoreDelay = time.Second
	// maxHoles is the maximum number of holes in a report, apart from the hole before the oldest message.
	maxHoles = 100
	// maxSummaries is the maximum number of summaries that a search keeps in memory.
	maxSummaries = 1000
)

// Report describes how complete the result of a search is. All times are by the servers' clocks.
type Report struct {
	SearchedAt  time.Time     // time at which the search began
	OldestBatch time.Time     // time at which the stream's first message was stored; zero if there is none
	MaxAge      time.Duration // maximum time for which a record is kept; zero without a limit
	Bytes       uint64        // size of the stream

	ReadRecords uint64 // number of records read
	Found       int    // number of records selected
	ContinueAt  Place  // position of the first selected record beyond Query.Limit; zero if there is none

	Holes            []Hole // at most maxHoles and the hole before the first message
	MoreHoles        int    // number of further holes
	UnprovenMessages int    // number of messages without a valid seal that the search read
	Duplicates       int    // number of batches that were copies of earlier batches
}

// Complete reports whether the result has every record that the query selects from Query.From on. Only the instances
// that keep a journal count.
func (r Report) Complete() bool { return len(r.Holes) == 0 && r.ContinueAt.Sequence == 0 }

// Hole is an interval in which records are missing, or may be missing.
type Hole struct {
	Instance string // the instance whose records are missing; empty for all
	From, To time.Time
	Records  int // number of missing records; zero if it is unknown
	Reason   string
}

// start is one start of an instance.
type start struct{ instance, token string }

// summary has the facts about the batches of one start that later batches and the end of a search need.
type summary struct {
	number        uint64    // number of the last batch
	lastStored    time.Time // time at which the last batch was stored
	completeUntil time.Time // completeUntil of the last batch
	end           bool      // the last batch marks the end, after a clean stop
	gapEnd        time.Time // end of the last interval after lastStored in which no instance could write; zero for none
}

// summaries has the summaries of the starts of which a search has read a batch, at most maxSummaries.
type summaries struct {
	byStart    map[start]*summary
	lastStored time.Time // time at which the last batch was stored, or an upper bound if it was skipped; zero for none
}

func newSummaries() summaries { return summaries{byStart: make(map[start]*summary)} }

// addBatch processes a batch. It calls hole for each hole before the batch, and reports whether the batch is new. The
// batch is a copy if a batch of its start with this number or a higher number was read before.
func (r *summaries) addBatch(h head, storedAt time.Time, hole func(Hole)) bool {
	key := start{h.Instance, h.Start}
	current := r.byStart[key]
	if current != nil && h.Number <= current.number {
		return false
	}
	r.recordGap(h.Number == 1, storedAt, hole)
	if current != nil && h.Previous > current.number {
		hole(Hole{Instance: h.Instance, From: current.completeUntil, To: storedAt,
			Reason: "batches were removed, or a server lost them"})
	}
	if l := h.Lost; l != nil {
		hole(Hole{Instance: h.Instance, From: timeOf(l.First), To: timeOf(l.Last), Records: l.Records,
			Reason: "dropped: the journal's stream stored nothing, or too little"})
	}
	r.lastStored = storedAt
	if current == nil {
		r.makeRoom(hole)
		current = new(summary)
		r.byStart[key] = current
	}
	*current = summary{number: h.Number, lastStored: storedAt, completeUntil: h.completeUntil(storedAt), end: h.End}
	return true
}

// recordGap processes the interval between the previous batch and a batch that was stored at storedAt. If the interval
// is longer than the interval of heartbeats, no instance ran, or none could write. An instance that wrote before and
// after the interval reports its own losses. An instance that never writes again may have run in the interval, unless
// it was killed long before the interval. First means that the batch is the first one of its start.
func (r *summaries) recordGap(first bool, storedAt time.Time, hole func(Hole)) {
	gap := storedAt.Sub(r.lastStored)
	if r.lastStored.IsZero() || gap <= heartbeatInterval+flushInterval {
		return
	}
	if first {
		if gap > deadAfter {
			hole(Hole{From: r.lastStored, To: storedAt, Reason: "no instance wrote: none ran, or none kept a journal"})
		}
		return
	}
	for _, s := range r.byStart {
		silence := r.lastStored.Sub(cmp.Or(s.gapEnd, s.lastStored)) // time in which the instance could write, and did not
		if !s.end && silence <= deadAfter {
			s.gapEnd = storedAt
		}
	}
}

// makeRoom drops the summary whose last batch is the oldest, if there are maxSummaries summaries.
func (r *summaries) makeRoom(hole func(Hole)) {
	if len(r.byStart) < maxSummaries {
		return
	}
	var oldest start
	for key, s := range r.byStart {
		if o := r.byStart[oldest]; o == nil || s.lastStored.Before(o.lastStored) {
			oldest = key
		}
	}
	if s := r.byStart[oldest]; !s.end {
		hole(s.lastHole(oldest.instance))
	}
	delete(r.byStart, oldest)
}

// completeUntil returns the time up to which all records of the start are in this batch or in an earlier batch. The
// batch was stored at storedAt.
func (h head) completeUntil(storedAt time.Time) time.Time {
	if lastRecord := timeOf(h.Last); h.Records > 0 && lastRecord.Before(storedAt) {
		storedAt = lastRecord
	}
	return storedAt.Add(-MaxStoreDelay)
}

// reportSilent reports the holes at the end of a search: of instances that have written nothing for too long, of
// instances with records that are not stored yet, and of the interval in which no instance wrote. States are the states
// of the running writers shortly before now. States is nil if these states are unknown.
func (r *summaries) reportSilent(now time.Time, states []State, hole func(Hole)) {
	var holes []Hole
	for key, s := range r.byStart {
		isRunning := slices.ContainsFunc(states, func(s State) bool { return s.belongsTo(key) })
		silence := now.Sub(s.lastStored)
		switch {
		case s.end, isRunning:
		case silence > deadAfter:
			holes = append(holes, s.lastHole(key.instance))
		case states != nil && silence > MaxStoreDelay:
			h := s.lastHole(key.instance)
			h.Reason = "the instance does not answer, and its last records may be missing: it was killed or lost its connection"
			if h.To.After(now) {
				h.To = now
			}
			holes = append(holes, h)
		case states == nil && silence > DoubtAfter:
			holes = append(holes, Hole{Instance: key.instance, From: s.completeUntil, To: now,
				Reason: "unknown: the instance wrote nothing for a minute"})
		}
	}
	for _, s := range states {
		if s.UnstoredRecords > 0 && now.Sub(s.Since) > MaxStoreDelay {
			holes = append(holes, Hole{Instance: s.Instance, From: s.Since, To: now, Records: s.UnstoredRecords,
				Reason: "not stored yet: the journal's stream stores nothing, or too little"})
		}
	}
	slices.SortFunc(holes, func(a, b Hole) int {
		return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Instance, b.Instance))
	})
	for _, h := range holes {
		hole(h)
	}
	if !r.lastStored.IsZero() && now.Sub(r.lastStored) > deadAfter {
		hole(Hole{From: r.lastStored, To: now, Reason: "no instance wrote: none ran, or none keeps a journal"})
	}
}

// lastHole returns the hole after the last batch of a start that did not end cleanly. A running instance writes at
// least once a minute.
func (s *summary) lastHole(instance string) Hole {
	h := Hole{Instance: instance, From: s.completeUntil, To: s.lastStored.Add(heartbeatInterval + flushInterval),
		Reason: "the last records of the instance may be missing: it was killed or lost its connection"}
	if s.gapEnd.After(h.To) {
		h.To = s.gapEnd
	}
	return h
}
