package deliver

import (
	"testing"
	"testing/synctest"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// TestDeliveryCost: while a delivery waits for room or for its answer, it takes no more memory than package engine
// accounts for a delivery, in addition to the message. The headers are in memory only while the message is sent.
func TestDeliveryCost(t *testing.T) {
	const limit = 1 << 10
	for name, tt := range map[string]struct{ size, count, sent int }{
		"outstanding": {size: 1, count: share, sent: share},
		"waiting":     {size: defaultWindowBytes, count: share, sent: 1},
	} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				k := newKit(t, s)
				seen := k.subscribe("silent", nil)
				request := &message.Request{ID: "L-1-1", User: message.Header{"X": {string(make([]byte, 4<<10))}}}
				results := &count{}
				before := natstest.Heap()
				for range tt.count {
					k.Deliver(Message{
						Target: "silent", Mode: message.ModeStream, Size: tt.size,
						Request: request,
					}, func(Result) { results.add() })
				}
				synctest.Wait()
				took := (natstest.Heap() - before) / tt.count
				if seen.get() != tt.sent || results.get() != 0 {
					t.Fatalf("%d were sent, and %d have a result; want %d and none", seen.get(), results.get(), tt.sent)
				}
				if took > limit {
					t.Errorf("a delivery takes %d bytes, want at most %d", took, limit)
				}
				t.Logf("%d bytes", took)
			})
		})
	}
}
