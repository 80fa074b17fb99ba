package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

func TestDurabilityInWords(t *testing.T) {
	stream := func(name string, replicas int) jetstream.StreamConfig {
		return jetstream.StreamConfig{Name: name, Replicas: replicas}
	}
	memory, async := stream("DELAY_m", 3), stream("DELAY_a", 3)
	memory.Storage, async.PersistMode = jetstream.MemoryStorage, jetstream.AsyncPersistMode
	three := []jetstream.StreamConfig{stream("DELAY_1s", 3), stream("DELAY_5s", 3)}
	for _, test := range []struct {
		name    string
		keeping keeping
		meaning string
		weak    []string // what each speaks of
		state   severity
	}{
		{
			"nothing known", keeping{},
			"unknown: no stream was looked at", nil, fine,
		},
		{
			"embedded", keeping{streams: []jetstream.StreamConfig{stream("DELAY_1s", 1)}, embed: &embedConfig{sync: time.Second}, version: "2.15.2"},
			"acknowledged means written to a file on this host, fsync every 1s (replicas 1, nats-server 2.15.2): a crash takes nothing, a power cut what came since the last fsync, a broken disk everything",
			nil, fine,
		},
		{
			"embedded, always", keeping{streams: []jetstream.StreamConfig{stream("DELAY_1s", 1)}, embed: &embedConfig{syncAlways: true}, version: "2.15.2"},
			"acknowledged means on the disk of this host, fsync for every write (file, replicas 1, nats-server 2.15.2): a power cut takes nothing, a broken disk everything",
			nil, fine,
		},
		{
			"one server", keeping{streams: []jetstream.StreamConfig{stream("DELAY_1s", 1)}, version: "2.15.2"},
			"acknowledged means written to a file by one server (replicas 1, nats-server 2.15.2): a crash of it takes nothing; a power cut takes what was not synced, which a client cannot see: 2 minutes' worth unless sync_interval says otherwise; a broken disk takes everything",
			[]string{"1 replica of DELAY_1s"}, warn,
		},
		{
			"three servers", keeping{streams: three, clustered: true, version: "2.15.2"},
			"acknowledged means written to a file by 2 of 3 servers at least (replicas 3, nats-server 2.15.2): kept with 1 of them lost; a power cut of most at once takes what was not synced, which a client cannot see: 2 minutes' worth unless sync_interval says otherwise",
			nil, fine,
		},
		{
			"five servers", keeping{streams: []jetstream.StreamConfig{stream("DELAY_1s", 5)}, clustered: true},
			"acknowledged means written to a file by 3 of 5 servers at least (replicas 5): kept with 2 of them lost; a power cut of most at once takes what was not synced, which a client cannot see: 2 minutes' worth unless sync_interval says otherwise",
			nil, fine,
		},
		{
			"one stream has one", keeping{streams: append(three, stream("DELAY_1m", 1)), clustered: true},
			"acknowledged means written to a file by one server (replicas 1 to 3): a crash of it takes nothing; a power cut takes what was not synced, which a client cannot see: 2 minutes' worth unless sync_interval says otherwise; a broken disk takes everything",
			[]string{"1 replica in a cluster, which is late when its server is down and lost with its disk: DELAY_1m"}, warn,
		},
		{
			"even", keeping{streams: []jetstream.StreamConfig{stream("DELAY_1s", 2), stream("DELAY_5s", 4)}, clustered: true},
			"acknowledged means written to a file by 2 of 2 servers at least (replicas 2 to 4): kept with 0 of them lost; a power cut of most at once takes what was not synced, which a client cannot see: 2 minutes' worth unless sync_interval says otherwise",
			[]string{"an even number of replicas survives no more than one less would: DELAY_1s, DELAY_5s"}, warn,
		},
		{
			"in memory", keeping{streams: append(three, memory), clustered: true},
			"acknowledged means in the memory of 2 of 3 at least, in some streams (replicas 3): a restart of these takes everything",
			[]string{"in memory, where a restart of the servers loses what is pending: DELAY_m"}, critical,
		},
		{
			"asynchronous", keeping{streams: []jetstream.StreamConfig{async}, clustered: true},
			"acknowledged means received by 2 of 3 servers at least, and in some streams not yet written (replicas 3): a crash takes what was not",
			[]string{"acknowledged before it is written: DELAY_a"}, warn,
		},
		{
			"old server", keeping{streams: three, clustered: true, version: "2.14.2"},
			"acknowledged means written to a file by 2 of 3 servers at least (replicas 3, nats-server 2.14.2): kept with 1 of them lost; a power cut of most at once takes what was not synced, which a client cannot see: 2 minutes' worth unless sync_interval says otherwise",
			[]string{"nats-server 2.14.2 has known security holes"}, warn,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			meaning, weak := test.keeping.words()
			if meaning != test.meaning {
				t.Errorf("got  %s\nwant %s", meaning, test.meaning)
			}
			var what []string
			for _, w := range weak {
				what = append(what, w.what)
				if w.do == "" {
					t.Errorf("%s: no word of what to do", w.what)
				}
			}
			if !slices.EqualFunc(what, test.weak, strings.HasPrefix) {
				t.Errorf("weak: got %q, want %q", what, test.weak)
			}
			f := test.keeping.finding()
			if f.State != test.state || !strings.HasPrefix(f.Detail, meaning) || (f.State > fine) != (f.Do != "") {
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
