package message

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestEdit: an edit changes headers that a client may write, within the bounds for clients. A change of another header
// of the broker or the server is a problem.
func TestEdit(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	due := now.Add(-time.Hour)
	names, err := NewNames("delay")
	if err != nil {
		t.Fatal(err)
	}
	p := Policy{Names: names, MaxDelay: 24 * time.Hour, Attempts: func(string) int { return 20 }}
	letter := func() Letter {
		return Letter{Code: Undelivered, Request: Request{
			ID: "DELAY_30m-1-1", Target: "orders.x", Accepted: due, Due: due, Mode: ModeStream, TTL: "60",
			MaxAttempts: 3, RateKey: "shop-1", Expires: now.Add(time.Minute), User: Header{"X-A": {"1"}, "X-B": {"2", "3"}},
		}}
	}
	many := make(Header)
	for i := range maxHeaderLines - 2 {
		many["Y-"+strings.Repeat("y", i+1)] = []string{""}
	}
	one := func(name, value string) HeaderEdit { return HeaderEdit{Set: Header{name: {value}}} }
	for name, tt := range map[string]struct {
		edit    HeaderEdit
		want    func(l *Letter)
		problem string
	}{
		"nothing": {want: func(*Letter) {}},
		"a user's header": {edit: one("x-a", "9"), want: func(l *Letter) {
			l.User = Header{"x-a": {"9"}, "X-B": {"2", "3"}}
		}},
		"dropped": {edit: HeaderEdit{Drop: []string{"x-b"}}, want: func(l *Letter) {
			l.User = Header{"X-A": {"1"}}
		}},
		"dropped, but missing": {edit: HeaderEdit{Drop: []string{"X-Z", "Delay-Expire"}}, want: func(*Letter) {}},
		"expiry, from now": {edit: one("Delay-Expires", "10m"), want: func(l *Letter) {
			l.Expires = now.Add(10 * time.Minute)
		}},
		"expiry, cleared": {edit: one("Delay-Expires", ""), want: func(l *Letter) {
			l.Expires = time.Time{}
		}},
		"expiry, dropped": {edit: HeaderEdit{Drop: []string{"delay-expires"}}, want: func(l *Letter) {
			l.Expires = time.Time{}
		}},
		"expiry, past": {edit: one("Delay-Expires", "2026-11-23T11:59:59Z"), problem: "before the due time"},
		"another time": {edit: one("Delay-Until", "2026-11-23T13:00:00Z"), want: func(l *Letter) {
			l.Due, l.DueEdited = now.Add(time.Hour), true
		}},
		"too far":           {edit: one("Delay-Until", "2026-11-25T13:00:00Z"), problem: "DELAY_MAX_DELAY"},
		"no time":           {edit: one("Delay-Until", ""), problem: "cannot be read"},
		"time dropped":      {edit: HeaderEdit{Drop: []string{"Delay-Until"}}, problem: "cannot be dropped"},
		"mode":              {edit: one("Delay-Deliver", "core"), want: func(l *Letter) { l.Mode = ModeCore }},
		"mode, bad":         {edit: one("Delay-Deliver", "udp"), problem: "Delay-Deliver"},
		"ttl":               {edit: one("Delay-TTL", "1h"), want: func(l *Letter) { l.TTL = "3600" }},
		"attempts":          {edit: one("Delay-Max-Attempts", "20"), want: func(l *Letter) { l.MaxAttempts = 20 }},
		"rate key":          {edit: one("Delay-Rate-Key", "shop-2"), want: func(l *Letter) { l.RateKey = "shop-2" }},
		"rate key, invalid": {edit: one("Delay-Rate-Key", "a b"), problem: "Delay-Rate-Key"},
		"attempts, many":    {edit: one("Delay-Max-Attempts", "21"), problem: "from 1 to 20"},
		"a misspelt header": {edit: one("Delay-Expire", "1h"), problem: "is not a header of this protocol"},
		"too many together": {edit: HeaderEdit{Set: many}, problem: "at most 64 headers"},
		"an unsafe name":    {edit: one("X A", "1"), problem: "cannot be passed on"},
	} {
		got, problem := p.Edit(letter(), tt.edit, now)
		if tt.want == nil {
			if problem == nil || !strings.Contains(problem.Sentence, tt.problem) {
				t.Errorf("%s: got %v, want %q", name, problem, tt.problem)
			}
			continue
		}
		want := letter()
		tt.want(&want)
		sameUser := maps.EqualFunc(got.User, want.User, slices.Equal[[]string])
		got.User, want.User = nil, nil
		if problem != nil || !sameUser || !equalLetters(got, want) {
			t.Errorf("%s: got %+v and %v, want %+v", name, got, problem, want)
		}
	}
	for _, forged := range []string{
		"Delay-Id", "delay-due", "DELAY-SEAL", "Delay-Msg-Id", "Delay-Attempts", "Delay-Target", "Delay-For",
		"Delay-Every", "Delay-Scheduler", HeaderRollup, "Nats-Msg-Id", "Nats-Rollup", "nats-ttl", " Nats-Expected-Stream",
		"Nmqtt-Pub", "Status", "Description", "KV-Operation",
	} {
		original := letter()
		if _, problem := p.Edit(original, one(forged, "1"), now); problem == nil {
			t.Errorf("%s can be set, want a problem", forged)
		}
		if _, problem := p.Edit(original, HeaderEdit{Drop: []string{forged}}, now); problem == nil {
			t.Errorf("%s can be dropped, want a problem", forged)
		}
		if len(original.User) != 2 {
			t.Errorf("%s: Edit has changed its argument: %v", forged, original.User)
		}
	}
}

func equalLetters(a, b Letter) bool {
	return a.Due.Equal(b.Due) && a.Expires.Equal(b.Expires) && a.Mode == b.Mode && a.TTL == b.TTL &&
		a.MaxAttempts == b.MaxAttempts && a.RateKey == b.RateKey && a.DueEdited == b.DueEdited &&
		a.ID == b.ID && a.Target == b.Target
}
