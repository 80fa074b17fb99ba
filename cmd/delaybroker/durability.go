package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// keeping is what can be seen, by a client, of how our streams keep what they have acknowledged. It is read off the
// streams, not off the settings: those say what new streams were to be like.
type keeping struct {
	streams   []jetstream.StreamConfig
	clustered bool
	embed     *embedConfig // nil when the server is not ours: then how often it syncs to disk cannot be seen
	version   string       // of the server; empty when somebody else judges it
}

// A weakness is a way to lose what was acknowledged that could be closed.
type weakness struct {
	state    severity
	what, do string
}

// unseen is said of the sync interval of a server that is not ours. No answer of the JetStream API has it.
const unseen = "what was not synced, which a client cannot see: 2 minutes' worth unless sync_interval says otherwise"

// words says what an acknowledgement means, for the weakest of the streams, and what is weak about it.
func (k keeping) words() (meaning string, weak []weakness) {
	if len(k.streams) == 0 {
		return "unknown: no stream was looked at", nil
	}
	var memory, async, single, even []string
	fewest, most := k.streams[0].Replicas, 0
	for _, s := range k.streams {
		fewest, most = min(fewest, s.Replicas), max(most, s.Replicas)
		switch {
		case s.Storage == jetstream.MemoryStorage:
			memory = append(memory, s.Name)
		case s.PersistMode == jetstream.AsyncPersistMode:
			async = append(async, s.Name)
		case s.Replicas <= 1:
			single = append(single, s.Name)
		case s.Replicas%2 == 0:
			even = append(even, s.Name)
		}
	}
	add := func(state severity, streams []string, do, format string) {
		if len(streams) > 0 {
			weak = append(weak, weakness{state, fmt.Sprintf(format, few(streams)), do})
		}
	}
	add(critical, memory, "recreate them with file storage, when empty", "in memory, where a restart of the servers loses what is pending: %s")
	add(warn, async, "set persist_mode to default", "acknowledged before it is written: %s")
	switch {
	case k.embed != nil:
	case k.clustered:
		add(warn, single, "nats stream edit <stream> --replicas 3", "1 replica in a cluster, which is late when its server is down and lost with its disk: %s")
	default:
		add(warn, single, "use 3 replicas on a cluster, or sync_interval: always (or 1s) in the server's configuration",
			"1 replica of %s: lost with its disk, and a power cut loses what was not synced, two minutes with the default sync_interval")
	}
	add(warn, even, "nats stream edit <stream> --replicas 3", "an even number of replicas survives no more than one less would: %s")
	if belowFloor(k.version) {
		weak = append(weak, weakness{warn, "nats-server " + k.version + " has known security holes", "use 2.12.12, 2.14.3 or later"})
	}
	return k.meaning(fewest, most, len(memory) > 0, len(async) > 0), weak
}

func (k keeping) meaning(fewest, most int, memory, async bool) string {
	replicas := fmt.Sprint(fewest)
	if most > fewest {
		replicas = fmt.Sprintf("%d to %d", fewest, most)
	}
	facts := fmt.Sprintf("replicas %s", replicas)
	if k.version != "" {
		facts += ", nats-server " + k.version
	}
	switch quorum := fewest/2 + 1; {
	case memory:
		return fmt.Sprintf("acknowledged means in the memory of %d of %d at least, in some streams (%s): a restart of these takes everything", quorum, fewest, facts)
	case async:
		return fmt.Sprintf("acknowledged means received by %d of %d servers at least, and in some streams not yet written (%s): a crash takes what was not", quorum, fewest, facts)
	case fewest > 1:
		return fmt.Sprintf("acknowledged means written to a file by %d of %d servers at least (%s): kept with %d of them lost; a power cut of most at once takes %s",
			quorum, fewest, facts, fewest-quorum, unseen)
	case k.embed == nil:
		return fmt.Sprintf("acknowledged means written to a file by one server (%s): a crash of it takes nothing; a power cut takes %s; a broken disk takes everything", facts, unseen)
	case k.embed.syncAlways:
		return fmt.Sprintf("acknowledged means on the disk of this host, %s (file, %s): a power cut takes nothing, a broken disk everything", k.embed.durability(), facts)
	}
	return fmt.Sprintf("acknowledged means written to a file on this host, %s (%s): a crash takes nothing, a power cut what came since the last fsync, a broken disk everything",
		k.embed.durability(), facts)
}

// finding makes one of it: what is weak does not go without saying what the rest amounts to.
func (k keeping) finding() finding {
	meaning, weak := k.words()
	f := finding{Check: "durability", Detail: meaning}
	var do []string
	for _, w := range weak {
		f.State = max(f.State, w.state)
		f.Detail += "; weak: " + w.what
		if !slices.Contains(do, w.do) {
			do = append(do, w.do)
		}
	}
	f.Do = strings.Join(do, "; ")
	return f
}
