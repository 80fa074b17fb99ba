package lane

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
)

// TestVerdict judges samples of a stream whose first ten messages were read.
func TestVerdict(t *testing.T) {
	created, at := time.Unix(1000, 0), time.Unix(2000, 0)
	known := History{Created: created, Read: 10, At: at}
	type look struct {
		after   time.Duration // since the first look
		created time.Duration // difference from the known creation time
		first   uint64
		last    uint64
		distant bool          // the leader does not hear from a majority
		message time.Duration // difference of message 10's timestamp from the known one; -1: deleted, -2: no answer
		want    Verdict
	}
	for _, tt := range []struct {
		name  string
		looks []look
	}{
		{"the same", []look{{last: 10, want: Same}, {last: 20, want: Same}}},
		{"the last read is gone", []look{{last: 10, message: -1, want: Same}}},
		{"purged behind it", []look{{first: 11, last: 10, message: 5, want: Same}}},
		{"created again", []look{{created: 1, last: 20, want: Other}}},
		{"restored, and written on", []look{{last: 20, message: 1, want: Other}}},
		{"no answer about it", []look{{last: 20, message: -2, want: Unsure}}},
		{"cut back", []look{
			{last: 9, want: Unsure}, {after: staleFor - 1, last: 9, want: Unsure}, {after: staleFor, last: 9, want: Other},
		}},
		{"created before",
			[]look{{created: -1, last: 20, want: Unsure}, {after: staleFor, created: -1, last: 20, want: Other}}},
		{"a leader of the past",
			[]look{{last: 9, want: Unsure}, {after: staleFor, last: 10, want: Same},
				{after: 2 * staleFor, last: 9, want: Unsure}}},
		{"a leader that is cut off", []look{
			{last: 9, want: Unsure}, {after: staleFor, last: 9, distant: true, want: Unsure},
			{after: 3 * staleFor, last: 9, distant: true, want: Unsure},
			{after: 4 * staleFor, last: 9, want: Other},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var j Judge
			start := time.Unix(3000, 0)
			for i, l := range tt.looks {
				s := Sample{Received: start.Add(l.after), Created: created.Add(l.created), FirstSeq: l.first, LastSeq: l.last,
					Quorate: !l.distant}
				got, err := j.Verdict(t.Context(), known, s, func(_ context.Context, seq uint64) (jsapi.Message, error) {
					switch {
					case seq != known.Read:
						t.Errorf("unexpected request for %d", seq)
					case l.message == -1:
						return jsapi.Message{}, jetstream.ErrMsgNotFound
					case l.message == -2:
						return jsapi.Message{}, errors.New("no answer")
					}
					return jsapi.Message{Time: at.Add(l.message)}, nil
				})
				if got != l.want || (err != nil) != (l.message == -2) {
					t.Errorf("look %d: %v, %v; want %v", i+1, got, err, l.want)
				}
			}
		})
	}
}

// TestQuorate: a leader counts itself and the peers from which it has recently heard. An answer without a leader is not
// quorate.
func TestQuorate(t *testing.T) {
	peer := func(active time.Duration, current, offline bool) *jetstream.PeerInfo {
		return &jetstream.PeerInfo{Active: active, Current: current, Offline: offline}
	}
	heard, silent, away, never := peer(time.Second, true, false), peer(staleFor, false, false),
		peer(time.Second, true, true), peer(0, false, false)
	for _, tt := range []struct {
		name    string
		cluster jetstream.ClusterInfo
		want    bool
	}{
		{"alone", jetstream.ClusterInfo{Leader: "a"}, true},
		{"no leader", jetstream.ClusterInfo{Replicas: []*jetstream.PeerInfo{heard, heard}}, false},
		{"all", jetstream.ClusterInfo{Leader: "a", Replicas: []*jetstream.PeerInfo{heard, heard}}, true},
		{"one of two is silent", jetstream.ClusterInfo{Leader: "a", Replicas: []*jetstream.PeerInfo{heard, silent}}, true},
		{"behind, but heard",
			jetstream.ClusterInfo{Leader: "a", Replicas: []*jetstream.PeerInfo{silent, peer(1, false, false)}}, true},
		{"both are silent", jetstream.ClusterInfo{Leader: "a", Replicas: []*jetstream.PeerInfo{silent, silent}}, false},
		{"both are offline", jetstream.ClusterInfo{Leader: "a", Replicas: []*jetstream.PeerInfo{away, away}}, false},
		{"never heard of", jetstream.ClusterInfo{Leader: "a", Replicas: []*jetstream.PeerInfo{never, never}}, false},
		{"two of four", jetstream.ClusterInfo{Leader: "a", Replicas: []*jetstream.PeerInfo{heard, silent, silent}}, false},
	} {
		if got := quorate(&tt.cluster); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
