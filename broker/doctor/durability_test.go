package doctor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// What the sentences below share.
const (
	unsynced = "takes what was not synced, which a client cannot see: " +
		"2 minutes' worth unless sync_interval says otherwise"
	keptByOne  = "a crash of it takes nothing; a power cut " + unsynced + "; a broken disk takes everything"
	keptByMost = "a power cut of most of them at once " + unsynced
)

func stream(name string, replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{Name: name, Replicas: replicas}
}

// inMemory and async are streams that keep less than a file does.
func inMemory() jetstream.StreamConfig {
	c := stream("DELAY_m", 3)
	c.Storage = jetstream.MemoryStorage
	return c
}

func async() jetstream.StreamConfig {
	c := stream("DELAY_a", 3)
	c.PersistMode = jetstream.AsyncPersistMode
	return c
}

// threeReplicas has streams of three replicas, and more.
func threeReplicas(more ...jetstream.StreamConfig) []jetstream.StreamConfig {
	return append([]jetstream.StreamConfig{stream("DELAY_1s", 3), stream("DELAY_5s", 3)}, more...)
}

var oneReplica = []jetstream.StreamConfig{stream("DELAY_1s", 1)}

// durabilities are what servers and streams keep, in words.
var durabilities = []struct {
	name    string
	kept    Durability
	meaning string
	weak    []string // what each speaks of
	state   Severity
}{
	{
		"nothing known", Durability{},
		"unknown: no stream was looked at", nil, Fine,
	},
	{
		"embedded", Durability{Streams: oneReplica, Sync: &Sync{Every: time.Second}, Version: "2.15.2"},
		"acknowledged means written to a file on this host, fsync every 1s (replicas 1, nats-server 2.15.2): " +
			"a crash takes nothing, a power cut what came since the last fsync, a broken disk everything",
		nil, Fine,
	},
	{
		"embedded, always", Durability{Streams: oneReplica, Sync: &Sync{Always: true}, Version: "2.15.2"},
		"acknowledged means on the disk of this host, fsync for every write (file, replicas 1, nats-server 2.15.2): " +
			"a power cut takes nothing, a broken disk everything",
		nil, Fine,
	},
	{
		"one server", Durability{Streams: oneReplica, Version: "2.15.2"},
		"acknowledged means written to a file by one server (replicas 1, nats-server 2.15.2): " + keptByOne,
		[]string{"1 replica of DELAY_1s"}, Warn,
	},
	{
		"all of many", Durability{
			Streams: []jetstream.StreamConfig{
				stream("DELAY_1s", 1), stream("DELAY_2s", 1), stream("DELAY_3s", 1), stream("DELAY_5s", 1), stream("DELAY_7s", 1),
			},
			Version: "2.15.2",
		},
		"acknowledged means written to a file by one server (replicas 1, nats-server 2.15.2): " + keptByOne,
		[]string{"1 replica of all 5 streams"}, Warn,
	},
	{
		"three servers", Durability{Streams: threeReplicas(), Clustered: true, Version: "2.15.2"},
		"acknowledged means written to a file by 2 of 3 servers at least (replicas 3, nats-server 2.15.2): " +
			"kept with 1 of them lost; " + keptByMost,
		nil, Fine,
	},
	{
		"five servers", Durability{Streams: []jetstream.StreamConfig{stream("DELAY_1s", 5)}, Clustered: true},
		"acknowledged means written to a file by 3 of 5 servers at least (replicas 5): " +
			"kept with 2 of them lost; " + keptByMost,
		nil, Fine,
	},
	{
		"one stream has one", Durability{Streams: threeReplicas(stream("DELAY_1m", 1)), Clustered: true},
		"acknowledged means written to a file by one server (replicas 1 to 3): " + keptByOne,
		[]string{"1 replica in a cluster, which is late when its server is down and lost with its disk: DELAY_1m"}, Warn,
	},
	{
		"even", Durability{Streams: []jetstream.StreamConfig{stream("DELAY_1s", 2), stream("DELAY_5s", 4)}, Clustered: true},
		"acknowledged means written to a file by 2 of 2 servers at least (replicas 2 to 4): " +
			"kept with 0 of them lost; " + keptByMost,
		[]string{"an even number of replicas survives no more than one less would: DELAY_1s, DELAY_5s"}, Warn,
	},
	{
		"in memory", Durability{Streams: threeReplicas(inMemory()), Clustered: true},
		"acknowledged means in the memory of 2 of 3 at least, in some streams (replicas 3): " +
			"a restart of these takes everything",
		[]string{"in memory, where a restart of the servers loses what is pending: DELAY_m"}, Critical,
	},
	{
		"asynchronous", Durability{Streams: []jetstream.StreamConfig{async()}, Clustered: true},
		"acknowledged means received by 2 of 3 servers at least, and in some streams not yet written (replicas 3): " +
			"a crash takes what was not",
		[]string{"acknowledged before it is written: DELAY_a"}, Warn,
	},
	{
		"old server", Durability{Streams: threeReplicas(), Clustered: true, Version: "2.14.2"},
		"acknowledged means written to a file by 2 of 3 servers at least (replicas 3, nats-server 2.14.2): " +
			"kept with 1 of them lost; " + keptByMost,
		[]string{"nats-server 2.14.2 has known security holes"}, Warn,
	},
}

func TestDurabilityInWords(t *testing.T) {
	for _, test := range durabilities {
		t.Run(test.name, func(t *testing.T) {
			meaning, weak := test.kept.Words()
			if meaning != test.meaning {
				t.Errorf("got  %s\nwant %s", meaning, test.meaning)
			}
			var what []string
			for _, w := range weak {
				what = append(what, w.What)
				if w.Do == "" {
					t.Errorf("%s: no word of what to do", w.What)
				}
			}
			if !slices.EqualFunc(what, test.weak, strings.HasPrefix) {
				t.Errorf("weak: got %q, want %q", what, test.weak)
			}
			f := test.kept.finding()
			if f.State != test.state || !strings.HasPrefix(f.Detail, meaning) || (f.State > Fine) != (f.Do != "") {
				t.Errorf("got %+v, want %s", f, test.state)
			}
			for _, w := range what {
				if !strings.Contains(f.Detail, w) {
					t.Errorf("the finding does not say: %s", w)
				}
			}
		})
	}
}
