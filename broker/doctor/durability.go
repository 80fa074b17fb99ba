package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/text"
	"delaybroker/levels"
)

// Durability has the known facts that determine the durability of acknowledged messages. It has the configurations of
// the streams and not the broker's settings, because the settings apply only to new streams.
type Durability struct {
	Streams   []jetstream.StreamConfig
	Clustered bool
	Sync      *Sync  // of the embedded server; nil for any other server, because its policy is unknown
	Version   string // version of the server; empty if another check reports its vulnerabilities
}

// Sync is the sync policy of a server.
type Sync struct {
	Always bool          // sync after every write
	Every  time.Duration // the interval between two syncs, if Always is false
}

// String describes the sync policy.
func (s Sync) String() string {
	if s.Always {
		return "fsync for every write"
	}
	return "fsync every " + levels.FormatDuration(s.Every)
}

// fsyncLoss describes the messages that a server with an unknown sync interval may lose. The JetStream API does not
// report the interval.
const fsyncLoss = "the messages since the last fsync (sync_interval, 2 minutes by default)"

// Describe returns the durability of an acknowledged message in the weakest stream as text, and the weaknesses of the
// streams and the server that an operator can remove.
func (d Durability) Describe() (meaning string, weaknesses []Finding) {
	if len(d.Streams) == 0 {
		return "unknown: no stream was read", nil
	}
	var memory, async, oneReplica, evenReplicas []string
	minReplicas, maxReplicas := d.Streams[0].Replicas, 0
	for _, s := range d.Streams {
		minReplicas, maxReplicas = min(minReplicas, s.Replicas), max(maxReplicas, s.Replicas)
		switch {
		case s.Storage == jetstream.MemoryStorage:
			memory = append(memory, s.Name)
		case s.PersistMode == jetstream.AsyncPersistMode:
			async = append(async, s.Name)
		case s.Replicas <= 1:
			oneReplica = append(oneReplica, s.Name)
		case s.Replicas%2 == 0:
			evenReplicas = append(evenReplicas, s.Name)
		}
	}
	add := func(state Severity, streams []string, advice, format string) {
		if len(streams) > 0 {
			weaknesses = append(weaknesses, finding(state, advice, format, d.namesOf(streams))...)
		}
	}
	add(Critical, memory, "recreate these streams with file storage after they are empty",
		"in memory, so a restart of the servers loses the pending messages: %s")
	add(Warn, async, "recreate these streams with the default persist_mode after they are empty",
		"acknowledged before the write: %s")
	switch {
	case d.Sync != nil:
	case d.Clustered:
		add(Warn, oneReplica, "nats stream edit <stream> --replicas 3",
			"1 replica in a cluster: messages are late while the replica's server is down, and lost if its disk fails: %s")
	default:
		add(Warn, oneReplica, "use 3 replicas on a cluster, or sync_interval: always (or 1s) in the server's configuration",
			"1 replica of %s: a failed disk loses all messages, and a power cut loses those since the last fsync,"+
				" which is up to two minutes ago with the default sync_interval")
	}
	add(Warn, evenReplicas, "nats stream edit <stream> --replicas 3",
		"an even number of replicas tolerates no more failures than one replica less: %s")
	if weakness := serverWeakness(d.Version); weakness != "" {
		weaknesses = append(weaknesses, finding(Warn, "upgrade to "+recommendedServers, "nats-server %s %s", d.Version,
			weakness)...)
	}
	return d.meaning(minReplicas, maxReplicas, len(memory) > 0, len(async) > 0), weaknesses
}

// namesOf returns the names of a few of the streams. If they are all streams of d, and more than four, it returns their
// number. The text must fit in a table.
func (d Durability) namesOf(streams []string) string {
	if len(streams) > 4 && len(streams) == len(d.Streams) {
		return fmt.Sprintf("all %d streams", len(streams))
	}
	return text.ShortList(streams)
}

// meaning describes streams with minReplicas to maxReplicas replicas. Memory is true if some streams are in memory.
// Async is true if some streams acknowledge a message before the write.
func (d Durability) meaning(minReplicas, maxReplicas int, memory, async bool) string {
	facts := fmt.Sprintf("replicas %d", minReplicas)
	if maxReplicas > minReplicas {
		facts += fmt.Sprintf(" to %d", maxReplicas)
	}
	if d.Version != "" {
		facts += ", nats-server " + d.Version
	}
	quorum := minReplicas/2 + 1
	switch {
	case memory:
		return fmt.Sprintf("acknowledged means in the memory of at least %d of %d servers, for some streams (%s):"+
			" a restart of these servers loses all messages", quorum, minReplicas, facts)
	case async:
		return fmt.Sprintf("acknowledged means received by at least %d of %d servers,"+
			" for some streams before the write (%s): a crash loses unwritten messages", quorum, minReplicas, facts)
	case minReplicas > 1:
		return fmt.Sprintf("acknowledged means written to a file by at least %d of %d servers (%s):"+
			" the failure of %d of %d loses nothing; a power cut of most servers at the same time loses %s",
			quorum, minReplicas, facts, minReplicas-quorum, minReplicas, fsyncLoss)
	case d.Sync == nil:
		return fmt.Sprintf("acknowledged means written to a file by one server (%s):"+
			" a crash loses nothing; a power cut loses %s; a failed disk loses all messages", facts, fsyncLoss)
	case d.Sync.Always:
		return fmt.Sprintf("acknowledged means on the disk of this host, %s (file, %s):"+
			" a power cut loses nothing; a failed disk loses all messages", d.Sync, facts)
	}
	return fmt.Sprintf("acknowledged means written to a file on this host, %s (%s): a crash loses nothing;"+
		" a power cut loses the messages since the last fsync; a failed disk loses all messages", d.Sync, facts)
}

func (d Durability) finding() Finding {
	meaning, weaknesses := d.Describe()
	f := Finding{Detail: meaning}
	var advice []string
	for _, w := range weaknesses {
		f.Severity = max(f.Severity, w.Severity)
		f.Detail += "; weak: " + w.Detail
		if !slices.Contains(advice, w.Advice) {
			advice = append(advice, w.Advice)
		}
	}
	f.Advice = strings.Join(advice, "; ")
	return f
}
