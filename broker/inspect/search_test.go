package inspect

import (
	"fmt"
	"slices"
	"testing"

	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/broker/timer/entry"
	"delaybroker/test/natstest"
)

// TestSearchReportsProgress: a search reports its progress after each searchBatch.
func TestSearchReportsProgress(t *testing.T) {
	var reported []uint64
	s := search{progress: func(searched, _ uint64) { reported = append(reported, searched) }}
	for range 2*searchBatch + 1 {
		s.count()
	}
	if want := []uint64{searchBatch, 2 * searchBatch}; !slices.Equal(reported, want) {
		t.Errorf("got the progress %v, want %v", reported, want)
	}
}

// TestWhereIgnoresForgedEntries: an entry of the timers' stream counts only with a broker's seal. A client's entry with
// the Delay-Id of another message does not hide that message.
func TestWhereIgnoresForgedEntries(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := configOf(t, "delay", "1s 1h")
		cfg.Timers = true
		createStreams(t, s, cfg)
		i := open(t, s, cfg, "")
		if err := i.ReadKeys(t.Context()); err != nil {
			t.Fatal(err)
		}
		storeAll(t, i, newMsg("delaytimer.a.orders.x", "Delay-For", "1h"))
		in, err := i.Message(t.Context(), "DELAY_TIMERS", 1)
		if err != nil {
			t.Fatal(err)
		}
		timer := entry.Parse(i.Policy(), in)
		fired := &nats.Msg{Subject: in.Subject, Header: nats.Header(timer.FiredHeader(1, "kitchen"))}
		i.Policy().Keys.SealMessage(fired.Subject, message.Header(fired.Header), nil)
		hop := newHop(i, "1h", "orders.a", 7, time.Now().Add(time.Hour))
		id := message.ClaimOf(message.Header(hop.Header)).ID
		later := message.ID{Stream: "DELAY_INTAKE", Sequence: 7, At: time.Now().Add(time.Second)}.String()
		var forged []*nats.Msg
		for n, id := range []string{later, id, timer.ID} {
			key := fmt.Sprint("delaytimer.forged-", n)
			forged = append(forged, newMsg(key+".orders.x", "Delay-For", "1h", "Delay-Id", id),
				newMsg(key+"-fired.orders.x", "Delay-Fired", "1 kitchen", "Delay-Id", id))
		}
		storeAll(t, i, append(forged, hop)...)
		if _, err := i.JetStream.PublishMsg(t.Context(), fired); err != nil {
			t.Fatal(err)
		}
		if err := i.api.PurgeBelow(t.Context(), "DELAY_TIMERS", "", 2); err != nil { // as a broker removes the set
			t.Fatal(err)
		}
		for _, test := range []struct{ ref, stream, id string }{
			{id, "DELAY_1h", id}, {"DELAY_INTAKE-7", "DELAY_1h", id}, {timer.ID, "DELAY_TIMERS", timer.ID},
		} {
			ref, err := ParseMessageRef(test.ref)
			if err != nil {
				t.Fatal(err)
			}
			w, err := i.Where(t.Context(), ref, 1000, func(uint64, uint64) {})
			if err != nil || w.Stream != test.stream || w.ID != test.id ||
				w.Stream == "DELAY_TIMERS" && w.Answer != "fired by kitchen, not yet delivered" {
				t.Errorf("%s: got %+v, %v, want %s in %s", test.ref, w, err, test.id, test.stream)
			}
		}
	})
}

// TestParseMessageRef parses a complete Delay-Id, and the stream and sequence of an acknowledgement.
func TestParseMessageRef(t *testing.T) {
	complete := message.ID{Stream: "DELAY_5s", Sequence: 7, At: time.Unix(0, 1732060800000000000).UTC()}
	for _, test := range []struct {
		text string
		want MessageRef
		ok   bool
	}{
		{complete.String(), MessageRef{ID: complete}, true},
		{"DELAY_INTAKE-29", MessageRef{ID: message.ID{Stream: "DELAY_INTAKE", Sequence: 29}, Partial: true}, true},
		{"DELAY_INTAKE-0", MessageRef{}, false},
		{"DELAY_INTAKE-", MessageRef{}, false},
		{"-3", MessageRef{}, false},
		{"DELAY INTAKE-3", MessageRef{}, false},
		{"DELAY.INTAKE-3", MessageRef{}, false},
		{"42", MessageRef{}, false},
	} {
		got, err := ParseMessageRef(test.text)
		if (err == nil) != test.ok || got != test.want {
			t.Errorf("%q: got %+v, %v, want %+v", test.text, got, err, test.want)
		}
	}
}

// TestSilentStreams: while a stream does not answer, the search does not report that a message was never accepted.
func TestSilentStreams(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := configOf(t, "delay", "1s")
		createStreams(t, s, cfg)
		searched := search{Inspector: open(t, s, cfg, ""), maxRead: 1000, MessageRef: MessageRef{
			ID: message.ID{Stream: "DELAY_5s", Sequence: 1}}}
		v := Lanes{Lanes: []Lane{newLane(streams.Spec{Stream: "DELAY_5s"}, Silent)}}
		w, err := searched.find(t.Context(), v)
		const want = "not found, but these streams did not answer, and may have it: DELAY_5s"
		if err != nil || w.Answer != want {
			t.Errorf("got %q, %v, want %q", w.Answer, err, want)
		}
	})
}

// TestSearchEndsAtMost: a search reads no more headers than it may, over all lanes. Only if it has left out a message,
// it says that there may be more.
func TestSearchEndsAtMost(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := configOf(t, "delay", "1s 1h")
		createStreams(t, s, cfg)
		i := open(t, s, cfg, "")
		storeAll(t, i,
			newHop(i, "1h", "orders.a", 7, time.Now().Add(time.Hour)),
			newHop(i, "1s", "orders.b", 8, time.Now().Add(time.Second)))
		for maxRead, want := range map[uint64]string{
			1: "not among the first 1 messages; raise --most to search more",
			2: "neither in a lane nor a dead letter: never accepted: the last sequence of DELAY_1s is 1",
		} {
			ref := MessageRef{ID: message.ID{Stream: "DELAY_1s", Sequence: 99}, Partial: true}
			w, err := i.Where(t.Context(), ref, maxRead, func(uint64, uint64) {})
			if err != nil || w.Searched != maxRead || w.Answer != want {
				t.Errorf("at most %d: %d read, %q, %v; want %q", maxRead, w.Searched, w.Answer, err, want)
			}
		}
	})
}

// TestExplainOverdue: the text names the owner of the lane, and says whether the owner has read the message.
func TestExplainOverdue(t *testing.T) {
	explain := func(l Lane) string {
		l.Stream = "DELAY_1s"
		return Lanes{Lanes: []Lane{l}}.explainOverdue(message.Incoming{Stream: "DELAY_1s", Sequence: 10})
	}
	for _, test := range []struct {
		lane Lane
		want string
	}{
		{Lane{Owner: NoOwner}, "no instance reads its lane"},
		{Lane{Owner: OwnerStopped, Instance: "k"}, "k cannot work its lane now"},
		{Lane{Owner: OwnerReads, LastRead: 10}, "being delivered, or delivered and not yet removed"},
		{Lane{Owner: OwnerReads, LastRead: 9, Instance: "k"}, "k has not read it yet"},
		{Lane{Owner: OwnerUnknown}, "being delivered, or delivered and not yet removed, or not read yet"},
	} {
		if got := explain(test.lane); got != test.want {
			t.Errorf("%+v: got %q, want %q", test.lane, got, test.want)
		}
	}
}
