package jsapi

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// QuorumTimeout is nats-server's lostQuorumInterval. When a leader has been cut off from its cluster for this time, its
// answers show that it has lost its majority: see Quorate.
const QuorumTimeout = 10 * time.Second

// Quorate reports whether an answer about a stream is from a leader that has recently heard from a majority of the
// replicas. While a stream has no leader, nats-server lets any replica answer. C is nil for a server without a cluster.
func Quorate(c *jetstream.ClusterInfo) bool {
	if c == nil {
		return true
	}
	heard := 1
	for _, peer := range c.Replicas {
		// Active is also zero if the leader has never heard from the peer.
		if !peer.Offline && peer.Active < QuorumTimeout && (peer.Current || peer.Active > 0) {
			heard++
		}
	}
	return c.Leader != "" && heard > (1+len(c.Replicas))/2
}
