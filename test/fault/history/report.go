package history

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxShown is the maximum number of printed violations of a kind.
const maxShown = 5

// Report is the judgement of a run.
type Report struct {
	Conditions Conditions

	Attempted int // publishes
	Acked     int // acknowledged publishes
	Failed    int // publishes that were certainly not stored
	Delivered int // messages found at their target
	Recovered int // delivered messages without an acknowledgement
	Lost      int // acknowledged messages that are neither at their target nor dead letters
	Repeats   int // duplicates that a witness received
	Copies    int // duplicates that the target's stream stored
	Settled   int // messages sent twice, long after one fault and before the next

	Timers Timers

	Starts       int           // restarts of brokers
	SlowestStart time.Duration // maximum time until a broker was ready

	Faults   []Period
	Median   time.Duration // median lateness outside of faults
	P99      time.Duration
	CalmMost time.Duration
	Worst    time.Duration // maximum lateness

	Violations []Violation
	Kept       string // file of the history, if it was kept

	calm []time.Duration
}

// Timers counts the results of named timers and of the requests about them.
type Timers struct {
	Keys      int `json:"keys"`
	Delivered int `json:"delivered"` // delivered generations
	Cancelled int `json:"cancelled"` // acknowledged cancels
	TooLate   int `json:"too_late"`  // refused cancels
	Unknown   int `json:"unknown"`   // requests without a conclusive answer
	Rounds    int `json:"rounds"`    // delivered rounds of series
	Changed   int `json:"changed"`   // number of moves, pauses, resumptions and table changes of series
}

func (t *Timers) Add(o Timers) {
	t.Keys += o.Keys
	t.Delivered += o.Delivered
	t.Cancelled += o.Cancelled
	t.TooLate += o.TooLate
	t.Unknown += o.Unknown
	t.Rounds += o.Rounds
	t.Changed += o.Changed
}

func (t Timers) String() string {
	return fmt.Sprintf("races for %d timers: %d deliveries, %d of them rounds of series, which were changed %d times, %d "+
		"cancels acknowledged and %d refused, %d requests without an answer",
		t.Keys, t.Delivered, t.Rounds, t.Changed, t.Cancelled, t.TooLate, t.Unknown)
}

func (r *Report) finish(faults []Period) {
	r.Faults = faults
	if n := len(r.calm); n > 0 {
		slices.Sort(r.calm)
		r.Median, r.P99, r.CalmMost = r.calm[n/2], r.calm[n*99/100], r.calm[n-1]
	}
}

func (r *Report) Count(kind Kind) int {
	n := 0
	for _, v := range r.Violations {
		if v.Kind == kind {
			n++
		}
	}
	return n
}

// String returns the judgement as text. Its second line is an equation, which holds in a run without violations.
func (r *Report) String() string {
	var b strings.Builder
	c := r.Conditions
	fmt.Fprintf(&b, "%s, seed %d, %d broker(s), %d msg/s: %d published, %d failed, %d sent again, %d stored twice, %d "+
		"early\n",
		c.Name, c.Seed, c.Brokers, c.Rate, r.Attempted, r.Failed, r.Repeats, r.Copies, r.Count(Early))
	fmt.Fprintf(&b, "  %d acknowledged + %d recovered = %d delivered + %d dead letters + %d lost\n",
		r.Acked, r.Recovered, r.Delivered, r.Count(DeadLetter), r.Lost)
	if c.Players > 0 {
		fmt.Fprintf(&b, "  %s\n", r.Timers)
	}
	fmt.Fprintf(&b, "  late without a fault: p50 %s, p99 %s, at most %s\n", short(r.Median), short(r.P99),
		short(r.CalmMost))
	if r.Starts > 0 {
		fmt.Fprintf(&b, "  brokers started %d times, ready after %s at most; late at most %s\n", r.Starts,
			short(r.SlowestStart), short(r.Worst))
	}
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "  %s for %s: late at most %s, among %d messages (%s)\n", f.Name, short(time.Duration(f.To-f.From)),
			short(f.Worst), f.Delivered, f.Proof)
	}
	count := make(map[Kind]int)
	for _, v := range r.Violations {
		if count[v.Kind]++; count[v.Kind] <= maxShown {
			fmt.Fprintf(&b, "  VIOLATION %s\n", v)
		}
	}
	for kind, n := range count {
		if n > maxShown {
			fmt.Fprintf(&b, "  VIOLATION %s: %d in all\n", kind, n)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func short(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(100 * time.Microsecond)
}
