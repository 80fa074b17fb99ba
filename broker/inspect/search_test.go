package inspect

import (
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker/message"
)

// TestSearchReportsProgress: a search reports its progress after each ProgressInterval, and not before the first.
func TestSearchReportsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported []uint64
		s := search{progress: func(searched, _ uint64) { reported = append(reported, searched) }}
		s.progressLimit.Allow(ProgressInterval)
		for range searchBatch {
			s.count()
		}
		if len(reported) != 0 {
			t.Errorf("got the progress %v immediately, want none before %s", reported, ProgressInterval)
		}
		time.Sleep(ProgressInterval)
		for range searchBatch {
			s.count()
		}
		if len(reported) != 1 || reported[0] != 2*searchBatch {
			t.Errorf("got the progress %v, want %d", reported, 2*searchBatch)
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
		{Lane{Reader: Reader{Owner: NoOwner}}, "no instance reads its lane"},
		{Lane{Reader: Reader{Owner: OwnerStopped, Instance: "k"}}, "k cannot read its lane now"},
		{Lane{Reader: Reader{Owner: OwnerReads, LastRead: 10}}, "being delivered, or delivered and not yet removed"},
		{Lane{Reader: Reader{Owner: OwnerReads, LastRead: 9, Instance: "k"}}, "k has not read it yet"},
		{Lane{Reader: Reader{Owner: OwnerUnknown}}, "being delivered, or delivered and not yet removed, or not read yet"},
	} {
		if got := explain(test.lane); got != test.want {
			t.Errorf("%+v: got %q, want %q", test.lane, got, test.want)
		}
	}
}
