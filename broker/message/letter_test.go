package message_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
	"delaybroker/test/poison"
)

// letterOf returns the dead letter of r, as its stream returns it.
func letterOf(t testing.TB, r message.Request, p *message.Problem) (message.Letter, *message.Problem) {
	t.Helper()
	return policy.Names.ParseLetter(incoming(policy.Names.Dead(p.Code, r.Target), wire(t, r.DeadHeader(p))))
}

func TestLetterRoundTrip(t *testing.T) {
	retried := full(t)
	retried.Hop = 7
	for what, r := range map[string]message.Request{
		"plain": mustParse(t, "delay.1h.orders.expire"),
		"full":  retried,
	} {
		p := message.Problemf(message.Undelivered, "the target refused")
		l, problem := letterOf(t, r, p)
		if problem != nil {
			t.Errorf("%s: got the problem %v, want none", what, problem)
			continue
		}
		r.RetryAt, r.LastError = time.Time{}, "" // a dead letter does not have these fields
		checkSame(t, what, l.Request, r)
		if l.Code != p.Code || l.Sentence != p.Sentence || l.Subject != "delay.1h.orders.expire" {
			t.Errorf("%s: got %+v, want the code, the sentence and the subject of the request", what, l)
		}

		h := wire(t, l.ResentHeader())
		again, problem := policy.Parse(incoming(policy.Names.Retry("1s", l.Target), h))
		if problem != nil {
			t.Errorf("%s, resent: got the problem %v, want none", what, problem)
			continue
		}
		want := r
		want.Hop, want.Attempts, want.FirstFailure, want.LastFailure = r.Hop+1, 0, time.Time{}, time.Time{}
		want.EarlierRefusals = ""
		checkSame(t, what+", resent", again, want)
		if again.DeadMsgID() == r.DeadMsgID() {
			t.Errorf("%s: the next dead letter would have the id %s of the first", what, r.DeadMsgID())
		}
		id := h["Nats-Msg-Id"][0]
		for n := range 20 {
			if id == r.NatsMsgID(n) {
				t.Errorf("%s: resent under the id of a hop, %s", what, id)
			}
		}
		if second := l.ResentHeader()["Nats-Msg-Id"][0]; second != id {
			t.Errorf("%s: two resends have the ids %s and %s, want the same", what, id, second)
		}
		l.Target = "orders.other"
		if other := l.ResentHeader()["Nats-Msg-Id"][0]; other == id {
			t.Errorf("%s: resent to another target under the same id %s", what, id)
		}
	}
}

// TestParseLetterRefuses: a letter with headers that no broker writes, or in a newer format, is a problem. The result
// has the code and the target in the subject.
func TestParseLetterRefuses(t *testing.T) {
	r := mustParse(t, "delay.1h.orders.expire")
	good := r.DeadHeader(message.Problemf(message.Undelivered, "refused"))
	const subject = "delaydead.undelivered.orders.expire"
	for _, tt := range []struct {
		name, header string
		values       []string
		code         message.Code
		hint         string
	}{
		{"no id", "Delay-Id", nil, message.BadInternal, "Delay-Id"},
		{"a bad id", "Delay-Id", []string{"42"}, message.BadInternal, "Delay-Id"},
		{"two ids", "Delay-Id", []string{r.ID, r.ID}, message.BadInternal, "Delay-Id"},
		{"no due", "Delay-Due", nil, message.BadInternal, "Delay-Due"},
		{"no acceptance", "Delay-Accepted", nil, message.BadInternal, "Delay-Accepted"},
		{"a bad expiry", "Delay-Expires", []string{"soon"}, message.BadInternal, "Delay-Expires"},
		{"zero attempts", "Delay-Attempts", []string{"0"}, message.BadInternal, "Delay-Attempts"},
		{"a negative hop", "Delay-Hop", []string{"-1"}, message.BadInternal, "Delay-Hop"},
		{"an unknown mode", "Delay-Deliver", []string{"twice"}, message.BadInternal, "Delay-Deliver"},
		{"a newer format", "Delay-Format", []string{"2"}, message.NewerFormat, "format 2"},
	} {
		h := wire(t, good)
		delete(h, tt.header)
		if tt.values != nil {
			h[tt.header] = tt.values
		}
		l, problem := policy.Names.ParseLetter(incoming(subject, h))
		wantProblem(t, tt.name, problem, tt.code, tt.hint)
		if l.Code != message.Undelivered || l.Target != "orders.expire" {
			t.Errorf("%s: got %+v, want the values of the subject", tt.name, l)
		}
	}
	_, problem := policy.Names.ParseLetter(incoming("delay.1h.orders.expire", wire(t, good)))
	wantProblem(t, "another subject", problem, message.BadInternal, "not the subject of a dead letter")
	in := incoming(subject, nil)
	in.Undecodable = true
	_, problem = policy.Names.ParseLetter(in)
	wantProblem(t, "undecodable", problem, message.BadHeaders, "decoded")

	// A letter of an earlier version has neither a format nor a hop.
	old := wire(t, good)
	delete(old, "Delay-Format")
	delete(old, "Delay-Hop")
	if l, problem := policy.Names.ParseLetter(incoming(subject, old)); problem != nil || l.Hop != 0 {
		t.Errorf("an old letter: got %+v, problem %v; want hop 0 and no problem", l, problem)
	}
}

// FuzzLetter parses any header block below delaydead, where a client may have permission to publish. If there is no
// problem, the header for a resend has no reserved headers of the client, and a broker parses an equal request from it.
func FuzzLetter(f *testing.F) {
	lines := []string{
		"Delay-Id: DELAY_30m-1-1", "Delay-Due: 2026-11-20T12:00:00.5Z", "Delay-Accepted: 2026-11-20T09:00:00Z",
		"Delay-Hop: 3", "Delay-Attempts: 20", "Delay-First-Failure: 2026-11-20T12:00:01Z",
		"Delay-Last-Failure: 2026-11-20T13:00:01Z", "Delay-Error: no", "Delay-Error-Code: undelivered",
		"Delay-Subject: delay.1h.x", "X-Order: 42",
	}
	f.Add([]byte(block(lines...)), "delaydead.undelivered.x")
	f.Add([]byte(block(append(lines, "Delay-Expires: 9999-12-31T23:59:59Z", "Delay-TTL: never",
		"Delay-Deliver: core")...)), "delaydead.expired.orders.x")
	f.Add([]byte(block(append(lines, "Delay-Deliver: core\rx")...)), "delaydead.expired.x") // nats.go writes "core x"
	for i, disguise := range poison.Disguises {
		hidden := disguise.Lines(poison.Headers[i%len(poison.Headers)])
		f.Add([]byte(block(append(lines, hidden)...)), "delaydead.bad_time.5s.x")
	}
	f.Add([]byte(block("Delay-Id: 42")), "delaydead")
	f.Add([]byte(block("Delay-Format: 99999999999999999999")), "delaydead..")
	f.Fuzz(func(t *testing.T, raw []byte, subject string) {
		h, err := nats.DecodeHeadersMsg(raw)
		if err != nil {
			return
		}
		l, problem := policy.Names.ParseLetter(incoming(subject, message.Header(h)))
		if problem != nil {
			checkProblem(t, subject, problem)
			return
		}
		if _, err := message.ParseID(l.ID); err != nil {
			t.Fatalf("the id %q is not valid: %v", l.ID, err)
		}
		if !strings.HasPrefix(subject, "delaydead.") || policy.CheckTarget(l.Target) != nil {
			return // such a letter is never resent
		}
		resent := l.ResentHeader()
		checkClean(t, "resent", resent, hopSet, resent["Nats-Msg-Id"][0], "")
		again, problem := policy.Parse(incoming(policy.Names.Retry("1s", l.Target), wire(t, resent)))
		if problem != nil {
			t.Fatalf("a broker cannot parse the resent message: %v", problem)
		}
		if again.ID != l.ID || again.Hop != l.Hop+1 || again.Attempts != 0 || again.Target != l.Target ||
			!again.Due.Equal(l.Due) ||
			!again.Expires.Equal(l.Expires) || again.TTL != l.TTL || again.Mode != l.Mode || len(again.User) != len(l.User) {
			t.Errorf("resent %+v, want %+v", again, l.Request)
		}
		for name := range l.User {
			if _, ok := h[name]; !ok {
				t.Errorf("the user header %q is not in the letter", name)
			}
		}
	})
}

// TestRefusalsTravel: through each hop, and in its dead letter, a message has the time and the reason of each refusal.
// Without room, the oldest ones go.
func TestRefusalsTravel(t *testing.T) {
	at := time.Date(2026, 11, 28, 15, 20, 1, 123e6, time.UTC)
	r := mustParse(t, "delay.1h.orders.expire")
	var want []message.Refusal
	for n, reason := range []string{"no stock", "no stock", "a | b", "the service says 503"} {
		when := at.Add(time.Duration(n) * time.Minute)
		r = r.WithRefusal(when, when.Add(time.Minute), reason)
		want = append(want, message.Refusal{At: when, Reason: strings.ReplaceAll(reason, "|", "/")})
		again, problem := policy.Parse(incoming(policy.Names.Retry("1s", r.Target), wire(t, r.HopHeader())))
		if n == 2 {
			want[n].Reason = reason // the last one is in a header of its own
		}
		if got := again.Refusals(); problem != nil || !slices.Equal(got, want) {
			t.Fatalf("after %d refusals: got %v, %v, want %v", n+1, got, problem, want)
		}
		want[n].Reason = strings.ReplaceAll(reason, "|", "/")
		r = again
	}
	l, problem := letterOf(t, r, message.Problemf(message.Undelivered, "the service says 503"))
	if got := l.Refusals(); problem != nil || !slices.Equal(got, want) {
		t.Errorf("the dead letter: got %v, %v, want %v", got, problem, want)
	}
	for n := range 100 {
		r = r.WithRefusal(at.Add(time.Duration(n)*time.Hour), at, strings.Repeat("é", 100)+strconv.Itoa(n))
	}
	again, problem := policy.Parse(incoming(policy.Names.Retry("1s", r.Target), wire(t, r.HopHeader())))
	got := again.Refusals()
	if problem != nil || len(got) < 4 || !got[0].At.Equal(at.Add(time.Duration(100-len(got))*time.Hour)) {
		t.Errorf("without room: got %d refusals from %v on, %v; want the latest", len(got), got[0].At, problem)
	}
	forged := r
	forged.EarlierRefusals = "2026-11-28T15:20:01Z a\nb"
	_, problem = policy.Parse(incoming(policy.Names.Retry("1s", r.Target), forged.HopHeader()))
	wantProblem(t, "a forged text", problem, message.BadInternal, "Delay-Refusals")
}
