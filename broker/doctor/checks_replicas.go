package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/text"
)

const (
	// silentAfter is the time without an answer to its leader from which on a replica counts as gone. A replica that has
	// answered more recently, and is not current, is behind: its server may have just started.
	silentAfter = 10 * time.Second
	// maxLag is the number of operations up to which a replica counts as current. Under load, a replica is often a few
	// operations behind.
	maxLag = 1000
)

// missingReplica describes a server that lacks the newest messages of some streams.
type missingReplica struct {
	streams int
	silence time.Duration // the longest time without an answer to a leader; zero if the replica is only behind
	lag     uint64        // the most operations that the replica is behind
}

// checkReplicas looks for replicas of the broker's streams that are gone or behind.
func checkReplicas(f Facts) []Finding {
	replicated, least := 0, 0
	missing := make(map[string]*missingReplica) // by the name of the server
	for _, s := range f.Found {
		info := f.Infos[s.Stream]
		if info == nil || info.Cluster == nil || info.Config.Replicas < 2 {
			continue
		}
		current := info.Config.Replicas
		for _, r := range info.Cluster.Replicas {
			if isCurrent(r) {
				continue
			}
			current--
			m := missing[r.Name]
			if m == nil {
				m = new(missingReplica)
				missing[r.Name] = m
			}
			m.streams, m.lag = m.streams+1, max(m.lag, r.Lag)
			if r.Offline || r.Active >= silentAfter {
				m.silence = max(m.silence, r.Active, 1)
			}
		}
		// The quorum of a stream is more than a half of its replicas.
		if spare := current - (info.Config.Replicas/2 + 1); replicated == 0 || spare < least {
			least = spare
		}
		replicated++
	}
	switch {
	case replicated == 0: // checkDurability reports it
		return nil
	case len(missing) == 0:
		return finding(Fine, "", "the replicas of all %d streams are current", replicated)
	}
	var parts []string
	for _, name := range slices.SortedFunc(maps.Keys(missing), func(a, b string) int {
		return cmp.Or(cmp.Compare(missing[b].silence, missing[a].silence), strings.Compare(a, b))
	}) {
		parts = append(parts, fmt.Sprintf("on %d of %d streams, server %s is %s", missing[name].streams, replicated,
			text.Printable(name, maxDetail), missing[name]))
	}
	detail := strings.Join(parts, "; ")
	if least <= 0 {
		detail += ": one more failure stops these lanes"
	}
	const advice = "start these servers, and wait until their replicas are current: nats stream report"
	return finding(Warn, advice, "%s", detail)
}

func isCurrent(r *jetstream.PeerInfo) bool {
	return !r.Offline && (r.Current || r.Lag <= maxLag && r.Active < silentAfter)
}

func (m *missingReplica) String() string {
	switch {
	case m.silence > 1:
		return "gone for " + text.Span(m.silence)
	case m.silence > 0:
		return "gone"
	}
	return fmt.Sprintf("%d operations behind", m.lag)
}
