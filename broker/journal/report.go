package journal

import (
	"cmp"
	"slices"
	"time"
)

const (
	// silentFor is after how long without a word an instance is taken to have ended, since each writes once a minute.
	silentFor = 2*markEvery + 30*time.Second
	// OpenFor is after how long without a word it is not known whether an instance lives.
	OpenFor = markEvery + time.Second
	// settle is how long after a delivery its record is stored, unless the stream is in trouble: a broker waits for the
	// silence of core subscribers, and then for more records.
	settle = time.Second
	// mostHoles is how many holes a report lists.
	mostHoles = 100
	// mostRuns is how many starts of instances a search remembers.
	mostRuns = 1000
)

// Report is what an answer of the journal is worth. All times are by the servers' clocks.
type Report struct {
	Asked  time.Time
	Begins time.Time     // when the oldest batch was stored; zero if there is none
	Kept   time.Duration // how long a record is kept
	Bytes  uint64        // that the journal has

	Looked uint64 // records
	Found  int
	GoOn   Place // where it stopped at the limit of the query; zero if it did not

	Holes    []Hole // the first hundred
	More     int    // holes that are not listed
	Unproven int    // messages in the stream that no broker of ours wrote
	Copies   int    // batches that were stored once more
}

// Complete reports whether a message that is not in the answer did not end in the time asked for, as far as the
// instances that keep a journal know.
func (r Report) Complete() bool { return len(r.Holes) == 0 && r.GoOn.Sequence == 0 }

// Hole is a time of which records are missing, or may be.
type Hole struct {
	Instance string // whose records; empty for all
	From, To time.Time
	Records  int // that were dropped; zero if that is not known
	Why      string
}

// start is one start of an instance.
type start struct{ instance, token string }

// run is the batches of one start.
type run struct {
	number uint64    // of the last batch
	at     time.Time // when it was stored
	from   time.Time // records of before are in it, or in one before it
	end    bool      // it said that it is the last one
	until  time.Time // nobody wrote from then on until this time, if it is not zero
}

// runs are the instances that a search has heard of.
type runs struct {
	all  map[start]*run
	last time.Time // when any of them wrote last; zero if none did
}

func newRuns() runs { return runs{all: make(map[start]*run)} }

// next takes in a batch. It reports whether the batch is new, and tells of holes before it.
func (r *runs) next(h head, stored time.Time, hole func(Hole)) bool {
	which := start{h.Instance, h.Start}
	known := r.all[which]
	if known != nil && h.Number <= known.number {
		return false
	}
	r.silence(known, stored, hole)
	if known != nil && h.Before > known.number {
		hole(Hole{Instance: h.Instance, From: known.from, To: stored, Why: "somebody removed batches, or a server lost them"})
	}
	if l := h.Lost; l != nil {
		hole(Hole{Instance: h.Instance, From: at(l.First), To: at(l.Last), Records: l.Records,
			Why: "dropped: the journal's stream took nothing, or too little"})
	}
	r.last = stored
	if known == nil {
		r.forget(hole)
		known = new(run)
		r.all[which] = known
	}
	*known = run{number: h.Number, at: stored, from: h.settled(stored), end: h.End}
	return true
}

// silence judges the time since anybody wrote. An instance that wrote before and after it says itself what it lost. Of
// one that is not heard any more, nobody knows whether it lived on meanwhile.
func (r *runs) silence(known *run, stored time.Time, hole func(Hole)) {
	passed := stored.Sub(r.last)
	if r.last.IsZero() || passed <= markEvery+flushEvery {
		return
	}
	if known == nil {
		if passed > silentFor {
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

// forget makes room for one more.
func (r *runs) forget(hole func(Hole)) {
	if len(r.all) < mostRuns {
		return
	}
	var oldest start
	for which, one := range r.all {
		if has := r.all[oldest]; has == nil || one.at.Before(has.at) {
			oldest = which
		}
	}
	if one := r.all[oldest]; !one.end {
		hole(one.killed(oldest.instance))
	}
	delete(r.all, oldest)
}

// settled is the time up to which all records of an instance are stored with this batch, or before it.
func (h head) settled(stored time.Time) time.Time {
	if last := at(h.Last); h.Records > 0 && last.Before(stored) {
		stored = last
	}
	return stored.Add(-settle)
}

// silent tells of the instances that were silent for too long at a time. The states of the writers that run, of
// shortly before that time, are nil if they are not known.
func (r *runs) silent(now time.Time, states []State, hole func(Hole)) {
	var all []Hole
	for which, one := range r.all {
		lives := slices.ContainsFunc(states, func(s State) bool { return s.of(which) })
		silent := now.Sub(one.at)
		switch {
		case one.end, lives:
		case silent > silentFor:
			all = append(all, one.killed(which.instance))
		case states != nil && silent > settle:
			h := one.killed(which.instance)
			h.Why = "it does not answer, so it was killed, or is cut off: what it delivered last is missing"
			if h.To.After(now) {
				h.To = now
			}
			all = append(all, h)
		case states == nil && silent > OpenFor:
			all = append(all, Hole{Instance: which.instance, From: one.from, To: now,
				Why: "not known yet: it wrote nothing for a minute"})
		}
	}
	for _, s := range states {
		if s.Unstored > 0 && now.Sub(s.Since) > settle {
			all = append(all, Hole{Instance: s.Instance, From: s.Since, To: now, Records: s.Unstored,
				Why: "not stored yet: the journal's stream takes nothing, or too little"})
		}
	}
	slices.SortFunc(all, func(a, b Hole) int {
		return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Instance, b.Instance))
	})
	for _, h := range all {
		hole(h)
	}
	if !r.last.IsZero() && now.Sub(r.last) > silentFor {
		hole(Hole{From: r.last, To: now, Why: "no instance wrote: none ran, or none keeps a journal"})
	}
}

// killed is the hole of an instance that said no end: had it lived, it would have written within a minute.
func (r *run) killed(instance string) Hole {
	h := Hole{Instance: instance, From: r.from, To: r.at.Add(markEvery + flushEvery),
		Why: "killed, or cut off: what it delivered last is missing"}
	if r.until.After(h.To) {
		h.To = r.until
	}
	return h
}
