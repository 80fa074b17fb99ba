package lane

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
)

// Sample is the state of a stream as its leader reports it.
type Sample struct {
	ServerTime time.Time // when the leader answered, by its clock
	Received   time.Time // when the answer arrived, by the local clock
	Leader     string    // name of the leader's server; empty if the stream has no leader
	Quorate    bool      // the leader has recently heard from a majority of the stream's replicas, itself included
	Created    time.Time // creation time of the stream, which distinguishes streams of one name
	FirstSeq   uint64
	LastSeq    uint64 // highest sequence that the stream has given; the message may be deleted
	Messages   uint64
	Bytes      uint64
	MaxBytes   int64 // the stream's limit of Bytes; zero or less means no limit
}

// SampleOf returns a sample of a stream's info that was received at the given time.
func SampleOf(info *jetstream.StreamInfo, received time.Time) Sample {
	s := Sample{
		ServerTime: info.TimeStamp, Received: received, Created: info.Created,
		FirstSeq: info.State.FirstSeq, LastSeq: info.State.LastSeq,
		Messages: info.State.Msgs, Bytes: info.State.Bytes, MaxBytes: info.Config.MaxBytes,
		Quorate: jsapi.Quorate(info.Cluster),
	}
	if info.Cluster != nil {
		s.Leader = info.Cluster.Leader
	}
	return s
}
