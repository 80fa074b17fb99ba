package lane

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
)

// TestCompare judges samples of a stream whose first ten messages were read.
func TestCompare(t *testing.T) {
	created, at := time.Unix(1000, 0), time.Unix(2000, 0)
	known, errNoAnswer := History{Created: created, Read: 10, At: at}, errors.New("no answer")
	type sample struct {
		after    time.Duration // since the first sample
		created  time.Duration // difference from the known creation time
		first    uint64
		last     uint64
		isolated bool          // the leader does not hear from a majority
		message  time.Duration // difference of message 10's timestamp from the known one; -1: deleted, -2: no answer
		want     error
	}
	for _, tt := range []struct {
		name    string
		samples []sample
	}{
		{"the same", []sample{{last: 10, want: nil}, {last: 20, want: nil}}},
		{"the last message read is deleted", []sample{{last: 10, message: -1, want: nil}}},
		{"the last message read is purged", []sample{{first: 11, last: 10, message: 5, want: nil}}},
		{"recreated", []sample{{created: 1, last: 20, want: ErrOtherHistory}}},
		{"restored, with new messages", []sample{{last: 20, message: 1, want: ErrOtherHistory}}},
		{"no answer about the message", []sample{{last: 20, message: -2, want: errNoAnswer}}},
		{"truncated", []sample{
			{last: 9, want: ErrUnsureHistory},
			{after: jsapi.QuorumTimeout - 1, last: 9, want: ErrUnsureHistory},
			{after: jsapi.QuorumTimeout, last: 9, want: ErrOtherHistory},
		}},
		{"created earlier", []sample{
			{created: -1, last: 20, want: ErrUnsureHistory},
			{after: jsapi.QuorumTimeout, created: -1, last: 20, want: ErrOtherHistory},
		}},
		{"a deposed leader", []sample{
			{last: 9, want: ErrUnsureHistory},
			{after: jsapi.QuorumTimeout, last: 10, want: nil},
			{after: 2 * jsapi.QuorumTimeout, last: 9, want: ErrUnsureHistory},
		}},
		{"a leader that is cut off", []sample{
			{last: 9, want: ErrUnsureHistory},
			{after: jsapi.QuorumTimeout, last: 9, isolated: true, want: ErrUnsureHistory},
			{after: 3 * jsapi.QuorumTimeout, last: 9, isolated: true, want: ErrUnsureHistory},
			{after: 4 * jsapi.QuorumTimeout, last: 9, want: ErrOtherHistory},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var j Judge
			start := time.Unix(3000, 0)
			for i, l := range tt.samples {
				s := Sample{Received: start.Add(l.after), Created: created.Add(l.created), FirstSeq: l.first, LastSeq: l.last,
					Quorate: !l.isolated}
				got := j.Compare(t.Context(), known, s, func(_ context.Context, seq uint64) (jsapi.Message, error) {
					switch {
					case seq != known.Read:
						t.Errorf("unexpected request for %d", seq)
					case l.message == -1:
						return jsapi.Message{}, jetstream.ErrMsgNotFound
					case l.message == -2:
						return jsapi.Message{}, errNoAnswer
					}
					return jsapi.Message{Time: at.Add(l.message)}, nil
				})
				if got != l.want {
					t.Errorf("sample %d: %v, want %v", i+1, got, l.want)
				}
			}
		})
	}
}

// TestCompareSamples: of two samples around the creation of a consumer, only a later creation time proves that the
// stream was replaced. An older or shorter stream may be the answer of a deposed leader.
func TestCompareSamples(t *testing.T) {
	created := time.Unix(2000, 0)
	earlier := Sample{Created: created, LastSeq: 10}
	for _, tt := range []struct {
		name  string
		later Sample
		want  error
	}{
		{"the same", Sample{Created: created.UTC(), LastSeq: 10}, nil},
		{"longer", Sample{Created: created, LastSeq: 11}, nil},
		{"shorter", Sample{Created: created, LastSeq: 9}, ErrUnsureHistory},
		{"created earlier", Sample{Created: created.Add(-1), LastSeq: 11}, ErrUnsureHistory},
		{"created later", Sample{Created: created.Add(1), LastSeq: 9}, ErrOtherHistory},
	} {
		if got := compareSamples(earlier, tt.later); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestQuorate: a leader counts itself and the peers from which it has recently heard. A leader that was suspended for
// the time of an election has heard from none. An answer without a leader is not quorate.
func TestQuorate(t *testing.T) {
	peer := func(active time.Duration, current, offline bool) *jetstream.PeerInfo {
		return &jetstream.PeerInfo{Active: active, Current: current, Offline: offline}
	}
	active, silent, offline, unknown := peer(time.Second, true, false), peer(jsapi.MaxUnheard, true, false),
		peer(time.Second, true, true), peer(0, false, false)
	for _, tt := range []struct {
		name    string
		cluster jetstream.ClusterInfo
		want    bool
	}{
		{"alone", jetstream.ClusterInfo{Leader: "a"}, true},
		{"no leader", jetstream.ClusterInfo{Replicas: []*jetstream.PeerInfo{active, active}}, false},
		{"all", jetstream.ClusterInfo{Leader: "a", Replicas: []*jetstream.PeerInfo{active, active}}, true},
		{"one of two is silent", jetstream.ClusterInfo{Leader: "a", Replicas: []*jetstream.PeerInfo{active, silent}}, true},
		{"a lagging one is active",
			jetstream.ClusterInfo{Leader: "a", Replicas: []*jetstream.PeerInfo{silent, peer(1, false, false)}}, true},
		{"both are silent", jetstream.ClusterInfo{Leader: "a", Replicas: []*jetstream.PeerInfo{silent, silent}}, false},
		{"both are offline", jetstream.ClusterInfo{Leader: "a", Replicas: []*jetstream.PeerInfo{offline, offline}}, false},
		{"both are unknown", jetstream.ClusterInfo{Leader: "a", Replicas: []*jetstream.PeerInfo{unknown, unknown}}, false},
		{"two of four", jetstream.ClusterInfo{Leader: "a", Replicas: []*jetstream.PeerInfo{active, silent, silent}}, false},
	} {
		if got := jsapi.Quorate(&tt.cluster); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
