package message_test

import (
	"testing"

	"delaybroker/broker/message"
)

// BenchmarkTravel measures the CPU cost of a message's headers. For a hop, a broker makes and seals them. In the next
// lane, a broker parses them and verifies the seal. For a delivery, a broker makes the headers of the target.
func BenchmarkTravel(b *testing.B) {
	keys := keysOf(secretOne)
	p := message.Policy{Names: policy.Names, MaxDelay: policy.MaxDelay, Keys: keys}
	body := make([]byte, 256)
	const subject = "delaysys.hop.2h.orders.expire"
	r := mustParse(b, "delay.1h.orders.expire")
	h := r.HopHeader()
	keys.SealMessage(subject, h, body)
	in := message.Incoming{Stream: "DELAY_2h", Sequence: 1, Subject: subject, Header: h, Data: body, At: at}
	b.Run("read a request", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.Parse(message.Incoming{Stream: "DELAY_1h", Sequence: 1, Subject: "delay.1h.orders.expire", Data: body, At: at})
		}
	})
	b.Run("make a hop", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			keys.SealMessage(subject, r.HopHeader(), body)
		}
	})
	b.Run("read a hop", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, problem := p.Parse(in); problem != nil {
				b.Fatal(problem)
			}
		}
	})
	b.Run("make a delivery", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.TargetHeader()
		}
	})
}
