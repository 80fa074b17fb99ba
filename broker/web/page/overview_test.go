package page

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// member returns the report of an instance that is active if it has lanes.
func member(name string, delivered uint64, lanes ...stats.LaneAnswer) inspect.Member {
	return inspect.Member{Proven: true, InstanceStatus: broker.InstanceStatus{
		Instance: name, Ready: true, Totals: &stats.Totals{Started: noon, Delivered: delivered}, Lanes: lanes,
	}}
}

var lanes = broker.Status{Lanes: []stats.LaneStatus{
	{Stream: "DELAY_1s", Kind: string(streams.Level)}, {Stream: "DELAY_RETRY_1s", Kind: string(streams.Retry)},
	{Stream: "DELAY_TIMERS", Kind: string(streams.Timers)},
}}

// worked are the lanes of the active instance. Of the 5 messages in the level, 4 are markers of timers.
func worked() []stats.LaneAnswer {
	return []stats.LaneAnswer{
		{Stream: "DELAY_1s", Live: true, Pending: 5, Overdue: 2},
		{Stream: "DELAY_RETRY_1s", Live: true, Pending: 9, Overdue: 90},
		{Stream: "DELAY_TIMERS", Live: true, Pending: 4},
	}
}

// TestEachPageShowsTheActiveInstance: the pages of the active instance and of a stand-by have the same figures: those
// of the active instance. A named timer counts once, a refused message is not overdue, and a forged report changes
// nothing.
func TestEachPageShowsTheActiveInstance(t *testing.T) {
	active, standBy := member("west", 100, worked()...), member("east", 1000)
	forged := member("forged", 1<<40, stats.LaneAnswer{Stream: "DELAY_1s", Live: true, Pending: 1 << 40})
	forged.Proven = false
	var shown []string
	for _, own := range []inspect.Member{active, standBy} {
		var a activity
		combine(lanes, own.InstanceStatus, []inspect.Member{active, standBy, forged}, &a, noon)
		later := member("west", 120, worked()...)
		if own.Instance == "west" {
			own = later
		}
		o := combine(lanes, own.InstanceStatus, []inspect.Member{later, standBy, forged}, &a, noon.Add(2*time.Second))
		if n := o.Numbers; n.Pending != 14 || n.Retrying != 9 || n.MaxOverdue != 2 || n.Delivered == nil ||
			*n.Delivered != 10 {
			t.Errorf("%s: got %+v, want 14 pending, 9 retrying, 2 s overdue, 10/s", own.Instance, n)
		}
		for n := range o.Instances {
			if i := o.Instances[n]; i.Active != (i.Name == "west") || i.Unproven != (i.Name == "forged") {
				t.Errorf("%s: got %+v", own.Instance, i)
			}
			o.Instances[n].Self = false
		}
		text, err := json.Marshal(o)
		if shown = append(shown, string(text)); err != nil {
			t.Error(err)
		}
	}
	if shown[0] != shown[1] {
		t.Errorf("the active instance shows %s\nthe stand-by shows %s", shown[0], shown[1])
	}
}

// TestPageDuringTakeOver: while no instance is active, the last figures stand for maxGap. Then the page says that none
// is active. The first report of the next instance gives no rate.
func TestPageDuringTakeOver(t *testing.T) {
	var a activity
	own := member("east", 0)
	combine(lanes, own.InstanceStatus, []inspect.Member{member("west", 100, worked()...)}, &a, noon)
	o := combine(lanes, own.InstanceStatus, nil, &a, noon.Add(maxGap))
	if o.Numbers.Pending != 14 || !o.Numbers.Known || o.Trouble != "" {
		t.Errorf("during the take-over: got %+v, %q; want the last figures", o.Numbers, o.Trouble)
	}
	if o := combine(lanes, own.InstanceStatus, nil, &a, noon.Add(maxGap+1)); o.Numbers.Pending != 0 || o.Numbers.Known ||
		!strings.Contains(o.Trouble, "no instance is active") || o.Lanes[0].State != laneNoOwner {
		t.Errorf("after %s: got %+v, %q; want that no instance is active", maxGap, o.Numbers, o.Trouble)
	}
	own = member("east", 5, worked()...)
	o = combine(lanes, own.InstanceStatus, nil, &a, noon.Add(time.Minute))
	if o.Numbers.Pending != 14 || o.Numbers.Delivered != nil {
		t.Errorf("after the take-over: got %+v, want 14 pending, and no rate yet", o.Numbers)
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

// TestFirstFrame: the pages of two instances have the same numbers and both instances from the first frame on. The dead
// letters are those in their stream, not the sum of what the instances have counted.
func TestFirstFrame(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.MemberConfig(t)
		active, c := harness.Start(t, s, cfg)
		standBy := harness.StartBroker(t, s, cfg)
		for range 5 {
			c.Publish("delay.10s.orders.x", "x")
		}
		for range 3 {
			c.Publish("delayin.soon.orders.x", "x")
		}
		time.Sleep(time.Second)
		for _, i := range []*harness.Instance{active, standBy} {
			p := newPage(Access{})
			p.cfg.Engine = i.Broker
			p.cfg.Open = func(context.Context) (*inspect.Inspector, error) {
				return inspect.Open(s.Connect(), cfg)
			}
			ctx, stop := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { p.Run(ctx) })
			v := p.viewers.add()
			for frame := range 3 {
				var state []byte
				for len(state) == 0 {
					<-v.wake
					state = v.take()["state"]
				}
				var o overview
				natstest.NoError(t, json.Unmarshal(state[bytes.IndexByte(state, '{'):], &o))
				n, dead := o.Numbers, uint64(3)
				if n.DeadLetters != nil {
					dead = *n.DeadLetters
				}
				if len(o.Instances) != 2 || !n.Known || n.Pending != 5 || dead != 3 || frame > 0 && n.DeadLetters == nil {
					t.Errorf("frame %d: got %d instances, %d pending, %d dead letters in %s; want 2, 5 and 3", frame, len(o.Instances),
						n.Pending, dead, state)
				}
			}
			p.viewers.remove(v)
			stop()
			running.Wait()
		}
	})
}
