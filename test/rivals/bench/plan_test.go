package bench

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseDelays(t *testing.T) {
	got, err := ParseDelays("1s, 5s,random:1m")
	want := []Delay{{Duration: time.Second}, {Duration: 5 * time.Second}, {Duration: time.Minute, Random: true}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}
	_, err = ParseDelays("1s,,soon,0s,random:")
	for _, word := range []string{`""`, `"soon"`, `"0s"`, `"random:"`} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("got %v, want %s in it", err, word)
		}
	}
}

// The delay of a message depends only on its number. The delays are uniform up to the maximum.
func TestRandomDelayOfMessage(t *testing.T) {
	d := Delay{Duration: time.Minute, Random: true}
	quarters := make(map[time.Duration]int)
	for n := range 1000 {
		got := d.messageDelay(n)
		if got < time.Millisecond || got > time.Minute || got%time.Millisecond != 0 || got != d.messageDelay(n) {
			t.Fatalf("message %d: got %s, want a constant delay of 1ms to 1m", n, got)
		}
		quarters[(got-1)/(15*time.Second)]++
	}
	for q := range time.Duration(4) {
		if got := quarters[q]; got < 200 || got > 300 {
			t.Errorf("quarter %d of the minute: got %d of 1000 delays, want 200 to 300", q, got)
		}
	}
}

// The default plans are valid. The error of an invalid plan names all invalid values.
func TestCheckPlan(t *testing.T) {
	for _, s := range Scenarios {
		p, err := NewPlan(s)
		if err == nil {
			err = p.Check()
		}
		if err != nil {
			t.Errorf("default plan of %s: got %v, want nil", s, err)
		}
	}
	p := Plan{Scenario: Steady, Rate: 0, Size: 3, Rounds: 1, Targets: 1, Publishers: 100}
	err := p.Check()
	for _, word := range []string{"rate 0", "size 3", "for 0s", "publishers 100", "count 0"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("got %v, want %q in it", err, word)
		}
	}
	ingest, err := NewPlan(Ingest)
	if err != nil {
		t.Fatal(err)
	}
	ingest.Delays[0].Duration = time.Minute
	if err := ingest.Check(); err == nil {
		t.Error("ingest with a delay of a minute: got nil, want an error, since messages may be due during the publishing")
	}
}

// The messages of all sides have the same due time. If delays differ, a message of the pipeline is due immediately.
func TestMessagesOfSides(t *testing.T) {
	names, err := NewNames("bench-abcdefgh")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_700_000_000, 123_000_000)
	oneSecond, oddDelay := []Delay{{Duration: time.Second}}, []Delay{{Duration: 1234 * time.Millisecond}}
	for _, test := range []struct {
		load     Load
		subject  string
		schedule string
		due      time.Time
	}{
		{Load{Side: Broker, Delays: oneSecond}, "bench-abcdefgh.1s.bench-abcdefgh-to.1", "", now.Add(time.Second)},
		{
			Load{Side: Broker, Delays: oddDelay, Core: true}, "bench-abcdefghin.1234ms.bench-abcdefgh-core.1", "",
			now.Add(1234 * time.Millisecond),
		},
		{
			Load{Side: Broker, Delays: oneSecond, Due: now}, "bench-abcdefghat.1700000000123.bench-abcdefgh-to.1", "", now,
		},
		{
			Load{Side: Scheduler, Delays: oneSecond}, "bench-abcdefgh-schedule.5", "@at 2023-11-14T22:13:21.123Z",
			now.Add(time.Second),
		},
		{Load{Side: Pipeline, Delays: oneSecond}, "bench-abcdefgh-source.1", "", now.Add(time.Second)},
		{Load{Side: Pipeline, Delays: append(oddDelay, oneSecond...)}, "bench-abcdefgh-source.1", "", now},
	} {
		test.load.Turn, test.load.Size, test.load.Targets = 7, 100, 4
		m := test.load.Message(names, 5, now)
		if m.Subject != test.subject {
			t.Errorf("%+v: got subject %s, want %s", test.load, m.Subject, test.subject)
		}
		if got := m.Header.Get("Nats-Schedule"); got != test.schedule {
			t.Errorf("%+v: got schedule %q, want %q", test.load, got, test.schedule)
		}
		got, ok := ReadStamp(m.Data)
		if !ok || got.Turn != 7 || got.Number != 5 || !got.Due.Equal(test.due) || len(m.Data) != 100 {
			t.Errorf("%+v: got %+v in %d bytes, want it due at %s", test.load, got, len(m.Data), test.due)
		}
	}
}
