package message

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// stateOf returns a request with every field, as a lane stores it.
func stateOf(t testing.TB) Request {
	t.Helper()
	at := time.Date(2026, 11, 20, 9, 0, 0, 123456789, time.UTC)
	return Request{
		ID: "DELAY_30m-1234-1732060800000000000", Subject: "delay.30m.orders.x", Accepted: at, Due: at.Add(time.Hour),
		Target: "orders.x", Mode: ModeStream, Expires: at.Add(2 * time.Hour), TTL: "90", MsgID: "order-42", MaxAttempts: 7,
		RateKey: "shop-1", Hop: 3, Attempts: 2, FirstFailure: at, LastFailure: at.Add(1), RetryAt: at.Add(time.Minute),
		Reservation: "abc", ResumedPause: "p1", LastError: "no stock", DeferralReason: "many wait", AllowedRefusals: 5,
	}.WithOrigin(Origin{Series: 7, Round: 3, Scheduler: "schedules.x", ScheduleNext: "purge", Rollup: true})
}

// readHop parses the state of a hop to the target of stateOf.
func readHop(state string, user Header) (Request, *Problem) {
	r, f := Policy{}.ReadState(Request{Target: "orders.x", User: user},
		Block{Delay: map[string][]string{HeaderState: {state}, HeaderMsgID: {"order-42"}}}, InLane)
	return r, f.Problem
}

// TestStateRefused: a state that no broker writes is a problem. That holds for every text, time and number of the wrong
// form, for a missing field, and for a state that ends early or late.
func TestStateRefused(t *testing.T) {
	good := stateOf(t).HopHeader()[HeaderState][0]
	want := stateOf(t)
	want.Hop++
	if got, problem := readHop(good, nil); problem != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v, want %+v", got, problem, want)
	}
	for i := range len(good) {
		if _, problem := readHop(good[:i], nil); problem == nil {
			t.Errorf("the first %d bytes of a state are accepted", i)
		}
	}
	for _, state := range []string{"", "1", "1 ", "0 " + good[2:], "-1 " + good[2:], "one " + good[2:], good[2:],
		good + "A", good + "=", good + " x", "1 " + strings.Repeat("A", maxState)} {
		if _, problem := readHop(state, nil); problem == nil || problem.Code != BadInternal {
			t.Errorf("%.20q: got %v, want %s", state, problem, BadInternal)
		}
	}
	encoded, err := stateEncoding.DecodeString(good[2:])
	if err != nil {
		t.Fatal(err)
	}
	for what, b := range map[string]string{
		"an unknown field": string(encoded) + "\xc8", "a field twice": string(encoded) + string(encoded),
		"a time after the year 9999": "\x09\xfe\xff\xff\xff\xff\xff\xff\x01\x00",
		"a number of eleven bytes":   "\x11\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		"a text beyond the end":      "\x02\x09auto",
	} {
		if _, problem := readHop("1 "+stateEncoding.EncodeToString([]byte(b)), nil); problem == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	for what, change := range map[string]func(r *Request){
		HeaderID: func(r *Request) { r.ID = "DELAY_1h-01-1" }, HeaderAccepted: func(r *Request) { r.Accepted = time.Time{} },
		HeaderDue: func(r *Request) { r.Due = time.Time{} }, HeaderHop: func(r *Request) { r.Hop = -1 },
		HeaderDeliver: func(r *Request) { r.Mode = "Core" }, HeaderTTL: func(r *Request) { r.TTL = "1m" },
		HeaderRateKey:      func(r *Request) { r.RateKey = "a b" },
		HeaderSubject:      func(r *Request) { r.Subject = strings.Repeat("x", 257) },
		HeaderPaced:        func(r *Request) { r.Reservation = strings.Repeat("x", 33) },
		HeaderReleased:     func(r *Request) { r.ResumedPause = strings.Repeat("x", 33) },
		HeaderLastError:    func(r *Request) { r.LastError = "a\nb" },
		HeaderDeferred:     func(r *Request) { r.DeferralReason = " a" },
		HeaderScheduleNext: func(r *Request) { *r = r.WithOrigin(Origin{ScheduleNext: strings.Repeat("x", 33)}) },
	} {
		r := stateOf(t)
		change(&r)
		_, problem := readHop(r.HopHeader()[HeaderState][0], nil)
		if problem == nil || problem.Code != BadInternal || !strings.HasPrefix(problem.Sentence, what+": ") {
			t.Errorf("%s: got %v, want %s", what, problem, BadInternal)
		}
	}
}

// FuzzState: any state is refused, or is equal after another hop.
func FuzzState(f *testing.F) {
	f.Add(stateOf(f).HopHeader()[HeaderState][0])
	f.Add(stateOf(f).MarkerHeader()[HeaderState][0])
	f.Add("1 CQAA")
	f.Fuzz(func(t *testing.T, state string) {
		r, problem := readHop(state, nil)
		if problem != nil {
			return
		}
		again, problem := readHop(r.HopHeader()[HeaderState][0], nil)
		if r.Hop++; problem != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("after another hop: got %+v, %v, want %+v", again, problem, r)
		}
	})
}
