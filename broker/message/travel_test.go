package message_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"delaybroker/broker/message"
)

func checkSame(t testing.TB, what string, got, want message.Request) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

// full returns a request with all fields.
func full(t testing.TB) message.Request {
	t.Helper()
	r := mustParse(t, "delay.1h.orders.expire", "traceparent: 00-abc-def-01", "X-Order: 42", "X-Order: 43", "x-order: 44",
		"Nats-Msg-Id: order-42", "Delay-Until: 2026-11-20T12:00:00.123456789Z", "Delay-Expires: 10m",
		"Delay-Deliver: stream", "Delay-TTL: 90s", "Delay-Max-Attempts: 7", "Delay-Rate-Key: shop-1")
	r = r.WithRefusal(at.Add(4*time.Hour), at.Add(5*time.Hour), "no stock")
	r = r.WithOrigin(message.Origin{Series: 7, Round: 3, Scheduler: "schedules.x", ScheduleNext: "purge", Rollup: true})
	return r.WithRefusal(at.Add(5*time.Hour), at.Add(6*time.Hour), "no stock")
}

// paced returns a request with a reserved send time.
func paced(r message.Request) message.Request {
	r.RetryAt, r.Reservation = r.Due.Add(time.Minute), "abc"
	return r
}

func TestHopRoundTrip(t *testing.T) {
	requests := map[string]message.Request{
		"plain":   mustParse(t, "delay.1h.orders.expire"),
		"past":    mustParse(t, "delayat.1.x"),
		"headers": mustParse(t, "delayin.1h.x", "traceparent: 00-abc-def-01", "Empty: "),
		"retried": mustParse(t, "delayin.1h.x").WithRefusal(at, at.Add(time.Minute), "no stock"),
		"full":    full(t),
		"deferred": mustParse(t, "delayin.1h.x").WithRefusal(at, at, "no stock").
			WithDeferral(at.Add(time.Minute), "many messages wait"),
		"paced":    paced(mustParse(t, "delay.1h.x")),
		"ttl only": mustParse(t, "delay.1h.x", "Delay-TTL: never"),
	}
	for what, r := range requests {
		for _, subject := range []string{policy.Names.Hop("2h", r.Target), policy.Names.Retry("30s", r.Target)} {
			in := incoming(subject, wire(t, r.HopHeader()))
			in.Stream, in.Sequence, in.At = "DELAY_2h", 99, at.Add(time.Minute) // must not change the id and Accepted
			got, problem := policy.Parse(in)
			if problem != nil {
				t.Errorf("%s on %s: got the problem %v, want none", what, subject, problem)
				continue
			}
			want := r
			want.Hop++
			checkSame(t, what+" on "+subject, got, want)
			if got, want := got.NextAttempt(), r.NextAttempt(); got != want {
				t.Errorf("%s on %s: next attempt %v, want %v", what, subject, got, want)
			}
		}
	}
}

// TestReasonsAcrossHops: the reason of a refusal becomes one line of at most 256 bytes, which no further hop changes.
// Neither the delivered message nor the dead letter has the header with the reason.
func TestReasonsAcrossHops(t *testing.T) {
	for reason, want := range map[string]string{
		"no stock":                        "no stock",
		"":                                "",
		"\r\nNats-Rollup: all\x00\x7f":    "Nats-Rollup: all",
		"\x1b[2Jna\u00efve":               "[2Jna\u00efve",
		strings.Repeat("é", 200):          strings.Repeat("é", 128),
		"a" + strings.Repeat("é", 200):    "a" + strings.Repeat("é", 127),
		strings.Repeat("x", 255) + "   y": strings.Repeat("x", 255),
		"bad \xff\xfe " + strings.Repeat("y", 300): "bad \ufffd\ufffd " + strings.Repeat("y", 245),
	} {
		r := mustParse(t, "delay.1h.x").WithRefusal(at, at.Add(time.Minute), reason)
		r.AllowedRefusals = 20
		for range 3 {
			in := incoming(policy.Names.Retry("5s", r.Target), wire(t, r.HopHeader()))
			next, problem := policy.Parse(in)
			if problem != nil {
				t.Fatalf("%.20q: %v", reason, problem)
			}
			r = next
		}
		if r.LastError != want || r.AllowedRefusals != 20 {
			t.Errorf("%.20q: got %q of %d, want %q of 20", reason, r.LastError, r.AllowedRefusals, want)
		}
		for what, h := range map[string]message.Header{
			"target":      r.TargetHeader(),
			"dead letter": r.DeadHeader(orProblem(nil)),
		} {
			for _, name := range []string{message.HeaderLastError, message.HeaderDeferred, message.HeaderAllowed} {
				if h[name] != nil {
					t.Errorf("%.20q: the %s has the header %s, want none", reason, what, name)
				}
			}
		}
	}
}

// TestDeferredOrRefused: a deferral does not count as an attempt, and keeps the reason of the last refusal. A refusal
// removes the reason of a deferral, and the reserved send time.
func TestDeferredOrRefused(t *testing.T) {
	refused := mustParse(t, "delay.1s.x").WithRefusal(at, at.Add(time.Second), "no stock")
	deferred := paced(refused).WithDeferral(at.Add(time.Minute), "much\nwaits")
	if deferred.Attempts != 1 || deferred.LastError != "no stock" || deferred.DeferralReason != "much waits" ||
		deferred.Reservation != "" || !deferred.NextAttempt().Equal(at.Add(time.Minute)) {
		t.Errorf("deferred after a refusal: got %+v", deferred)
	}
	again := paced(deferred).WithRefusal(at.Add(time.Minute), at.Add(time.Hour), "still none")
	if again.Attempts != 2 || again.LastError != "still none" || again.DeferralReason != "" || again.Reservation != "" {
		t.Errorf("refused after the deferral: got %+v", again)
	}
}

// TestHeadersDoNotGrow: the state headers of a hop replace those of the previous hop, and each hop has another
// Nats-Msg-Id.
func TestHeadersDoNotGrow(t *testing.T) {
	r := full(t)
	ids := make(map[string]bool)
	var first message.Header
	for n := 1; n <= 50; n++ {
		h := r.HopHeader()
		if n == 1 {
			first = h
		}
		if got, want := slices.Sorted(maps.Keys(h)), slices.Sorted(maps.Keys(first)); !slices.Equal(got, want) {
			t.Fatalf("hop %d: headers %v, want %v", n, got, want)
		}
		if got, want := len(encode(t, h)), len(encode(t, first))+2; got > want { // two counters with two digits
			t.Fatalf("hop %d: %d bytes, want at most %d", n, got, want)
		}
		id := h["Nats-Msg-Id"][0]
		if ids[id] {
			t.Fatalf("hop %d has the id %s of an earlier hop, so a stream would drop it as a duplicate", n, id)
		}
		ids[id] = true
		next, problem := policy.Parse(incoming(policy.Names.Hop("1h", r.Target), wire(t, h)))
		if problem != nil {
			t.Fatalf("hop %d: %v", n, problem)
		}
		if got, want := next.Hop, n; got != want {
			t.Fatalf("hop %d, want %d", got, want)
		}
		r = next
	}
	if ids[r.DeadMsgID()] || ids[r.ID] {
		t.Error("a dead letter or a delivery has the id of a hop")
	}
}

func TestTargetHeader(t *testing.T) {
	r := full(t)
	want := message.Header{
		"traceparent": {"00-abc-def-01"}, "X-Order": {"42", "43"}, "x-order": {"44"},
		"Nats-Msg-Id": {r.ID}, "Nats-TTL": {"90"}, "Delay-Id": {r.ID}, "Delay-Msg-Id": {"order-42"}, "Delay-Attempts": {"2"},
		"Delay-Due": {"2026-11-20T12:00:00.123456789Z"}, "Delay-Accepted": {"2026-11-20T09:00:00.123456789Z"},
		"Delay-Series": {"7"}, "Delay-Round": {"3"}, "Delay-Scheduler": {"schedules.x"}, "Delay-Schedule-Next": {"purge"},
		"Nats-Rollup": {"sub"},
	}
	if got := wire(t, r.TargetHeader()); !reflect.DeepEqual(got, want) {
		t.Errorf("target header %v, want %v", got, want)
	}
	plain := mustParse(t, "delay.1h.x").TargetHeader()
	if got, want := len(plain), 4; got != want {
		t.Errorf("%d headers %v, want %d", got, plain, want)
	}
}

func TestDeadHeader(t *testing.T) {
	r := full(t)
	problem := message.Problemf(message.Undelivered, "the target refused:\r\nNats-Rollup: all\x00")
	h := wire(t, r.DeadHeader(problem))
	for name, want := range map[string]string{
		"Nats-Msg-Id": r.ID + "/0/dead", "Delay-Id": r.ID, "Delay-Error-Code": "undelivered", "Delay-Attempts": "2",
		"Delay-Error": "the target refused:  Nats-Rollup: all ", "Delay-Subject": "delay.1h.orders.expire",
		"X-Order": "42", "Delay-TTL": "90", "Delay-Deliver": "stream", "Delay-Msg-Id": "order-42",
		"Delay-First-Failure": "2026-11-20T13:00:00.123456789Z", "Delay-Last-Failure": "2026-11-20T14:00:00.123456789Z",
	} {
		if got := h[name]; len(got) == 0 || got[0] != strings.TrimRight(want, " ") {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := h["Nats-TTL"]; got != nil {
		t.Errorf("a dead letter has Nats-TTL %q, want none", got)
	}
}

// TestSubjectIsKept: after any number of hops, a dead letter has the subject on which its message was published,
// escaped and truncated to 256 bytes.
func TestSubjectIsKept(t *testing.T) {
	for subject, want := range map[string]string{
		"delay.1h.orders.x": "delay.1h.orders.x", "delay.1h.órders\r\n.x y": "delay.1h.%C3%B3rders%0D%0A.x%20y",
		"delay.1h.50%25": "delay.1h.50%2525",
	} {
		r, problem := policy.Parse(incoming(subject, nil))
		if got := r.DeadHeader(orProblem(problem))["Delay-Subject"][0]; got != want {
			t.Errorf("%q: %q, want %q", subject, got, want)
		}
		r.Target = "x"
		for range 3 {
			if r, problem = policy.Parse(incoming(policy.Names.Hop("1h", "x"), wire(t, r.HopHeader()))); problem != nil {
				t.Fatal(problem)
			}
		}
		if got := r.DeadHeader(orProblem(problem))["Delay-Subject"][0]; got != want {
			t.Errorf("%q after three hops: %q, want %q", subject, got, want)
		}
	}
	for pad := range 8 { // so that the limit is at each byte of an escape
		r, problem := policy.Parse(incoming("delay."+strings.Repeat("a", pad)+strings.Repeat("\x00ÿ%", 2000), nil))
		got := r.DeadHeader(problem)["Delay-Subject"][0]
		if len(got) > 256 || len(got) < 254 {
			t.Errorf("%d bytes, want 254 to 256", len(got))
		}
		if i := strings.LastIndexByte(got, '%'); i > len(got)-3 {
			t.Errorf("the subject ends within an escape: …%s", got[i:])
		}
	}
	forged := full(t)
	forged.Subject = strings.Repeat("x", 257)
	_, problem := policy.Parse(incoming(policy.Names.Hop("1h", "x"), forged.HopHeader()))
	wantProblem(t, "a forged subject", problem, message.BadInternal, "Delay-Subject")
}

// TestHeadersAreFresh: a change of a header that was made from a request changes neither the request nor the headers
// that are made later.
func TestHeadersAreFresh(t *testing.T) {
	r := full(t)
	want := maps.Clone(r.User)
	for _, h := range []message.Header{r.HopHeader(), r.TargetHeader(),
		r.DeadHeader(message.Problemf(message.Expired, "late"))} {
		h["X-Order"] = nil
		h["Nats-Msg-Id"][0] += "+salt"
	}
	if got := r.User; !reflect.DeepEqual(got, want) {
		t.Errorf("the user's headers are now %v, want %v", got, want)
	}
	if got, want := r.HopHeader()["Nats-Msg-Id"][0], r.NatsMsgID(1); got != want {
		t.Errorf("message id %q, want %q", got, want)
	}
}

// TestTargetHeaderAllocations: the headers at the target cost one array of values and a text for each time.
func TestTargetHeaderAllocations(t *testing.T) {
	r, h := mustParse(t, "delay.1h.x"), make(message.Header, 8)
	want := 3.0 // the array, Delay-Accepted and Delay-Due
	if got := testing.AllocsPerRun(1000, func() { clear(h); r.PutTargetHeader(h) }); got != want {
		t.Errorf("%g allocations for the headers %v, want %g", got, h, want)
	}
}
