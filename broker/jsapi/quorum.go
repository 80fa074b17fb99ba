package jsapi

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// QuorumTimeout is nats-server's lostQuorumInterval: a leader that has been cut off from its cluster for this time
	// gives up.
	QuorumTimeout = 10 * time.Second
	// MaxUnheard is the maximum time for which a leader has not heard from a replica that follows it. Replicas answer
	// their leader once a second. They elect another one after 4 s without a message of their leader, nats-server's
	// minElectionTimeout. So a leader that was suspended while its successor was elected is recognised when it continues.
	MaxUnheard = 3 * time.Second
)

// Quorate reports whether an answer about a stream is from a leader that has recently heard from a majority of the
// replicas. While a stream has no leader, nats-server lets any replica answer. C is nil for a server without a cluster.
func Quorate(c *jetstream.ClusterInfo) bool {
	if c == nil {
		return true
	}
	heard := 1
	for _, peer := range c.Replicas {
		// Active is also zero if the leader has never heard from the peer.
		if !peer.Offline && peer.Active < MaxUnheard && (peer.Current || peer.Active > 0) {
			heard++
		}
	}
	return c.Leader != "" && heard > (1+len(c.Replicas))/2
}
