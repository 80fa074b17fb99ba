package page

import (
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// member returns the report of an instance that owns one lane.
func member(name, stream string, pending, delivered uint64, proven bool) inspect.Member {
	return inspect.Member{Proven: proven, Answer: broker.Answer{
		Instance: name, Ready: true, Totals: &stats.Totals{Started: noon, Delivered: delivered, DeadLetters: 1},
		Lanes: []stats.LaneAnswer{{Stream: stream, Live: true, Pending: pending, Overdue: float64(pending)}},
	}}
}

var lanes = broker.Status{Lanes: []stats.LaneStatus{
	{Stream: "DELAY_1s", Kind: string(streams.Level)}, {Stream: "DELAY_RETRY_1s", Kind: string(streams.Retry)},
	{Stream: "DELAY_5s", Kind: string(streams.Level)},
}}

// The totals are those of all instances, with each lane once. An unauthenticated report does not count.
func TestCombine(t *testing.T) {
	own := member("west", "DELAY_1s", 5, 100, true)
	others := []inspect.Member{
		own, // the report of this instance also arrives over NATS
		member("east", "DELAY_RETRY_1s", 9, 1000, true),
		member("forged", "DELAY_5s", 1_000_000, 1_000_000, false),
	}
	before := make(lastTotals)
	combine(lanes, own.Answer, others, before, noon)
	own.Totals = &stats.Totals{Started: noon, Delivered: 120}
	others[1].Totals = &stats.Totals{Started: noon, Delivered: 1300}
	o := combine(lanes, own.Answer, others, before, noon.Add(2*time.Second))
	if n := o.Numbers; n.Pending != 14 || n.Retrying != 9 || n.MaxOverdue != 5 {
		t.Errorf("got %+v, want 14 pending, 9 retrying, and 5 s overdue", n)
	}
	if east := o.Instances[0]; east.Pending != 9 || east.MaxOverdue != 0 {
		t.Errorf("%s: got %d pending and %v s overdue, want 9 and 0: refused messages are not overdue", east.Name,
			east.Pending, east.MaxOverdue)
	}
	if o.Numbers.Delivered == nil || *o.Numbers.Delivered != 160 {
		t.Errorf("delivered: got %v/s, want 160/s", o.Numbers.Delivered)
	}
	var names []string
	for _, i := range o.Instances {
		names = append(names, i.Name+" "+i.state())
	}
	if len(names) != 3 || names[0] != "east ready" || names[1] != "forged unproven" || names[2] != "west ready, this one" {
		t.Errorf("got %q", names)
	}
	if l := o.Lanes[2]; l.Owner != "" || l.Pending != nil || l.State != laneNoOwner {
		t.Errorf("got %+v, want no owner: only an unauthenticated report has the lane", l)
	}
}

// The first report after a restart gives no rate, because its counters began at zero.
func TestCombineAfterRestart(t *testing.T) {
	before := make(lastTotals)
	m := member("west", "DELAY_1s", 0, 1000, true)
	combine(lanes, m.Answer, nil, before, noon)
	m.Totals = &stats.Totals{Started: noon.Add(time.Second), Delivered: 5}
	if o := combine(lanes, m.Answer, nil, before, noon.Add(2*time.Second)); o.Numbers.Delivered != nil {
		t.Errorf("got %v/s, want no rate", *o.Numbers.Delivered)
	}
	m.Totals = &stats.Totals{Started: noon.Add(time.Second), Delivered: 15}
	o := combine(lanes, m.Answer, nil, before, noon.Add(4*time.Second))
	if o.Numbers.Delivered == nil || *o.Numbers.Delivered != 5 {
		t.Errorf("got %v/s, want 5/s", o.Numbers.Delivered)
	}
	combine(lanes, broker.Answer{Instance: "new"}, nil, before, noon)
	if len(before) != 0 {
		t.Errorf("got the totals of %d instances, want none: the instance is gone", len(before))
	}
}

func TestDueWithin(t *testing.T) {
	bucket := func(from, to time.Duration, n uint64) inspect.Bucket {
		return inspect.Bucket{From: noon.Add(from), To: noon.Add(to), Amount: inspect.Amount{Messages: n}}
	}
	f := inspect.Forecast{Buckets: []inspect.Bucket{
		bucket(0, 20*time.Second, 10), bucket(20*time.Second, 80*time.Second, 60),
		bucket(80*time.Second, 140*time.Second, 600),
	}}
	for ahead, want := range map[time.Duration]uint64{
		0: 50, 10 * time.Second: 55, 20 * time.Second: 60, 50 * time.Second: 330, time.Hour: 0,
	} {
		if got := dueWithin(f, noon.Add(ahead), time.Minute); got != want {
			t.Errorf("after %v: got %d, want %d", ahead, got, want)
		}
	}
}
