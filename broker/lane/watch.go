package lane

import "time"

// Watch is how often a reader wants to hear from its consumer, and for how long it asks. A consumer that vanishes
// without a word is noticed after two and a half heartbeats.
//
// In the middle of a lane, the next message may be due at any moment. At its tail nothing can be due before the lane's
// delay has passed, so a fraction of that will do: a wake-up per second on each of forty idle lanes is the difference
// between a sidecar that nobody notices and one that is asked why it is there. A single server takes our connection
// down with it, or says that it deleted the consumer, so a silent loss needs a cluster, or a leaf node between it and
// us: alone we look every ten minutes. That JetStream went away by itself is noticed by whoever asks it something: see
// [Reader.Probe].
//
//	              not at the tail    at the tail of a cluster's lane      at the tail on one server
//	heartbeat     1 s                a quarter of the delay, 1 s … 1 min  10 min
//	pull expires  30 s               4 heartbeats, 30 s or more           4 heartbeats
//
// Two and a half quarters of the delay are less than the delay: in a cluster the loss of a consumer makes nothing late
// in a lane of 3 s or more, nor in a shorter one by more than 2.5 s.
func Watch(delay time.Duration, tail, clustered bool) (heartbeat, expires time.Duration) {
	if !tail {
		return time.Second, 30 * time.Second
	}
	heartbeat = 10 * time.Minute
	if clustered {
		heartbeat = min(max(delay/4, time.Second), time.Minute)
	}
	return heartbeat, max(4*heartbeat, 30*time.Second)
}
