package deliver

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// BenchmarkDeliver measures the time and the allocations of a delivery. Both include the cost of the server, which runs
// in the same process.
func BenchmarkDeliver(b *testing.B) {
	for _, mode := range []message.Mode{message.ModeStream, message.ModeAuto, message.ModeRequest, message.ModeCore} {
		b.Run(string(mode), func(b *testing.B) {
			k := newKit(b, natstest.Run(b, b.TempDir()))
			defer k.stop()
			if mode == message.ModeStream || mode == message.ModeAuto {
				k.stream(jetstream.StreamConfig{
					Name: "T", Subjects: []string{"t.>"}, Storage: jetstream.MemoryStorage, MaxMsgs: 1000,
				})
			} else {
				k.subscribe("t.>", func(m *nats.Msg) { _ = m.Respond([]byte("+OK")) })
			}
			subjects := make([]string, 100)
			for i := range subjects {
				subjects[i] = fmt.Sprintf("t.%d", i)
			}
			inFlight := make(chan struct{}, 1000)
			done := func(r Result) {
				<-inFlight
				if r.Outcome != Delivered {
					b.Errorf("%s: %s %v", r.Outcome, r.Reason, r.Err)
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				inFlight <- struct{}{}
				k.Deliver(Message{Target: subjects[i%len(subjects)], Mode: mode, Data: []byte("x")}, done)
			}
			for range cap(inFlight) {
				inFlight <- struct{}{}
			}
		})
	}
}
