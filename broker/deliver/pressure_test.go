package deliver

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker/acks"
)

// TestJudgeGroup: an eighth of the window is outstanding for a group, and more messages wait. In the first second, the
// group answers some messages, and is judged every quarter of a second. Then the messages above the group's bound are
// given back.
func TestJudgeGroup(t *testing.T) {
	const window = 40_000
	for name, tt := range map[string]struct {
		waiting int
		answers int           // answers in the first second
		back    int           // number of messages given back
		first   time.Duration // until the first of them should come again; zero: not checked
	}{
		"silent":          {waiting: 100, back: 100, first: minStall},
		"slow, with few":  {waiting: 400, answers: 100},                                 // the last 300 take three seconds
		"slow, with more": {waiting: 1000, answers: 100, back: 600, first: maxStall},    // 5,300 would take longer
		"nearly fast":     {waiting: 10_000, answers: fastRate - 1, back: 5_001 - 2000}, // a quarter of the window remains
		"fast":            {waiting: 20_000, answers: fastRate},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gs := newGroups(window, 1<<30)
				passed := fill(t, gs, "a.x", window/groupDivisor)
				for range tt.waiting {
					gs.send("a.x", 1)
				}
				<-gs.pressureSignal
				var back []stalledDelivery
				for slice := 0; slice < 4 && len(back) == 0; slice++ {
					for _, dl := range passed[slice*tt.answers/4 : (slice+1)*tt.answers/4] {
						gs.countAnswer(dl, time.Now())
						gs.remove(dl)
					}
					time.Sleep(judgeInterval)
					more := false
					if back, more = gs.judge(time.Now()); !more {
						t.Fatal("the group is not under pressure any more")
					}
				}
				if len(back) != tt.back {
					t.Fatalf("%d are given back, want %d", len(back), tt.back)
				}
				if tt.first > 0 && time.Until(back[0].retryAt) != tt.first {
					t.Errorf("the first should come again after %s, want %s", time.Until(back[0].retryAt), tt.first)
				}
			})
		})
	}
}

// TestLargeShare: a fast group has half of the window. Other groups have their shares of the other half. After the fast
// group has fallen silent, it has the ordinary share.
func TestLargeShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const window, inTime = 40_000, fastRate * int(judgeInterval) / int(time.Second)
		gs := newGroups(window, 1<<30)
		g := gs.group("a.x", "A")
		var passed []*delivery
		for range window {
			dl := &delivery{Message: Message{Target: "a.x", Size: 1}, group: g}
			gs.pass(dl.group, dl)
			passed = append(passed, dl)
		}
		slice := func(answers int) {
			t.Helper()
			for _, dl := range passed[:answers] {
				gs.countAnswer(dl, time.Now())
				gs.remove(dl)
			}
			passed = passed[answers:]
			time.Sleep(judgeInterval)
			back, _ := gs.judge(time.Now())
			for _, b := range back {
				if b.group == g {
					t.Fatalf("%d are given back", len(back))
				}
			}
			gs.advance(g)
		}
		check := func(when string, want int) {
			t.Helper()
			if g.outstanding != want {
				t.Errorf("%s: %d are outstanding, want %d", when, g.outstanding, want)
			}
		}
		check("at first", window/groupDivisor)
		slice(inTime - 1)
		check("nearly fast", window/groupDivisor)
		slice(inTime + 1) // measured together with the previous slice, because the group is not judged yet
		check("fast", window/largeDivisor)
		fill(t, gs, "b.x", window/largeDivisor/groupDivisor)
		if _, ok := gs.send("b.x", 1); ok {
			t.Error("another group has more than its share of the free window")
		}
		slice(0)
		check("silent", window/largeDivisor)
		for _, dl := range passed[:3000] {
			gs.remove(dl)
		}
		check("silent, after timeouts", window/largeDivisor-3000)
	})
}

// TestRetryAt: messages that are given back come again one by one at the rate of their group, after the time in which
// the group should take its outstanding and waiting messages.
func TestRetryAt(t *testing.T) {
	now := time.Unix(1000, 0)
	g := &group{outstanding: 90, queue: make([]*delivery, 10), pressure: &pressure{rate: 100}}
	for i := range 5 {
		if got, want := g.retryAt(now).Sub(now), time.Second+time.Duration(i+1)*10*time.Millisecond; got != want {
			t.Errorf("message %d comes again after %s, want %s", i, got, want)
		}
	}
	for silent, want := range map[time.Duration]time.Duration{
		0: minStall, time.Second: 2 * time.Second, 10 * time.Second: 20 * time.Second, time.Minute: maxStall,
	} {
		g.pressure = &pressure{lastAnswer: now.Add(-silent)}
		if got := g.retryAt(now).Sub(now); got != want {
			t.Errorf("silent for %s: after %s, want %s", silent, got, want)
		}
	}
}

func TestMeasure(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, tt := range []struct {
		name    string
		before  pressure
		slice   time.Duration
		answers int
		room    bool
		judged  bool
		rate    float64
	}{
		{name: "too short", slice: judgeInterval - 1, answers: 9},
		{name: "silent", slice: judgeInterval, judged: true},
		{name: "it answers", slice: firstJudgement - 1, answers: 9},
		{name: "it answers for a second", slice: firstJudgement, answers: 9, judged: true, rate: 9},
		{name: "again", before: pressure{judged: true, rate: 100}, slice: judgeInterval, answers: 50,
			judged: true, rate: 125},
		{name: "less, with room", before: pressure{judged: true, rate: 100}, slice: time.Second, answers: 9, room: true,
			judged: true, rate: 100},
		{name: "more, with room", before: pressure{judged: true, rate: 100}, slice: time.Second, answers: 900, room: true,
			judged: true, rate: 900},
	} {
		p := tt.before
		p.sliceStart, p.answers = now.Add(-tt.slice), tt.answers
		if p.measure(now, tt.room, 1<<30); p.judged != tt.judged || p.rate != tt.rate {
			t.Errorf("%s: judged %v with %v a second, want %v with %v", tt.name, p.judged, p.rate, tt.judged, tt.rate)
		}
	}
}

// TestPressureEnded: the judgement of a group is kept until the group has had room for a minute. A burst that ends
// unjudged is forgotten a second after its start.
func TestPressureEnded(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, tt := range []struct {
		name             string
		judged           bool
		sinceStart, room time.Duration
		want             bool
	}{
		{name: "judged", judged: true, sinceStart: pressureMemory, room: pressureMemory - 1},
		{name: "judged, a minute later", judged: true, room: pressureMemory, want: true},
		{name: "unjudged", sinceStart: firstJudgement - 1, room: firstJudgement - 1},
		{name: "unjudged, a second later", sinceStart: firstJudgement, want: true},
	} {
		g := newGroups(800, 800).group("a.x", "")
		g.lastFull, g.pressure = now.Add(-tt.room), &pressure{sliceStart: now.Add(-tt.sinceStart), judged: tt.judged}
		if got := g.pressureEnded(now); got != tt.want {
			t.Errorf("%s: ended %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestCountsAsAnswer: a lost connection ends all outstanding deliveries at once, and is no answer of their targets.
func TestCountsAsAnswer(t *testing.T) {
	for _, tt := range []struct {
		result Result
		want   bool
	}{
		{Result{Outcome: Delivered}, true},
		{Result{Outcome: Refused}, true},
		{Result{Outcome: Unknown, Err: errors.New("busy")}, true},
		{Result{Outcome: Expired}, false},
		{Result{Outcome: Refused, Err: acks.ErrTimeout}, false},
		{Result{Outcome: Unknown, Err: acks.ErrTimeout}, false},
		{Result{Outcome: Unknown, Err: acks.ErrDisconnected}, false},
		{Result{Outcome: Unknown, Err: acks.ErrClosed}, false},
		{Result{Outcome: Unknown, Err: ErrDraining}, false},
		{Result{Outcome: Unknown, Err: ErrHalted}, false},
	} {
		if got := countsAsAnswer(tt.result); got != tt.want {
			t.Errorf("%s, %v: %t, want %t", tt.result.Outcome, tt.result.Err, got, tt.want)
		}
	}
}
