package lane

import "time"

// quickHeartbeat is the heartbeat in the middle of a lane.
const quickHeartbeat = time.Second

// Watch returns the heartbeat that a reader asks of its consumer, and the time after which the request ends. A consumer
// that disappears silently is noticed after two and a half heartbeats.
//
// In the middle of a lane, the next message may be due at any moment. At the tail, no message can be due before the
// lane's delay has passed, so a fraction of the delay is enough. One wake-up per second on each of forty idle lanes
// would make the sidecar's idle load visible. If a single server stops, our connection is lost with it; and if it
// deletes the consumer, it says so. So a silent loss needs a cluster, or a leaf node in between: with a single server
// we look every ten minutes. If JetStream alone was away, the next question of any part of the broker notices: see
// [Reader.Probe].
//
//	              not at the tail    at the tail of a cluster's lane      at the tail on one server
//	heartbeat     1 s                a quarter of the delay, 1 s … 1 min  10 min
//	pull expires  30 s               4 heartbeats, 30 s or more           4 heartbeats
//
// Two and a half quarters of the delay are less than the delay. So in a cluster the loss of a consumer makes no message
// late in a lane of 3 s or more, and in a shorter lane by 2.5 s at most.
func Watch(delay time.Duration, tail, clustered bool) (heartbeat, expires time.Duration) {
	if !tail {
		return quickHeartbeat, 30 * time.Second
	}
	heartbeat = 10 * time.Minute
	if clustered {
		heartbeat = min(max(delay/4, quickHeartbeat), time.Minute)
	}
	return heartbeat, max(4*heartbeat, 30*time.Second)
}
