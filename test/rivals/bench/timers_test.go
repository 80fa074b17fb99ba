package bench

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

func TestCheckPlanOfTimers(t *testing.T) {
	for _, test := range []struct {
		scenario Scenario
		change   func(*Plan)
		want     []string
	}{
		{
			Timers, func(p *Plan) { p.CancelPercent, p.Rate, p.TimerRate, p.Sides = 100, -1, -1, []Side{Broker, Pipeline} },
			[]string{"cancel 100: want 0 to 99", "rate -1", "timers -1", "beside pipeline: the pipeline has no timers"},
		},
		{Timers, func(p *Plan) { p.Duration = 0 }, []string{"count of timers of the even phase 0"}},
		{Timers, func(p *Plan) { p.Duration, p.TimerRate = 0, 0 }, nil}, // without the even phase
		{Timers, func(p *Plan) { p.Size = 64<<10 + 1 }, []string{"size 65537: want 16 to 65536"}},
		{Timers, func(p *Plan) { p.Delays = []Delay{{time.Minute, true}} }, []string{"one constant delay at most"}},
		{Timers, func(p *Plan) { p.Core = true }, []string{"core subscribers: this scenario delivers to a stream"}},
		{Rounds, func(p *Plan) { p.Interval = 7 * time.Second }, []string{"every 7s: want 5s, 6s"}},
		{Rounds, func(p *Plan) { p.Interval = time.Second }, []string{"every 1s: want 5s, 6s"}},
		{Rounds, func(p *Plan) { p.Interval = 0 }, []string{"every 0s: want 5s, 6s"}},
		{Rounds, func(p *Plan) { p.Duration = 5 * time.Second }, []string{"for 5s: want a multiple of every (10s)"}},
		{Rounds, func(p *Plan) { p.Count, p.Duration = maxCount, time.Hour }, []string{"count of all rounds"}},
		{Rounds, func(p *Plan) { p.Interval, p.Duration = time.Minute, time.Minute }, nil},
	} {
		p, err := NewPlan(test.scenario)
		if err != nil {
			t.Fatal(err)
		}
		test.change(&p)
		err = p.Check()
		if err != nil && test.want == nil {
			t.Errorf("%+v: got %v, want nil", p, err)
		}
		for _, word := range test.want {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("%+v: got %v, want %q in it", p, err, word)
			}
		}
	}
}

// CancelPercent is a percentage of all timers, and a tenth of the other timers is moved.
func TestNumbersOfCancelledAndMovedTimers(t *testing.T) {
	p := Plan{Scenario: Timers, Count: 100, CancelPercent: 50}
	if got := p.cancelledTimers(); got != 50 {
		t.Errorf("got %d cancelled, want 50", got)
	}
	if got := p.movedTimers(); got != 5 {
		t.Errorf("got %d moved, want 5", got)
	}
}

// Each message changes the timer with its number in the turn, and expects the sequence of the timer's set.
func TestMessagesOfChanges(t *testing.T) {
	names, err := NewNames("bench-abcdefgh")
	if err != nil {
		t.Fatal(err)
	}
	due := time.Unix(1_700_000_000, 123_000_000)
	const timer, schedule = "bench-abcdefghtimer.7-5.bench-abcdefgh-to.1", "bench-abcdefgh-schedule.7-5"
	const expected, firing = "Nats-Expected-Last-Subject-Sequence", "bench-abcdefgh-fired.1"
	for _, test := range []struct {
		side    Side
		change  Change
		subject string
		header  nats.Header
		due     time.Time // of the stamp; zero for a body without one
		body    string
	}{
		{Broker, Change{Verb: Set}, timer, nats.Header{"Delay-Until": {"2023-11-14T22:13:20.123Z"}}, due, ""},
		{
			Broker, Change{Verb: Set, Step: time.Second}, timer, nats.Header{"Delay-Until": {"2023-11-14T22:13:21.123Z"}},
			due.Add(time.Second), "",
		},
		{
			Broker, Change{Verb: Set, Postponed: 6}, timer, nats.Header{"Delay-Until": {"2023-11-14T23:13:20.123Z"}},
			due.Add(time.Hour), "",
		},
		{Broker, Change{Verb: Set, Cron: "0 * * * * *"}, timer, nats.Header{"Delay-Cron": {"0 * * * * *"}}, due, ""},
		{
			Broker, Change{Verb: Move, Postponed: 6}, timer,
			nats.Header{"Delay-Until": {"2023-11-14T22:13:20.123Z"}, expected: {"91"}}, due, "",
		},
		{
			Broker, Change{Verb: Cancel}, timer, nats.Header{"Delay-Cancel": {"bench"}, expected: {"91"}}, time.Time{}, "",
		},
		{
			Broker, Change{Verb: RequestCancel}, "bench-abcdefghctl.timer.cancel.7-5.bench-abcdefgh-to.1", nil, time.Time{},
			`{"generation":91}`,
		},
		{
			Scheduler, Change{Verb: Set}, schedule,
			nats.Header{"Nats-Schedule": {"@at 2023-11-14T22:13:20.123Z"}, "Nats-Schedule-Target": {firing}}, due, "",
		},
		{
			Scheduler, Change{Verb: Set, Cron: "0 * * * * *"}, schedule,
			nats.Header{"Nats-Schedule": {"0 * * * * *"}, "Nats-Schedule-Target": {firing}}, due, "",
		},
		{
			Scheduler, Change{Verb: Cancel, API: "$JS.API"}, "$JS.API.STREAM.MSG.DELETE.BENCH-ABCDEFGH-SCHEDULES", nil,
			time.Time{}, `{"seq":91,"no_erase":true}`,
		},
	} {
		test.change.Sequences = []uint64{90, 91}
		l := Load{Side: test.side, Turn: 7, First: 4, Size: 100, Targets: 4, Due: due, Change: test.change}
		m := l.Message(names, 5, time.Time{})
		if m.Subject != test.subject {
			t.Errorf("%s %+v: got subject %s, want %s", test.side, test.change, m.Subject, test.subject)
		}
		if len(m.Header) != len(test.header) {
			t.Errorf("%s %+v: got %v, want %v", test.side, test.change, m.Header, test.header)
		}
		for name, want := range test.header {
			if got := m.Header[name]; !slices.Equal(got, want) {
				t.Errorf("%s %+v: got %s %q, want %q", test.side, test.change, name, got, want)
			}
		}
		stamp, stamped := ReadStamp(m.Data)
		switch {
		case test.body != "" && string(m.Data) != test.body:
			t.Errorf("%s %+v: got %s, want %s", test.side, test.change, m.Data, test.body)
		case !test.due.IsZero() && (!stamped || stamp.Turn != 7 || stamp.Number != 5 || !stamp.Due.Equal(test.due)):
			t.Errorf("%s %+v: got %+v, want it due at %s", test.side, test.change, stamp, test.due)
		}
	}
}

// An answer is an error unless it confirms the change.
func TestAnswersToChanges(t *testing.T) {
	request, deletion := Load{Change: Change{Verb: RequestCancel}}, Load{Side: Scheduler, Change: Change{Verb: Cancel}}
	for _, test := range []struct {
		load     Load
		answer   string
		header   nats.Header
		sequence uint64
		problem  string // empty for none
	}{
		{load: Load{Change: Change{Verb: Set}}, answer: `{"stream":"S","seq":7}`, sequence: 7},
		{
			load: Load{Change: Change{Verb: Move}}, problem: "wrong last sequence: 9 (10071)",
			answer: `{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 9"},"stream":"S","seq":0}`,
		},
		{load: Load{Change: Change{Verb: Set}}, header: nats.Header{"Status": {"503"}}, problem: "nobody listens"},
		{load: request, answer: `{"outcome":"cancelled","generation":7}`},
		{load: request, answer: `{"outcome":"too_late"}`, problem: "too_late"},
		{load: request, header: nats.Header{"Nats-Service-Error": {"busy"}}, problem: "busy"},
		{load: deletion, answer: `{"type":"io.nats.jetstream.api.v1.stream_msg_delete_response","success":true}`},
		{load: deletion, answer: `{"error":{"code":404,"description":"no message found"}}`, problem: "no message found"},
	} {
		sequence, err := test.load.parseAnswer(&nats.Msg{Data: []byte(test.answer), Header: test.header})
		if sequence != test.sequence || (err != nil) != (test.problem != "") ||
			err != nil && !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%s: got %d, %v, want %d, %q", test.answer, sequence, err, test.sequence, test.problem)
		}
	}
}

// Plain messages are in the same tally as the timers, and have their own lateness.
func TestLatenessOfPlainMessages(t *testing.T) {
	l := newLedger(3, 0)
	l.FirstPlain = 2
	l.Note(arrival(0, time.Millisecond))
	l.Note(arrival(1, 2*time.Millisecond))
	l.Note(arrival(2, time.Second))
	if got, want := l.Late.Spread().Max, 2.0; got != want {
		t.Errorf("timers: got %v ms, want %v", got, want)
	}
	if got, want := l.PlainLate.Spread().Max, 1000.0; got != want {
		t.Errorf("plain messages: got %v ms, want %v", got, want)
	}
	tally := l.Tally()
	tally.add(Tally{Count: 1, Lost: 1, Early: 2, Twice: 3, Unknown: 4})
	if want := (Tally{Count: 4, Lost: 1, Early: 2, Twice: 3, Unknown: 4}); tally != want {
		t.Errorf("got %+v, want %+v", tally, want)
	}
}

// In the ledger, each round of each timer has its own number and due time.
func TestStampsOfRounds(t *testing.T) {
	r := recurringTarget{timers: 10, rounds: 2, interval: time.Minute}
	for _, test := range []struct {
		number uint32
		round  int
		want   uint32
		due    time.Time
	}{
		{number: 3, round: 0, want: 3, due: due},
		{number: 3, round: 1, want: 13, due: due.Add(time.Minute)},
		{number: 3, round: 2, want: 23, due: due.Add(2 * time.Minute)},
		{number: 10, round: 0, want: 20, due: due}, // unknown to the ledger, which has the numbers 0 to 19
	} {
		s, measured := r.roundStamp(Stamp{Number: test.number, Due: due}, test.round)
		if want := test.round < 2; measured != want {
			t.Errorf("round %d of timer %d: got measured %v, want %v", test.round, test.number, measured, want)
		}
		if s.Number != test.want || !s.Due.Equal(test.due) {
			t.Errorf("round %d of timer %d: got %+v, want number %d, due %s", test.round, test.number, s, test.want,
				test.due)
		}
	}
}

func TestCron(t *testing.T) {
	for interval, want := range map[time.Duration]string{
		10 * time.Second: "*/10 * * * * *", time.Minute: "0 * * * * *",
	} {
		if got := cron(interval); got != want {
			t.Errorf("interval %s: got %s, want %s", interval, got, want)
		}
	}
}
