package journal

import (
	"cmp"
	"slices"
	"time"
)

const (
	// deadAfter is the time without a batch after which an instance counts as killed.
	deadAfter = 2*heartbeatInterval + 30*time.Second
	// DoubtAfter is the time without a batch after which it is unknown whether an instance runs.
	DoubtAfter = heartbeatInterval + time.Second
	// maxStoreDelay is the maximum time from a delivery until its record is stored, if the stream works. The broker waits
	// for refusals by core subscribers, and then for further records of the batch.
	maxStoreDelay = time.Second
	// maxHoles is the maximum number of holes in a report.
	maxHoles = 100
	// maxRuns is the maximum number of runs that a search keeps in memory.
	maxRuns = 1000
)

// Report describes how complete the result of a search is. All times are by the servers' clocks.
type Report struct {
	SearchedAt  time.Time     // time at which the search began
	OldestBatch time.Time     // time at which the oldest batch was stored; zero if there is none
	MaxAge      time.Duration // time for which a record is kept; zero without a limit
	Bytes       uint64        // size of the journal

	Read       uint64 // number of records read
	Found      int    // number of records selected
	ContinueAt Place  // position at which the search reached its limit; zero if the search did not reach its limit

	Holes      []Hole // the holes, at most maxHoles
	MoreHoles  int    // number of further holes
	Unproven   int    // number of messages in the stream without a valid seal
	Duplicates int    // number of batches that were copies of earlier batches
}

// Complete reports whether the result has every message that ended in the interval of the query. Only the instances
// that keep a journal count.
func (r Report) Complete() bool { return len(r.Holes) == 0 && r.ContinueAt.Sequence == 0 }

// Hole is an interval in which records are missing, or may be missing.
type Hole struct {
	Instance string // the instance whose records are missing; empty for all
	From, To time.Time
	Records  int // number of dropped records; zero if it is unknown
	Why      string
}

// start is one start of an instance.
type start struct{ instance, token string }

// run summarizes the batches of one start.
type run struct {
	number uint64    // number of the last batch
	at     time.Time // time at which the last batch was stored
	from   time.Time // the batches read so far have all records before this time
	end    bool      // the last batch marks the end, after a clean stop
	until  time.Time // end of a later interval in which no instance wrote; zero if there is none
}

// runs are the runs of instances that a search has found.
type runs struct {
	all  map[start]*run
	last time.Time // time at which the last batch was stored; zero if there was none
}

func newRuns() runs { return runs{all: make(map[start]*run)} }

// addBatch processes a batch. It calls hole for each hole before the batch, and reports whether the batch is new. If a
// batch with the same number was read before, the batch is a copy.
func (r *runs) addBatch(h head, stored time.Time, hole func(Hole)) bool {
	key := start{h.Instance, h.Start}
	known := r.all[key]
	if known != nil && h.Number <= known.number {
		return false
	}
	r.recordGap(known, stored, hole)
	if known != nil && h.Previous > known.number {
		hole(Hole{Instance: h.Instance, From: known.from, To: stored, Why: "batches were removed, or a server lost them"})
	}
	if l := h.Lost; l != nil {
		hole(Hole{Instance: h.Instance, From: at(l.First), To: at(l.Last), Records: l.Records,
			Why: "dropped: the journal's stream stored nothing, or too little"})
	}
	r.last = stored
	if known == nil {
		r.makeRoom(hole)
		known = new(run)
		r.all[key] = known
	}
	*known = run{number: h.Number, at: stored, from: h.completeUntil(stored), end: h.End}
	return true
}

// recordGap processes the interval between the previous batch and a batch that was stored at the time stored. If the
// interval is longer than the interval of heartbeats, no instance could write in it. An instance that wrote before and
// after the interval reports its own losses. An instance that never writes again may have run in the interval. Known is
// the run to which the new batch belongs, or nil if the batch is the first of its start.
func (r *runs) recordGap(known *run, stored time.Time, hole func(Hole)) {
	gap := stored.Sub(r.last)
	if r.last.IsZero() || gap <= heartbeatInterval+flushInterval {
		return
	}
	if known == nil {
		if gap > deadAfter {
			hole(Hole{From: r.last, To: stored, Why: "no instance wrote: none ran, or none kept a journal"})
		}
		return
	}
	for _, one := range r.all {
		if !one.end {
			one.until = stored
		}
	}
}

// makeRoom drops the run whose last batch is the oldest, if there are maxRuns runs.
func (r *runs) makeRoom(hole func(Hole)) {
	if len(r.all) < maxRuns {
		return
	}
	var oldest start
	for key, one := range r.all {
		if o := r.all[oldest]; o == nil || one.at.Before(o.at) {
			oldest = key
		}
	}
	if one := r.all[oldest]; !one.end {
		hole(one.killed(oldest.instance))
	}
	delete(r.all, oldest)
}

// completeUntil returns the time up to which all records of the start are in this batch or in an earlier batch. The
// batch was stored at the time stored.
func (h head) completeUntil(stored time.Time) time.Time {
	if last := at(h.Last); h.Records > 0 && last.Before(stored) {
		stored = last
	}
	return stored.Add(-maxStoreDelay)
}

// reportSilent reports the holes of the instances that have written nothing for too long. States are the states of the
// running writers shortly before now. States is nil if these states are unknown.
func (r *runs) reportSilent(now time.Time, states []State, hole func(Hole)) {
	var all []Hole
	for key, one := range r.all {
		running := slices.ContainsFunc(states, func(s State) bool { return s.belongsTo(key) })
		silent := now.Sub(one.at)
		switch {
		case one.end, running:
		case silent > deadAfter:
			all = append(all, one.killed(key.instance))
		case states != nil && silent > maxStoreDelay:
			h := one.killed(key.instance)
			h.Why = "the instance does not answer, and its last records are missing: it was killed or lost its connection"
			if h.To.After(now) {
				h.To = now
			}
			all = append(all, h)
		case states == nil && silent > DoubtAfter:
			all = append(all, Hole{Instance: key.instance, From: one.from, To: now,
				Why: "unknown: the instance wrote nothing for a minute"})
		}
	}
	for _, s := range states {
		if s.Unstored > 0 && now.Sub(s.Since) > maxStoreDelay {
			all = append(all, Hole{Instance: s.Instance, From: s.Since, To: now, Records: s.Unstored,
				Why: "not stored yet: the journal's stream stores nothing, or too little"})
		}
	}
	slices.SortFunc(all, func(a, b Hole) int {
		return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Instance, b.Instance))
	})
	for _, h := range all {
		hole(h)
	}
	if !r.last.IsZero() && now.Sub(r.last) > deadAfter {
		hole(Hole{From: r.last, To: now, Why: "no instance wrote: none ran, or none keeps a journal"})
	}
}

// killed returns the hole after the last batch of a run that did not end cleanly. A running instance writes every
// minute.
func (r *run) killed(instance string) Hole {
	h := Hole{Instance: instance, From: r.from, To: r.at.Add(heartbeatInterval + flushInterval),
		Why: "the last records of the instance are missing: it was killed or lost its connection"}
	if r.until.After(h.To) {
		h.To = r.until
	}
	return h
}
