package role

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// TestCopied: of a replica's copies, only the generation's own entry and a cancel of the generation count. After every
// other copy, such as an older or later entry, or an entry of another history of the stream, the worker asks the
// leader.
func TestCopied(t *testing.T) {
	t.Parallel()
	names, err := message.NewNames("delay")
	if err != nil {
		t.Fatal(err)
	}
	l := NewStream(Config{Policy: message.Policy{Names: names, MaxDelay: time.Hour}}).Lane()
	with := func(name, value, expected string) message.Header {
		h := message.Header{name: {value}}
		if expected != "" {
			h[message.HeaderExpected] = []string{expected}
		}
		return h
	}
	for name, tt := range map[string]struct {
		sequence uint64
		after    time.Duration // from the set until the copied entry was stored
		header   message.Header
		want     string
	}{
		"own entry":                       {7, 0, with("Delay-For", "1h", ""), "restart"},
		"set of another history":          {7, 1, with("Delay-For", "1h", ""), "read"},
		"older set":                       {6, -1, with("Delay-For", "1h", ""), "read"},
		"later set":                       {8, 1, with("Delay-For", "1h", "7"), "read"},
		"cancel":                          {8, 1, with("Delay-Cancel", "1", "7"), "drop"},
		"cancel of another generation":    {8, 1, with("Delay-Cancel", "1", "6"), "read"},
		"cancel without an expectation":   {8, 1, with("Delay-Cancel", "1", ""), "read"},
		"cancel of another history":       {8, -1, with("Delay-Cancel", "1", "7"), "read"},
		"cancel with the set's sequence":  {7, 0, with("Delay-Cancel", "1", "3"), "read"},
		"firing without a seal":           {8, 1, with("Delay-Fired", "7 me", "7"), "read"},
		"outcome without a seal":          {9, 1, with("Delay-Over", "7 delivered", "8"), "read"},
		"own entry that cannot be parsed": {7, 0, message.Header{}, "restart"},
	} {
		a := &Alarm{Subject: subject, Generation: 7, At: set, lane: l}
		step := a.Handle(copied{
			Stream: "DELAY_TIMERS", Subject: subject, Sequence: tt.sequence, At: set.Add(tt.after), Header: tt.header,
		}, Situation{})
		if got := step.String(); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
		want := map[string]state{"restart": pending, "read": unread, "drop": copyable}[tt.want]
		if a.state != want {
			t.Errorf("%s: the alarm is %+v", name, a)
		}
	}
}

func at(d time.Duration) leader.Time { return leader.At(set.Add(d)) }

// TestNextOfMarker: in the lane in which a marker waits until it is due, the timer's body is read before the due time,
// together with the bodies of timers with similar due times. For a round, the entries of the earlier rounds are also
// read before the due time, once.
func TestNextOfMarker(t *testing.T) {
	const due = 10*time.Minute + 250*time.Millisecond
	marker := Alarm{Generation: 7, lane: newLane()}
	series := Alarm{Generation: 7, lane: newLane(), state: pending, round: round{earlier: earlierAwaited}}
	for _, tt := range []struct {
		name  string
		alarm Alarm
		now   time.Duration
		moves bool
		want  string
	}{
		{"long before", marker, 0, false, "hold until 9m57.5s"},
		{"just before", marker, due - readAhead - 250*time.Millisecond - 1, false, "hold until 9m57.5s"},
		{"time to read", marker, due - readAhead - 250*time.Millisecond, false, "copy"},
		{"late", marker, due + time.Second, false, "copy"},
		{"moves on", marker, 0, true, "default"},
		{"round, before", series, due - time.Second, false, "read"},
		{"round, due", series, due, false, "read"},
	} {
		s := Situation{
			Now: at(tt.now), Proven: true, LastLane: !tt.moves, Stored: at(0), Due: at(due),
			Loaded: tt.alarm.state == pending,
		}
		if got := tt.alarm.Next(s).String(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	series.earlier = earlierRead
	if series.Next(Situation{Now: at(0), LastLane: true, Due: at(due), Loaded: true}).Kind != Default {
		t.Error("the earlier rounds are read a second time before the due time")
	}
}

// TestCopiesBackoff: after a request without an answer, replicas get no further request during a backoff. Each further
// request without an answer doubles the backoff. After an answer, the next backoff is short again.
func TestCopiesBackoff(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *entries) {
		nc := e.server.Connect()
		var asked atomic.Int64
		if _, err := nc.Subscribe("silent.DIRECT.GET.>", func(*nats.Msg) { asked.Add(1) }); err != nil {
			t.Fatal(err)
		}
		natstest.Flush(t, nc)
		e.write("set")
		const answers, silent = "$JS.API", "silent"
		for i, tt := range []struct {
			api     string
			backoff time.Duration // after the request
		}{
			{silent, minCopiesBackoff}, {silent, 2 * minCopiesBackoff}, {silent, 4 * minCopiesBackoff}, {answers, 0},
			{silent, minCopiesBackoff}, {silent, 2 * minCopiesBackoff}, {answers, 0},
		} {
			e.Copies = jsapi.Client{Conn: nc, API: tt.api}
			found, err := e.ReadCopies(t.Context(), []string{subject})
			answered, timedOut := found[subject] != nil, errors.Is(err, context.DeadlineExceeded)
			if answered != (tt.api == answers) || timedOut != (tt.api == silent) {
				t.Errorf("request %d: %+v, %v", i, found, err)
			}
			if got, failing := e.CopiesBackoff(time.Now()); got != tt.backoff || failing != (tt.api == silent) {
				t.Errorf("after request %d: backoff %s, failing %t; want %s", i, got, failing, tt.backoff)
			}
			if tt.backoff > 0 {
				if _, err := e.ReadCopies(t.Context(), []string{subject}); !errors.Is(err, ErrNoCopies) {
					t.Errorf("during the backoff after request %d: %v", i, err)
				}
			}
			time.Sleep(tt.backoff)
		}
		for range 10 {
			e.Copies.API = silent
			_, _ = e.ReadCopies(t.Context(), []string{subject})
			backoff, _ := e.CopiesBackoff(time.Now())
			time.Sleep(backoff)
		}
		if e.copiesBackoff.length != maxCopiesBackoff {
			t.Errorf("after ten more failures: backoff %s, want %s", e.copiesBackoff.length, maxCopiesBackoff)
		}
		if got := asked.Load(); got != 15 {
			t.Errorf("%d requests without an answer, want 15: none during a backoff", got)
		}
	})
}

// TestCopiesBackoffOfConcurrentRequests: of several requests that fail together, only the first one begins a backoff.
// An answer ends the backoff, even if the answered request began before the backoff.
func TestCopiesBackoffOfConcurrentRequests(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *entries) {
		e.Copies = jsapi.Client{Conn: e.server.Connect(), API: "$JS.API"}
		now := time.Now()
		fail := func(asked, ended time.Duration) { e.copiesBackoff.begin(now.Add(asked), now.Add(ended), true) }
		check := func(after, want time.Duration) {
			t.Helper()
			if got, failing := e.CopiesBackoff(now.Add(after)); got != want || failing != (want > 0) {
				t.Errorf("after %s: backoff %s, failing %t; want %s", after, got, failing, want)
			}
		}
		fail(0, 2*time.Second)
		check(2*time.Second, minCopiesBackoff)
		fail(1900*time.Millisecond, 3900*time.Millisecond)
		if got, failing := e.CopiesBackoff(now.Add(3900 * time.Millisecond)); got != 0 || !failing {
			t.Errorf("the second request began a backoff of %s, failing %t", got, failing)
		}
		fail(4*time.Second, 6*time.Second)
		check(6*time.Second, 2*minCopiesBackoff)
		e.copiesBackoff.end()
		check(6*time.Second, 0)
	})
}

// TestRemoveKnownEntries: known entries are removed without a read from the leader. An earlier entry that a killed
// server recovers never becomes the last entry: it is removed before the firing, or before the outcome. If a copy shows
// that a cancel has cancelled a plain set, the set is removed.
func TestRemoveKnownEntries(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		words      string
		generation uint64
		removal    removal
		left       string
		reads      int64 // from the leader
	}{
		"outcome stored": {"set fired:1 over:1", 1, removal{entry: 3, reach: below, firing: 2}, "over:1", 0},
		"outcome stored, recovery": {
			"set set fired:2 over:2", 2, removal{entry: 4, reach: below, firing: 3}, "set over:2", 0,
		},
		"no outcome":                {"set fired:1", 1, removal{entry: 2, firing: 2}, "", 1},
		"no outcome, recovery":      {"set set fired:2", 2, removal{entry: 3, firing: 3}, "", 2},
		"set again":                 {"set fired:1 set", 1, removal{entry: 2, firing: 2}, "set", 1},
		"an earlier firing":         {"set fired:1 set fired:3", 3, removal{entry: 4, firing: 4}, "fired:1", 4},
		"the outcome itself":        {"set over:1", 2, removal{entry: 2}, "", 2},
		"armed, first entry":        {"set", 1, removal{entry: 1, reach: below, probablyOldest: true}, "set", 0},
		"armed, not first entry":    {"set set", 2, removal{entry: 2, reach: below, probablyOldest: true}, "set", 2},
		"replaced, first entry":     {"set cancel", 1, removal{entry: 1, probablyOldest: true}, "cancel", 0},
		"replaced, not first entry": {"debounced set cancel", 2, removal{entry: 2, probablyOldest: true}, "cancel", 2},
		"a cancelled set":           {"set cancel:1", 2, removal{entry: 2, reach: below, cancelled: 1}, "cancel:1", 0},
		"a cancelled set, not first": {
			"set set cancel:2", 3, removal{entry: 3, reach: below, cancelled: 2}, "set cancel:2", 0,
		},
		"a cancelled set, removed before": {"gone cancel", 2, removal{entry: 2, reach: below, cancelled: 1}, "cancel", 0},
		"the cancel does not stay":        {"set cancel:1", 2, removal{entry: 2, cancelled: 1}, "", 2},
		"a cancel after a firing": {
			"set fired:1 cancel:2", 3, removal{entry: 3, reach: below, cancelled: 2}, "fired:1 cancel:2", 4,
		},
		"a cancelled round": {
			"every round:1 cancel:2", 3, removal{entry: 3, reach: below, cancelled: 2}, "every round:1 cancel:2", 4,
		},
		"a cancelled debounced set": {
			"debounced cancel:1", 2, removal{entry: 2, reach: below, cancelled: 1}, "cancel:1", 2,
		},
		"an unknown expectation": {"set cancel", 2, removal{entry: 2, reach: below}, "cancel", 2},
	} {
		runParallel(t, name, func(t *testing.T, e *entries) {
			e.Copies = jsapi.Client{Conn: e.server.Connect(), API: "$JS.API"}
			e.write(tt.words)
			var reads atomic.Int64
			nc := e.server.Connect()
			if _, err := nc.Subscribe("$JS.API.STREAM.MSG.GET.>", func(*nats.Msg) { reads.Add(1) }); err != nil {
				t.Fatal(err)
			}
			natstest.Flush(t, nc)
			if _, err := e.removeEntries(t.Context(), subject, tt.generation, tt.removal); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if got := reads.Load(); got != tt.reads {
				t.Errorf("%d reads, want %d", got, tt.reads)
			}
			if got := e.remaining(); got != tt.left {
				t.Errorf("%q is left, want %q", got, tt.left)
			}
		})
	}
}

// TestKnownRounds: a round sends no request if this process has settled its predecessor. This does not hold for another
// history of the stream.
func TestKnownRounds(t *testing.T) {
	l := newLane()
	l.removed(&Alarm{Generation: 7, At: set, round: round{next: 9}}, true)
	l.removed(&Alarm{Generation: 8, At: set}, true) // the last round
	for name, tt := range map[string]struct {
		generation uint64
		before     time.Time
		want       bool
	}{
		"next round": {9, set, true}, "next round of another history": {9, set.Add(1), false},
		"other round": {8, set, false},
	} {
		a := &Alarm{
			Generation: tt.generation, lane: l, state: pending,
			round: round{earlier: earlierAwaited, previous: 7, replacedAt: tt.before},
		}
		step := a.Next(Situation{Now: at(0), Due: at(0), Proven: true, LastLane: true}).String()
		if known := step == "claim"; known != tt.want || (a.earlier == earlierRemoved) != tt.want {
			t.Errorf("%s: %s, known %t, want %t: %+v", name, step, known, tt.want, a)
		}
	}
}
