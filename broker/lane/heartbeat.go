package lane

import "time"

// quickHeartbeat is the interval of the heartbeats before the tail of a lane, and until a new consumer has answered.
const quickHeartbeat = time.Second

// requestTimes returns the heartbeat that a reader requests from its consumer, and the lifetime of the request. If a
// consumer disappears silently, the reader notices that after two and a half heartbeats.
//
// Before the tail of a lane, the next message may be due at any moment. At the tail, no message can be due before the
// lane's delay has passed, so the heartbeat may be a fraction of the delay. A heartbeat every second on each of forty
// idle lanes would be a measurable load. On a single server, a consumer rarely disappears silently: if the server
// stops, the connection is lost, and if the server deletes the consumer, it reports the deletion. So on a single
// server, a heartbeat every ten minutes is enough. If only JetStream restarts, the next request of any part of the
// broker notices the restart: see [Reader.Probe].
//
//	              not at the tail    at the tail of a cluster's lane      at the tail on one server
//	heartbeat     1 s                a quarter of the delay, 1 s … 1 min  10 min
//	pull expires  30 s               4 heartbeats, at least 30 s          4 heartbeats
//
// In a cluster, two and a half heartbeats are shorter than the delay of any lane of at least 3 s, so the loss of a
// consumer makes no message of such a lane late. In a shorter lane, the loss makes a message late by about 2.5 s at
// most.
func requestTimes(delay time.Duration, tail, clustered bool) (heartbeat, expires time.Duration) {
	if !tail {
		return quickHeartbeat, 30 * time.Second
	}
	heartbeat = 10 * time.Minute
	if clustered {
		heartbeat = min(max(delay/4, quickHeartbeat), time.Minute)
	}
	return heartbeat, max(4*heartbeat, 30*time.Second)
}
