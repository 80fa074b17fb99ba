package timetable

import (
	"testing"
	"time"
)

// TestDecide: the next round depends only on the table, the round, the time and the policy.
func TestDecide(t *testing.T) {
	first := at("2026-11-20T10:00:00Z")
	series := Series{ID: 7, First: first}
	after := func(d time.Duration) time.Time { return first.Add(d) }
	nth := func(n int, planned ...time.Duration) Round {
		return Round{Number: n, Planned: after(append(planned, 0)[0])}
	}
	const m, s5, ms = time.Minute, 5 * time.Second, time.Millisecond
	for name, tt := range map[string]struct {
		words    Settings
		round    Round
		now      time.Duration
		fire     bool
		number   int           // the number of the next round; zero for none
		due      time.Duration // the due time of the next round
		wait     time.Duration // the wait of the next round; zero for none
		movedDue time.Duration // the due time of a moved round; zero for a round that is due as planned
		left     int
	}{
		"in time":                {Settings{Every: "10m"}, nth(1), 5 * ms, true, 2, 10 * m, 0, 0, 0},
		"a minute late at most":  {Settings{Every: "10m"}, nth(3), 59 * time.Second, true, 4, 10 * m, 0, 0, 0},
		"the last by number":     {Settings{Every: "10m", Rounds: "3"}, nth(3), 0, true, 0, 0, 0, 0, 0},
		"the last by time":       {Settings{Every: "10m", Last: after(9 * m)}, nth(1), 0, true, 0, 0, 0, 0, 0},
		"one late, then on":      {Settings{Every: "10m", Missed: "one"}, nth(2), 35 * m, true, 3, 40 * m, 0, 0, 3},
		"one, as a round is due": {Settings{Every: "10m", Missed: "one"}, nth(2), 30 * m, true, 3, 40 * m, 0, 0, 3},
		"skip":                   {Settings{Every: "10m", Missed: "skip"}, nth(2), 35 * m, false, 2, 40 * m, 0, 0, 4},
		"skip, late by a minute": {Settings{Every: "10m", Missed: "skip"}, nth(2), m, true, 3, 10 * m, 0, 0, 0},
		"skip, late by more":     {Settings{Every: "10m", Missed: "skip"}, nth(2), m + ms, false, 2, 10 * m, 0, 0, 1},
		"skip, the next is due":  {Settings{Every: "5s", Missed: "skip"}, nth(2), s5, false, 2, 2 * s5, 0, 0, 2},
		"skip at the end":        {Settings{Every: "10m", Missed: "skip", Last: first}, nth(1), 2 * m, false, 0, 0, 0, 0, 1},
		"skip keeps the number": {Settings{Every: "10m", Missed: "skip", Rounds: "2"}, nth(2),
			15 * m, false, 2, 20 * m, 0, 0, 2},
		"all, each": {Settings{Every: "10m", Missed: "all"}, nth(2),
			35 * m, true, 3, 10 * m, 35*m + 100*ms, 0, 0},
		"all, caught up":      {Settings{Every: "10m", Missed: "all"}, nth(2), 9 * m, true, 3, 10 * m, 0, 0, 0},
		"moved later":         {Settings{Every: "10m"}, nth(2), 4 * m, true, 3, 10 * m, 0, 4 * m, 0},
		"moved beyond others": {Settings{Every: "10m", Missed: "all"}, nth(2), 34 * m, true, 3, 40 * m, 0, 34 * m, 0},
		"moved earlier":       {Settings{Every: "10m"}, nth(2, 10*m), 4 * m, true, 3, 20 * m, 0, 4 * m, 0},
		"cron, a day late": {Settings{Cron: "*/10 * * * *"}, nth(1),
			24 * time.Hour, true, 2, 24*time.Hour + 10*m, 0, 0, 100},
		"every, to its end":       {Settings{Every: "10m", Last: after(29 * m)}, nth(1), 50 * m, true, 0, 0, 0, 0, 2},
		"cron":                    {Settings{Cron: "*/10 * * * *"}, nth(2), 5 * ms, true, 3, 10 * m, 0, 0, 0},
		"cron, moved first round": {Settings{Cron: "*/10 * * * *"}, nth(1, 3*m), 3 * m, true, 2, 10 * m, 0, 0, 0},
	} {
		table, err := Parse(tt.words)
		if err != nil {
			t.Fatal(err)
		}
		r := tt.round
		if r.Due = r.Planned; tt.movedDue > 0 {
			r.Due = after(tt.movedDue)
		}
		want := Decision{Fire: tt.fire, Skipped: tt.left}
		if tt.number > 0 {
			want.Next = Round{Number: tt.number, Planned: after(tt.due), Due: after(tt.due)}
		}
		if tt.wait > 0 {
			want.Wait = after(tt.wait)
		}
		if got := table.Decide(series, r, after(tt.now)); got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
		}
	}
}

// TestJitter: jitter makes no round early, differs between rounds, is deterministic, and moves no later round.
func TestJitter(t *testing.T) {
	table, err := Parse(Settings{Every: "10m", Jitter: "5m"})
	if err != nil {
		t.Fatal(err)
	}
	s := Series{ID: 7, First: at("2026-11-20T10:00:00Z")}
	r := table.Round(s, 1, s.First)
	seen := make(map[time.Duration]bool)
	for n := range 200 {
		late := r.Due.Sub(r.Planned)
		if !r.Planned.Equal(s.First.Add(time.Duration(n)*table.Every)) || late < 0 || late >= table.Jitter {
			t.Fatalf("round %d is planned for %s, and due %s later", r.Number, r.Planned, late)
		}
		seen[late] = true
		if again := table.Round(s, r.Number, r.Planned); again != r {
			t.Fatalf("a second computation of %+v returns %+v", r, again)
		}
		r = table.Decide(s, r, r.Due).Next
	}
	if len(seen) < 150 {
		t.Errorf("200 rounds have %d different jitters, want 150", len(seen))
	}
}

// TestJitterAtClockChange: on the day on which the clock skips the hour from two to three, the rounds of one and three
// o'clock are an hour apart. Each round is due before the next planned time, and no round is missed.
func TestJitterAtClockChange(t *testing.T) {
	table, err := Parse(Settings{Cron: "0 0 1,3 * * *", Zone: "Europe/Berlin", Jitter: "1h59m"})
	if err != nil {
		t.Fatal(err)
	}
	one := time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC)
	three := one.Add(time.Hour)
	for id := range uint64(100) {
		s := Series{ID: id, First: one}
		r := table.Round(s, 1, one)
		if r.Due.Before(one) || !r.Due.Before(three) {
			t.Errorf("series %d: the round is due at %s, want a time from %s to %s", id, r.Due, one, three)
		}
		if d := table.Decide(s, r, r.Due); !d.Fire || d.Skipped != 0 || !d.Next.Planned.Equal(three) {
			t.Errorf("series %d: %+v, want a round that fires, and the next at %s", id, d, three)
		}
	}
}

// TestJitteredRoundIsInTime: a round is missed when the next round is due, and not at the planned time of the next
// round: with jitter, the round itself may be due just before. The next round is the first round that is not due yet.
func TestJitteredRoundIsInTime(t *testing.T) {
	t.Parallel()
	s := Series{ID: 7, First: at("2026-11-20T10:00:00Z")}
	for _, missed := range []string{"skip", "one", "all"} {
		table, err := Parse(Settings{Every: "1s", Jitter: "999ms", Missed: missed})
		if err != nil {
			t.Fatal(err)
		}
		tight := 0
		for n := 1; n < 2000; n++ {
			planned := s.First.Add(time.Duration(n) * time.Second)
			r, want := table.Round(s, n, planned), table.Round(s, n+1, planned.Add(time.Second))
			now := r.Due.Add(20 * time.Millisecond)
			if now.Before(want.Planned) || !now.Before(want.Due) {
				continue
			}
			tight++
			if d := table.Decide(s, r, now); !d.Fire || d.Next != want || d.Skipped != 0 {
				t.Fatalf("%s: planned for %s and %s late: %+v, want %+v to follow", missed, r.Planned, now.Sub(r.Due), d, want)
			}
			if missed == "all" {
				continue
			}
			late := now.Add(-90 * time.Second) // the previous round is late by more than a minute and a half
			r = Round{Number: n, Planned: late.Truncate(time.Second), Due: late}
			d := table.Decide(s, r, now)
			follows := table.Round(s, d.Next.Number, planned.Add(time.Second))
			if now.Before(follows.Due) && d.Next != follows {
				t.Fatalf("%s: 90 s late, the next round is %+v, want %+v", missed, d.Next, follows)
			}
		}
		if tight < 10 {
			t.Errorf("%d rounds are due so shortly before the next, want at least 10", tight)
		}
	}
}
