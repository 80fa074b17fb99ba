package stats_test

import (
	"encoding/json"
	"testing"
	"time"

	"delaybroker/broker/link"
	"delaybroker/broker/message"
	"delaybroker/broker/pause"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
)

// TestStatusIsAnInterface: programs parse /status. Its JSON does not show the groups of fields, durations are seconds,
// and an unknown value of another instance's lane is zero.
func TestStatusIsAnInterface(t *testing.T) {
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	ours := stats.LaneStatus{
		Stream: "DELAY_1s", Kind: "level", Level: "1s", Delay: time.Second,
		Owned: true, Owner: "a", InDoubt: true, Live: true, Read: 4, Arrived: 3, ResumesAt: at, Pending: 5,
		Overdue: 6 * time.Second, NextDue: at, WaitingMessages: 7, CommitAge: 8 * time.Second, Unworked: 42 * time.Second,
		Bytes: 9, MaxBytes: 10, ClockKnown: true,
		ClockOffset: -11 * time.Second, Memory: stats.Memory{Held: 1, HeldBytes: 2, Span: 3, Full: true},
		Moves: stats.Moves{Delivered: 12, Hops: 13, Retries: 14, Repeats: 15},
	}
	got, err := json.Marshal(stats.Status{
		Ready: true, Draining: true, Lanes: []stats.LaneStatus{ours, {}},
		Links: []link.Status{{Name: "read", Up: true, Reconnects: 16}},
		Counts: stats.Counts{
			Outcomes: map[string]uint64{"delivered": 17}, DeadLetters: map[message.Code]uint64{"expired": 18},
			OwnDuplicates: 19, ForeignDuplicates: 20, Unstored: 21, EarlyReadings: 22, EarlyChecks: 23, SweptTimers: 24,
			MissedRounds: 41, PausedSeries: 43,
			Lateness: map[streams.Kind]stats.Histogram{"level": {
				Count: 25, Sum: 26 * time.Second, Buckets: []stats.Bucket{{Bound: 27 * time.Second, Count: 28}},
			}},
			Rates:   []stats.RateCount{{Pattern: "b.>", Delivered: 32, Refused: 33}},
			Targets: []stats.TargetCount{{Target: "a tenant's own", Delivered: 34}},
		},
		Journal: stats.JournalStatus{Kept: true, Stored: 29, Dropped: 30},
		Pauses:  []stats.PauseStatus{{Pattern: "a.>", State: pause.Paused, Since: at}}, PausedMessages: 31,
	})
	const want = `{"ready":true,"draining":true,"lanes":[{"stream":"DELAY_1s","kind":"level","level":"1s","owned":true,` +
		`"owner":"a","in_doubt":true,"live":true,"held":1,"held_bytes":2,"span":3,"full":true,"read":4,"arrived":3,` +
		`"resumes_at":"2026-11-20T10:00:00Z","pending":5,"next_due":"2026-11-20T10:00:00Z","waiting":7,"bytes":9,` +
		`"max_bytes":10,"clock_known":true,"delivered":12,"hops":13,"retries":14,"repeats":15,"delay":1,"overdue":6,` +
		`"unworked":42,"commit_age":8,"clock_offset":-11},{"stream":"","kind":"","owned":false,"in_doubt":false,` +
		`"live":false,` +
		`"held":0,"held_bytes":0,"span":0,"full":false,"read":0,"pending":0,"waiting":0,"bytes":0,"max_bytes":0,` +
		`"clock_known":false,"delivered":0,"hops":0,"retries":0,"repeats":0,"delay":0,"overdue":0,"unworked":0,` +
		`"commit_age":0,` +
		`"clock_offset":0}],"links":[{"name":"read","up":true,"reconnects":16}],"outcomes":{"delivered":17},` +
		`"dead_letters":{"expired":18},"duplicates_ours":19,"duplicates_foreign":20,"unstored":21,"early":22,` +
		`"early_checks":23,"timers_swept":24,"rounds_missed":41,"series_paused":43,` +
		`"lateness":{"level":{"buckets":[{"count":28,"up_to":27}],"count":25,"sum":26}},` +
		`"rates":[{"pattern":"b.\u003e","delivered":32,"refused":33}],` +
		`"journal":{"kept":true,"stored":29,"dropped":30},"paused":[{"pattern":"a.\u003e",` +
		`"state":"paused","since":"2026-11-20T10:00:00Z"}],"paused_messages":31}`
	if err != nil || string(got) != want {
		t.Errorf("%v\ngot  %s\nwant %s", err, got, want)
	}
}
