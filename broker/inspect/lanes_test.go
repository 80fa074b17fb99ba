package inspect

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/stats"
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

// TestResolveUnknown: an unknown owner is nobody only if no broker reads a lane. A broker whose memory is full
// runs, too.
func TestResolveUnknown(t *testing.T) {
	for other, want := range map[Owner]Owner{
		OwnerReads: OwnerUnknown, OwnerWaits: OwnerUnknown, OwnerStopped: NoOwner, NoOwner: NoOwner,
	} {
		lanes := []Lane{{Reader: Reader{Owner: OwnerUnknown}}, {Reader: Reader{Owner: other}}}
		if resolveUnknown(lanes); lanes[0].Owner != want {
			t.Errorf("beside an owner that is %q: got %q, want %q", other, lanes[0].Owner, want)
		}
	}
}

func TestIsRead(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) *time.Time { return new(now.Add(-d)) }
	consumer := func(name string, waiting int, last *time.Time) jetstream.ConsumerInfo {
		return jetstream.ConsumerInfo{Name: name, NumWaiting: waiting, Delivered: jetstream.SequenceInfo{Last: last}}
	}
	for _, test := range []struct {
		name     string
		consumer jetstream.ConsumerInfo
		want     bool
	}{
		{"a waiting pull", consumer("delaybroker-x", 1, nil), true},
		{"a recent delivery", consumer("delaybroker-x", 0, ago(time.Second)), true},
		{"an old delivery", consumer("delaybroker-x", 0, ago(time.Minute)), false},
		{"no delivery", consumer("delaybroker-x", 0, nil), false},
		{"a foreign consumer", consumer("where-x", 1, nil), false},
	} {
		if got := isRead(now, []jetstream.ConsumerInfo{test.consumer}); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
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
