package message

import (
	"testing"
	"time"
)

// TestParseArrival: ParseArrival returns the values that the broker wrote.
func TestParseArrival(t *testing.T) {
	at := time.Date(2026, 11, 20, 10, 0, 0, 123456789, time.UTC)
	for _, want := range []Arrival{
		{ID: "DELAY_5s-1-1", Due: at.Add(time.Hour), Accepted: at},
		{ID: "DELAY_5s-1-1", Due: at.Add(1), Accepted: at, MsgID: "order 42/expire", Attempts: 3},
	} {
		r := Request{ID: want.ID, Due: want.Due, Accepted: want.Accepted, MsgID: want.MsgID, Attempts: want.Attempts}
		h := r.TargetHeader()
		if got, ok := ParseArrival(h); !ok || got != want {
			t.Errorf("got %+v, %t, want %+v", got, ok, want)
		}
	}
	for name, h := range map[string]Header{
		"none":        nil,
		"no id":       {HeaderDue: {"2026-11-20T10:00:00Z"}, HeaderAccepted: {"2026-11-20T10:00:00Z"}},
		"no due":      {HeaderID: {"x"}, HeaderAccepted: {"2026-11-20T10:00:00Z"}},
		"a bad due":   {HeaderID: {"x"}, HeaderDue: {"soon"}, HeaderAccepted: {"2026-11-20T10:00:00Z"}},
		"two ids":     {HeaderID: {"x", "y"}, HeaderDue: {"2026-11-20T10:00:00Z"}, HeaderAccepted: {"2026-11-20T10:00:00Z"}},
		"no accepted": {HeaderID: {"x"}, HeaderDue: {"2026-11-20T10:00:00Z"}},
	} {
		if got, ok := ParseArrival(h); ok {
			t.Errorf("%s: got %+v, want none", name, got)
		}
	}
}

// TestTimeTokenIsNeverEarlier: the time that the broker parses from a token is not earlier than the formatted time. It
// is later by less than the millisecond, or the second, to which TimeToken rounds up.
func TestTimeTokenIsNeverEarlier(t *testing.T) {
	names, err := NewNames(DefaultPrefix)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		at        time.Time
		tolerance time.Duration // maximum by which the parsed time may be later
		token     string
	}{
		{now, 0, "2026-11-20T10:00:00Z"},
		{now.Add(1), time.Millisecond, "1795168800001"},
		{now.Add(250 * time.Millisecond), 0, "1795168800250"},
		{now.Add(999_000_001), time.Millisecond, "2026-11-20T10:00:01Z"},
		{now.Add(40*24*time.Hour + 999), time.Millisecond, "1798624800001"},
		{now.In(time.FixedZone("", 5400)), 0, "2026-11-20T10:00:00Z"},
		{time.Date(2001, 9, 9, 1, 46, 40, 1e6, time.UTC), 0, "1000000000001"},
		{time.Date(2001, 9, 9, 1, 46, 39, 999e6, time.UTC), time.Second, "2001-09-09T01:46:40Z"}, // twelve digits are refused
		{time.Date(1970, 1, 1, 0, 0, 1, 500e6, time.UTC), time.Second, "1970-01-01T00:00:02Z"},
		{time.Date(5138, 11, 16, 9, 46, 40, 1, time.UTC), time.Second, "5138-11-16T09:46:41Z"},
	} {
		token := TimeToken(tt.at)
		if token != tt.token {
			t.Errorf("%s: got %s, want %s", tt.at, token, tt.token)
		}
		// The message was stored before the requested time, so it is due at the requested time.
		r, problem := Policy{Names: names}.Parse(Incoming{Stream: "S", At: time.Unix(0, 0), Subject: names.At(token, "x")})
		if problem != nil {
			t.Fatalf("%s: %v", token, problem)
		}
		if later := r.Due.Sub(tt.at); later < 0 || later > tt.tolerance {
			t.Errorf("%s is parsed as a time that is %s later, want 0 to %s", token, later, tt.tolerance)
		}
	}
}
