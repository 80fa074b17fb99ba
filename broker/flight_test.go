package broker

import (
	"runtime"
	"testing"

	"delaybroker/broker/conf"
	"delaybroker/broker/lane"
	"delaybroker/broker/message"
)

// TestFlightCost compares the bytes that are accounted for a message with those that it takes on the heap.
func TestFlightCost(t *testing.T) {
	names, err := message.NewNames("delay")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ body, headers int }{{0, 0}, {100, 2}, {1000, 20}, {33 << 10, 0}} {
		const count = 1000
		kept := make([]any, 0, 4*count)
		before := heap()
		accounted := 0
		for seq := range uint64(count) {
			s := lane.Stored{
				Sequence: seq + 1, Subject: string([]byte("delay.10s.orders.x")), Data: make([]byte, tt.body),
				Header: map[string][]string{},
			}
			s.Size = len(s.Subject) + tt.body
			for n := range tt.headers {
				name, value := "X-Name-"+string(rune('a'+n)), string(make([]byte, 20))
				s.Header[name] = []string{value}
				s.Size += len(name) + len(value) + 4
			}
			accounted += cost(s)
			f := &flight{Stored: s, size: cost(s)}
			policy := message.Policy{Names: names, MaxDelay: conf.DefaultMaxDelay}
			f.request, f.problem = policy.Parse(message.Incoming{
				Stream: "DELAY_10s", Sequence: s.Sequence, At: s.At, Subject: s.Subject, Header: s.Header,
			})
			kept = append(kept, f, f.request.HopHeader(), f.request.TargetHeader())
		}
		if took := heap() - before; took > accounted {
			t.Errorf("a body of %d with %d headers takes %d bytes, and is accounted with %d",
				tt.body, tt.headers, took/count, accounted/count)
		}
		runtime.KeepAlive(kept)
	}
}

func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
