package inspect

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
)

// TestOwnerState: the status of the instance that claims a lane determines the state of the lane's reader.
func TestOwnerState(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		lane stats.LaneAnswer
		want Owner
	}{
		{stats.LaneAnswer{Live: true}, OwnerReads},
		{stats.LaneAnswer{Live: true, ResumesAt: now.Add(time.Minute)}, OwnerWaits},
		{stats.LaneAnswer{Live: true, ResumesAt: now.Add(-time.Minute)}, OwnerReads},
		{stats.LaneAnswer{Live: true, Full: true}, OwnerWaits},
		{stats.LaneAnswer{Live: true, InDoubt: true}, OwnerStopped},
		{stats.LaneAnswer{ResumesAt: now.Add(time.Minute)}, OwnerStopped},
	} {
		if got := ownerState(test.lane, now); got != test.want {
			t.Errorf("%+v: got %q, want %q", test.lane, got, test.want)
		}
	}
}

// TestOwnerWithoutStatus: without a sealed status of its owner, a lane has an owner that is unknown if a fresh claim
// names an instance that did not answer, or if the claim cannot be read.
func TestOwnerWithoutStatus(t *testing.T) {
	refused := errors.New("refused")
	for _, test := range []struct {
		name     string
		answers  []stats.InstanceStatus
		working  string
		err      error
		owner    Owner
		instance string
	}{
		{"no claim", nil, "", nil, NoOwner, ""},
		{"an unreadable claim", nil, "", refused, OwnerUnknown, ""},
		{"a claim of a silent instance", nil, "a", nil, OwnerUnknown, "a"},
		{"a claim of an instance without this lane", []stats.InstanceStatus{{Instance: "a"}}, "a", nil, NoOwner, ""},
	} {
		l := Lane{Stream: "DELAY_5s", Kind: streams.Level, State: Serving, Info: &jetstream.StreamInfo{}}
		l.setOwner(Instances{ProvenAnswers: test.answers}, test.working, test.err)
		if l.Owner != test.owner || l.Instance != test.instance {
			t.Errorf("%s: got %q of %q, want %q of %q", test.name, l.Owner, l.Instance, test.owner, test.instance)
		}
	}
}

func TestIsFull(t *testing.T) {
	for _, test := range []struct {
		maxMsgs, maxBytes int64
		msgs, bytes       uint64
		want              bool
	}{
		{-1, -1, 1 << 40, 1 << 60, false},
		{0, 0, 1, 1, false},
		{100, -1, 97, 0, false},
		{100, -1, 98, 0, true},
		{-1, 1000, 1, 979, false},
		{-1, 1000, 1, 980, true},
	} {
		info := &jetstream.StreamInfo{
			Config: jetstream.StreamConfig{MaxMsgs: test.maxMsgs, MaxBytes: test.maxBytes},
			State:  jetstream.StreamState{Msgs: test.msgs, Bytes: test.bytes},
		}
		if got := IsFull(info); got != test.want {
			t.Errorf("%s: got %v, want %v", fmt.Sprintf("%+v", test), got, test.want)
		}
	}
}

// TestRates: SetRates computes the rates from two snapshots.
func TestRates(t *testing.T) {
	now := time.Now()
	snapshot := func(at time.Duration, last, held uint64) Lanes {
		return Lanes{Lanes: []Lane{{Stream: "a", Pending: held, Info: &jetstream.StreamInfo{
			TimeStamp: now.Add(at), Created: now.Add(-time.Hour), State: jetstream.StreamState{LastSeq: last, Msgs: held},
		}}}}
	}
	first, second := snapshot(0, 100, 60), snapshot(2*time.Second, 140, 50)
	second.SetRates(first)
	if l := second.Lanes[0]; *l.InRate != 20 || *l.OutRate != 25 {
		t.Errorf("got %v in and %v out a second, want 20 and 25", *l.InRate, *l.OutRate)
	}
	recreated := snapshot(4*time.Second, 1, 1)
	recreated.Lanes[0].Info.Created = now
	if recreated.SetRates(second); recreated.Lanes[0].InRate != nil {
		t.Errorf("got the rate %v of a stream that was created again, want none", *recreated.Lanes[0].InRate)
	}
	single := snapshot(0, 1, 1)
	if single.SetRates(Lanes{}); single.Lanes[0].InRate != nil {
		t.Error("got a rate from one snapshot, want none")
	}
}
