package message_test

import (
	"fmt"
	"testing"
	"time"

	"delaybroker/broker/message"
)

// TestSpread: of 100,000 reminders for one moment, each is later by less than Delay-Spread and never earlier, and each
// tenth of the time after the moment gets a tenth of them. Each instance computes the same time.
func TestSpread(t *testing.T) {
	const count, limit, places = 100_000, 10 * time.Minute, 10
	moment := at.Add(time.Hour).Truncate(time.Second)
	subject := policy.Names.At(message.TimeToken(moment), "mail.remind")
	for _, name := range []string{"with ids", "without ids"} {
		var counts [places]int
		for i := range count {
			in := incoming(subject, header("Delay-Spread: 10m"))
			in.Sequence = uint64(i + 1)
			if name == "with ids" {
				in.Header[message.HeaderNatsMsgID] = []string{fmt.Sprintf("customer-%d/remind", i)}
			}
			r, problem := policy.Parse(in)
			if again, _ := policy.Parse(in); problem != nil || !again.Due.Equal(r.Due) {
				t.Fatalf("%s: problem %v, due %v and %v", name, problem, r.Due, again.Due)
			}
			part := r.Due.Sub(moment)
			if part < 0 || part >= limit || part%time.Millisecond != 0 {
				t.Fatalf("%s: message %d is later by %s", name, i, part)
			}
			counts[part/(limit/places)]++
		}
		for i, n := range counts {
			if n < count/places*9/10 || n > count/places*11/10 {
				t.Errorf("%s: %d of %d messages are due in part %d of %d", name, n, count, i, places)
			}
		}
	}
}

// TestSpreadByID: the client's id decides the part, and not the stream, the sequence or the tenant's other messages.
func TestSpreadByID(t *testing.T) {
	first := mustParse(t, "delay.1h.x", "Delay-Spread: 10m", "Nats-Msg-Id: order-42")
	in := incoming("delayin.1h.x", header("Delay-Spread: 10m", "Nats-Msg-Id: order-42"))
	in.Sequence, in.Stream = 99, "DELAY_INTAKE"
	again, problem := policy.Parse(in)
	if problem != nil || !again.Due.Equal(first.Due) || !first.Due.After(at.Add(time.Hour)) {
		t.Errorf("due %v and %v, problem %v; want one later time", first.Due, again.Due, problem)
	}
	if zero := mustParse(t, "delay.1h.x", "Delay-Spread: 0s"); !zero.Due.Equal(at.Add(time.Hour)) {
		t.Errorf("without a spread: due %v", zero.Due)
	}
	past := mustParse(t, "delayat.1795000000.x", "Delay-Spread: 10m", "Nats-Msg-Id: order-42")
	if !past.Due.Equal(at) {
		t.Errorf("long past: due %v, want now, %v", past.Due, at)
	}
	// Delay-Expires counts from the due time, and the next lanes keep it.
	r := mustParse(t, "delay.1h.x", "Delay-Spread: 10m", "Nats-Msg-Id: order-42", "Delay-Expires: 1s")
	hop, problem := policy.Parse(incoming(policy.Names.Hop("1m", "x"), wire(t, r.HopHeader())))
	if problem != nil || !hop.Due.Equal(first.Due) || !hop.Expires.Equal(first.Due.Add(time.Second)) {
		t.Errorf("between lanes: due %v, expires %v, problem %v", hop.Due, hop.Expires, problem)
	}
}

func TestSpreadRefused(t *testing.T) {
	for _, tt := range []struct {
		value string
		code  message.Code
		hint  string
	}{
		{"", message.BadOption, "Delay-Spread"}, {"10", message.BadOption, `"10"`}, {"-1m", message.BadOption, `"-1m"`},
		{"1.5s", message.BadOption, `"1.5s"`}, {"20%", message.BadOption, `"20%"`},
		{"366d", message.TooFar, "DELAY_MAX_DELAY"}, {"106751d", message.TooFar, `"106751d"`},
	} {
		r, problem := parse("delay.1h.x", "Delay-Spread: "+tt.value)
		wantProblem(t, "Delay-Spread "+tt.value, problem, tt.code, tt.hint, "Delay-Spread")
		if r.Target != "x" || r.Due.After(at.Add(time.Hour)) {
			t.Errorf("Delay-Spread %q: target %q, due %v", tt.value, r.Target, r.Due)
		}
	}
	p := message.Policy{Names: policy.Names}
	_, problem := p.Parse(incoming("delayat.9999-12-31T23:59:59Z.x", header("Delay-Spread: 1s")))
	wantProblem(t, "the year 10000", problem, message.TooFar, "9999")
}
