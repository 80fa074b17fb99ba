package deliver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/acks"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// BenchmarkDeliver counts the time and the allocations of a delivery. The server's part is included, since it runs in
// the same process.
func BenchmarkDeliver(b *testing.B) {
	for _, mode := range []message.Mode{message.ModeStream, message.ModeAuto, message.ModeRequest, message.ModeCore} {
		b.Run(string(mode), func(b *testing.B) {
			s := natstest.Run(b, b.TempDir())
			own, others := s.Connect(), s.Connect(nats.Name("others"))
			box, err := acks.New(own, "_INBOX")
			if err != nil {
				b.Fatal(err)
			}
			d := New(box, jsapi.Client{Conn: own, API: "$JS.API"},
				Config{ReplyTimeout: replyTimeout, Log: slog.New(slog.DiscardHandler)})
			ctx, cancel := context.WithCancel(context.Background())
			var running sync.WaitGroup
			running.Go(func() { box.Run(ctx) })
			running.Go(func() { d.Run(ctx) })
			defer func() { cancel(); running.Wait() }()
			if mode == message.ModeStream || mode == message.ModeAuto {
				_, err = s.JetStream(others).CreateStream(ctx, jetstream.StreamConfig{
					Name: "T", Subjects: []string{"t.>"}, Storage: jetstream.MemoryStorage, MaxMsgs: 1000,
				})
			} else {
				_, err = others.Subscribe("t.>", func(m *nats.Msg) { _ = m.Respond([]byte("+OK")) })
			}
			if err := errors.Join(err, others.Flush()); err != nil {
				b.Fatal(err)
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
				d.Deliver(Message{Target: subjects[i%len(subjects)], Mode: mode, Data: []byte("x")}, done)
			}
			for range cap(inFlight) {
				inFlight <- struct{}{}
			}
		})
	}
}
