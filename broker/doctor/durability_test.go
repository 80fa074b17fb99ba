package doctor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Parts of the expected sentences.
const (
	unsynced   = "loses the messages since the last fsync (sync_interval, 2 minutes by default)"
	keptByOne  = "a crash loses nothing; a power cut " + unsynced + "; a failed disk loses all messages"
	keptByMost = "a power cut of most servers at the same time " + unsynced
)

func stream(name string, replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{Name: name, Replicas: replicas}
}

// memoryStream and asyncStream return streams with a lower durability than a file.
func memoryStream() jetstream.StreamConfig {
	c := stream("DELAY_m", 3)
	c.Storage = jetstream.MemoryStorage
	return c
}

func asyncStream() jetstream.StreamConfig {
	c := stream("DELAY_a", 3)
	c.PersistMode = jetstream.AsyncPersistMode
	return c
}

// threeReplicas returns streams of three replicas, and more.
func threeReplicas(more ...jetstream.StreamConfig) []jetstream.StreamConfig {
	return append([]jetstream.StreamConfig{stream("DELAY_1s", 3), stream("DELAY_5s", 3)}, more...)
}

var oneReplica = []jetstream.StreamConfig{stream("DELAY_1s", 1)}

// durabilities are settings of servers and streams, each with its description.
var durabilities = []struct {
	name       string
	durability Durability
	meaning    string
	weaknesses []string // the beginning of each weakness
	state      Severity
}{
	{
		"no stream", Durability{},
		"unknown: no stream was read", nil, Fine,
	},
	{
		"embedded", Durability{Streams: oneReplica, Sync: &Sync{Every: time.Second}, Version: "2.15.3"},
		"acknowledged means written to a file on this host, fsync every 1s (replicas 1, nats-server 2.15.3): " +
			"a crash loses nothing; a power cut loses the messages since the last fsync; a failed disk loses all messages",
		nil, Fine,
	},
	{
		"embedded, always", Durability{Streams: oneReplica, Sync: &Sync{Always: true}, Version: "2.15.3"},
		"acknowledged means on the disk of this host, fsync for every write (file, replicas 1, nats-server 2.15.3): " +
			"a power cut loses nothing; a failed disk loses all messages",
		nil, Fine,
	},
	{
		"one server", Durability{Streams: oneReplica, Version: "2.15.3"},
		"acknowledged means written to a file by one server (replicas 1, nats-server 2.15.3): " + keptByOne,
		[]string{"1 replica of DELAY_1s"}, Warn,
	},
	{
		"all of five streams", Durability{
			Streams: []jetstream.StreamConfig{
				stream("DELAY_1s", 1), stream("DELAY_2s", 1), stream("DELAY_3s", 1), stream("DELAY_5s", 1), stream("DELAY_7s", 1),
			},
			Version: "2.15.3",
		},
		"acknowledged means written to a file by one server (replicas 1, nats-server 2.15.3): " + keptByOne,
		[]string{"1 replica of all 5 streams"}, Warn,
	},
	{
		"three servers", Durability{Streams: threeReplicas(), Clustered: true, Version: "2.15.3"},
		"acknowledged means written to a file by at least 2 of 3 servers (replicas 3, nats-server 2.15.3): " +
			"the failure of 1 of 3 loses nothing; " + keptByMost,
		nil, Fine,
	},
	{
		"five servers", Durability{Streams: []jetstream.StreamConfig{stream("DELAY_1s", 5)}, Clustered: true},
		"acknowledged means written to a file by at least 3 of 5 servers (replicas 5): " +
			"the failure of 2 of 5 loses nothing; " + keptByMost,
		nil, Fine,
	},
	{
		"one stream with one replica", Durability{Streams: threeReplicas(stream("DELAY_1m", 1)), Clustered: true},
		"acknowledged means written to a file by one server (replicas 1 to 3): " + keptByOne,
		[]string{"1 replica in a cluster: messages are late while the replica's server is down, " +
			"and lost if its disk fails: DELAY_1m"},
		Warn,
	},
	{
		"even numbers of replicas", Durability{
			Streams: []jetstream.StreamConfig{stream("DELAY_1s", 2), stream("DELAY_5s", 4)}, Clustered: true,
		},
		"acknowledged means written to a file by at least 2 of 2 servers (replicas 2 to 4): " +
			"the failure of 0 of 2 loses nothing; " + keptByMost,
		[]string{"an even number of replicas tolerates no more failures than one replica less: DELAY_1s, DELAY_5s"}, Warn,
	},
	{
		"in memory", Durability{Streams: threeReplicas(memoryStream()), Clustered: true},
		"acknowledged means in the memory of at least 2 of 3 servers, for some streams (replicas 3): " +
			"a restart of these servers loses all messages",
		[]string{"in memory, so a restart of the servers loses the pending messages: DELAY_m"}, Critical,
	},
	{
		"asynchronous", Durability{Streams: []jetstream.StreamConfig{asyncStream()}, Clustered: true},
		"acknowledged means received by at least 2 of 3 servers, for some streams before the write (replicas 3): " +
			"a crash loses unwritten messages",
		[]string{"acknowledged before the write: DELAY_a"}, Warn,
	},
	{
		"old server", Durability{Streams: threeReplicas(), Clustered: true, Version: "2.14.2"},
		"acknowledged means written to a file by at least 2 of 3 servers (replicas 3, nats-server 2.14.2): " +
			"the failure of 1 of 3 loses nothing; " + keptByMost,
		[]string{"nats-server 2.14.2 has known vulnerabilities, some in the permissions that separate tenants"}, Warn,
	},
}

func TestDurabilityInWords(t *testing.T) {
	for _, test := range durabilities {
		t.Run(test.name, func(t *testing.T) {
			meaning, weaknesses := test.durability.Describe()
			if meaning != test.meaning {
				t.Errorf("got  %s\nwant %s", meaning, test.meaning)
			}
			var problems []string
			for _, w := range weaknesses {
				problems = append(problems, w.Detail)
				if w.Advice == "" {
					t.Errorf("%s: the weakness has no advice", w.Detail)
				}
			}
			if !slices.EqualFunc(problems, test.weaknesses, strings.HasPrefix) {
				t.Errorf("weak: got %q, want %q", problems, test.weaknesses)
			}
			f := test.durability.finding()
			if f.Severity != test.state || !strings.HasPrefix(f.Detail, meaning) || (f.Severity > Fine) != (f.Advice != "") {
				t.Errorf("got %+v, want %s", f, test.state)
			}
			for _, w := range problems {
				if !strings.Contains(f.Detail, w) {
					t.Errorf("the finding lacks the weakness: %s", w)
				}
			}
		})
	}
}
