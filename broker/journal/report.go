package journal

import (
	"cmp"
	"slices"
	"time"
)

const (
	// silentFor is after how long without a word an instance is taken to have ended, since each writes once a minute.
	silentFor = 2*markEvery + 30*time.Second
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
		hole(Hole{Instance: h.Instance, From: known.at, To: stored, Why: "somebody removed batches, or a server lost them"})
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
	*known = run{number: h.Number, at: stored, end: h.End}
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

// silent tells of the instances that were silent for too long at a time.
func (r *runs) silent(now time.Time, hole func(Hole)) {
	var killed []Hole
	for which, one := range r.all {
		if !one.end && now.Sub(one.at) > silentFor {
			killed = append(killed, one.killed(which.instance))
		}
	}
	slices.SortFunc(killed, func(a, b Hole) int {
		return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Instance, b.Instance))
	})
	for _, h := range killed {
		hole(h)
	}
	if !r.last.IsZero() && now.Sub(r.last) > silentFor {
		hole(Hole{From: r.last, To: now, Why: "no instance wrote: none ran, or none keeps a journal"})
	}
}

// killed is the hole of an instance that said no end: had it lived, it would have written within a minute.
func (r *run) killed(instance string) Hole {
	h := Hole{Instance: instance, From: r.at, To: r.at.Add(markEvery + flushEvery),
		Why: "killed, or cut off: what it delivered last is missing"}
	if r.until.After(h.To) {
		h.To = r.until
	}
	return h
}
