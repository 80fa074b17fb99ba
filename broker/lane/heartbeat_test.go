package lane

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

func TestRequestTimes(t *testing.T) {
	const day = 24 * time.Hour
	for _, tt := range []struct {
		name               string
		delay              time.Duration
		tail, clustered    bool
		heartbeat, expires time.Duration
	}{
		{"not at the tail", 2 * time.Hour, false, false, time.Second, 30 * time.Second},
		{"not at the tail of a cluster", 2 * time.Hour, false, true, time.Second, 30 * time.Second},
		{"one server", time.Second, true, false, 10 * time.Minute, 40 * time.Minute},
		{"one server, intake", 0, true, false, 10 * time.Minute, 40 * time.Minute},
		{"intake of a cluster", 0, true, true, time.Second, 30 * time.Second},
		{"never under 1 s", 3 * time.Second, true, true, time.Second, 30 * time.Second},
		{"just at 1 s", 4 * time.Second, true, true, time.Second, 30 * time.Second},
		{"a quarter", 24 * time.Second, true, true, 6 * time.Second, 30 * time.Second},
		{"longer", 40 * time.Second, true, true, 10 * time.Second, 40 * time.Second},
		{"just at a minute", 4 * time.Minute, true, true, time.Minute, 4 * time.Minute},
		{"never over a minute", 30 * day, true, true, time.Minute, 4 * time.Minute},
	} {
		heartbeat, expires := requestTimes(tt.delay, tt.tail, tt.clustered)
		if heartbeat != tt.heartbeat || expires != tt.expires {
			t.Errorf("%s: %s, %s; want %s, %s", tt.name, heartbeat, expires, tt.heartbeat, tt.expires)
		}
		if expires < heartbeat {
			t.Errorf("%s: a request expires before its first heartbeat", tt.name)
		}
	}
}

// TestLags: only a consumer that has lacked a message of the leader for two seconds lags.
func TestLags(t *testing.T) {
	start := time.Unix(1000, 0)
	type answer struct {
		after   time.Duration
		lacking bool // the leader has a message that the consumer lacks
		want    bool
	}
	for _, tt := range []struct {
		name    string
		answers []answer
	}{
		{"no message lacks", []answer{{0, false, false}, {time.Hour, false, false}}},
		{"a message lacks", []answer{{0, true, false}, {2*time.Second - 1, true, false}, {2 * time.Second, true, true}}},
		{"deleted in between",
			[]answer{{0, true, false}, {time.Second, false, false}, {2 * time.Second, true, false},
				{4 * time.Second, true, true}}},
	} {
		p := new(pull)
		for i, a := range tt.answers {
			if got := p.lags(a.lacking, start.Add(a.after)); got != a.want {
				t.Errorf("%s, answer %d: %v, want %v", tt.name, i, got, a.want)
			}
		}
	}
}

// TestMustCompare: some heartbeats make a reader ask the leader for messages that the consumer lacks. Without these
// requests, a reader with a consumer on a lagging replica would wait for as long as the replica lags.
func TestMustCompare(t *testing.T) {
	now := time.Unix(1000, 0)
	old, recent := now.Add(-compareInterval), now.Add(1-compareInterval)
	for _, tt := range []struct {
		name    string
		p       pull
		skipped bool
		want    bool
	}{
		{"one server, at the tail", pull{tail: true, comparedAt: old}, false, false},
		{"one server, not at the tail", pull{comparedAt: recent}, false, true},
		{"one server, skipped sequences", pull{tail: true, comparedAt: recent}, true, true},
		{"a cluster, at the tail", pull{clustered: true, tail: true, comparedAt: old}, false, true},
		{"a cluster, at the tail, asked recently", pull{clustered: true, tail: true, comparedAt: recent}, false, false},
		{"a cluster, lacking one", pull{clustered: true, tail: true, comparedAt: recent, lackingSince: recent}, false, true},
		{"a cluster, not at the tail", pull{clustered: true, comparedAt: recent}, false, true},
	} {
		tt.p.r = new(Reader)
		if got := tt.p.mustCompare(tt.skipped, now); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestBytesOfARequest: a reader requests the bytes of its buffer or, if the next message is larger, the maximum size of
// a message. The server would answer every smaller request with 409.
func TestBytesOfARequest(t *testing.T) {
	for _, tt := range []struct {
		buffer      int
		max         int32
		want, large int
	}{
		{256 << 10, 1 << 20, 256 << 10, 1<<20 + 8<<10},
		{64 << 10, 64 << 20, 64 << 10, 64<<20 + 8<<10},
		{1 << 20, 1000, 1 << 20, 1 << 20},
	} {
		p := newPull(&Reader{cfg: ReaderConfig{Buffer: tt.buffer}},
			&jetstream.StreamInfo{Config: jetstream.StreamConfig{MaxMsgSize: tt.max}}, 1)
		got := p.bytes()
		p.nextIsLarge = true
		if large := p.bytes(); got != tt.want || large != tt.large {
			t.Errorf("messages of up to %d bytes, a buffer of %d: %d bytes, and %d if the next is large; want %d and %d",
				tt.max, tt.buffer, got, large, tt.want, tt.large)
		}
	}
}

// TestLeaderIsRemote distinguishes a leader that is the connection's own server from a leader that can stop without an
// event on the connection.
func TestLeaderIsRemote(t *testing.T) {
	for _, test := range []struct {
		cluster *jetstream.ClusterInfo
		want    bool
	}{
		{nil, false},
		{&jetstream.ClusterInfo{Leader: "ours"}, false},
		{&jetstream.ClusterInfo{Leader: "behind a leaf node"}, true},
		{&jetstream.ClusterInfo{Name: "C", Leader: "ours"}, true},
	} {
		if got := leaderIsRemote(&jetstream.StreamInfo{Cluster: test.cluster}, "ours"); got != test.want {
			t.Errorf("%+v: remote %v, want %v", test.cluster, got, test.want)
		}
	}
}
