package lane

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Epoch is one life of the consumer, which was created on a stream that was looked at first. It is handed over before
// the first of its items; items of the epoch before may still be waiting then.
type Epoch struct {
	Number uint64
	// Fresh means that the stream is not the one we knew: deleted and created again, restored, or cut back by a crash of
	// its server. What was read before is not in it under the same sequences, so cursors mean nothing any more.
	Fresh bool
	Info  Sample
}

// Sample is a look at a stream through its leader.
type Sample struct {
	ServerTime time.Time // the leader's clock when it answered; it cannot be later than that now
	Received   time.Time // our clock when the answer was here
	Leader     string    // empty on a single server
	Quorate    bool      // the leader hears from a majority of the stream's replicas, itself included
	Created    time.Time // tells two streams of one name apart
	FirstSeq   uint64
	LastSeq    uint64
	Messages   uint64
	Bytes      uint64
	MaxBytes   int64 // the stream's limit; zero or less is none
}

// SampleOf takes what matters from a stream's info, received at the given moment.
func SampleOf(info *jetstream.StreamInfo, received time.Time) Sample {
	s := Sample{
		ServerTime: info.TimeStamp, Received: received, Created: info.Created,
		FirstSeq: info.State.FirstSeq, LastSeq: info.State.LastSeq,
		Messages: info.State.Msgs, Bytes: info.State.Bytes, MaxBytes: info.Config.MaxBytes,
		Quorate: true,
	}
	if info.Cluster != nil {
		s.Leader, s.Quorate = info.Cluster.Leader, quorate(info.Cluster)
	}
	return s
}

// quorate reports whether a leader answered, and has lately heard from so many others that no second leader can be
// there. While a stream has no leader, nats-server lets any replica answer.
func quorate(c *jetstream.ClusterInfo) bool {
	heard := 1
	for _, peer := range c.Replicas {
		if !peer.Offline && peer.Active < staleFor && (peer.Current || peer.Active > 0) { // zero also means never
			heard++
		}
	}
	return c.Leader != "" && heard > (1+len(c.Replicas))/2
}
