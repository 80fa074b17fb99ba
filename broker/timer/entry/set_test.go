package entry

import (
	"testing"
	"time"

	"delaybroker/broker/message"
)

// TestEntriesKeepToken: the token of a set is in its firing and in its outcome. The token of a cancel is in the cancel,
// with the generation that it certainly replaced.
func TestEntriesKeepToken(t *testing.T) {
	t.Parallel()
	names, err := message.NewNames(message.DefaultPrefix)
	if err != nil {
		t.Fatal(err)
	}
	p := message.Policy{Names: names}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	entry := func(sequence uint64, h message.Header) Entry {
		return Parse(p, message.Incoming{
			Stream: names.TimersStream(), Sequence: sequence, At: at, Subject: "delaytimer.k.orders.x", Header: h,
		})
	}
	set := entry(5, message.Header{message.HeaderFor: {"1h"}, message.HeaderWord: {"mine"}})
	fired := entry(6, set.FiredHeader(5, "me"))
	over := entry(7, fired.OverHeader(5, 6, Delivered))
	for name, e := range map[string]Entry{"set": set, "fired": fired, "over": over} {
		if e.Token != "mine" || e.Generation != 5 || e.Problem != nil || !e.Request.Due.Equal(at.Add(time.Hour)) {
			t.Errorf("the entry %s is parsed as %+v", name, e)
		}
	}
	moved := entry(8, MoveHeader(message.Header{
		"delay-until": {"2026-06-01T00:00:00Z"}, "Delay-Word": {"mine"}, "X-Mine": {"yes"}, "Nats-Msg-Id": {"id"},
		"Nats-Expected-Last-Subject-Sequence": {"4"}, "Delay-Expires": {"5m"},
	}, message.HeaderFor, "2h", 5, "theirs"))
	if r := moved.Request; moved.Token != "theirs" || !r.Due.Equal(at.Add(2*time.Hour)) || r.MsgID != "id" ||
		len(r.User["X-Mine"]) != 1 || !r.Expires.Equal(r.Due.Add(5*time.Minute)) {
		t.Errorf("the moved timer is parsed as %+v", moved)
	}
	if e := entry(8, CancelHeader(5, "mine")); e.Kind != Cancel || e.Token != "mine" || e.Cancelled != 5 {
		t.Errorf("the cancel is parsed as %+v", e)
	}
	for name, h := range map[string]message.Header{
		"no expectation": {message.HeaderCancel: {"mine"}},
		"another subject": {
			message.HeaderCancel: {"mine"}, message.HeaderExpected: {"5"}, headerExpectedSubject: {"delaytimer.other.x"},
		},
		"lower case":     {message.HeaderCancel: {"mine"}, "nats-expected-last-subject-sequence": {"5"}},
		"invalid number": {message.HeaderCancel: {"mine"}, message.HeaderExpected: {"five"}},
	} {
		if e := entry(8, h); e.Kind != Cancel || e.Cancelled != 0 {
			t.Errorf("a cancel with %s is parsed as %+v, want no cancelled generation", name, e)
		}
	}
}
