package lane

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"delaybroker/test/natstest"
)

// TestMaxRequestBatch: the server limits the messages of one request. The reader and a scan obey the limit.
func TestMaxRequestBatch(t *testing.T) {
	for _, limit := range []int{1, 100, 499, 500} {
		opts := server.Options{JetStreamLimits: server.JSLimitOpts{MaxRequestBatch: limit}}
		natstest.BubbleWith(t, opts, func(t *testing.T, s *natstest.Server) {
			r := newRig(t, s)
			r.burst(1, 1200)
			o := r.read(s.Connect(), 0)
			o.check(1, 1200)
			r.burst(1201, 1300)
			o.check(1, 1300)
			o.checkEpochs("fresh")
			if got, err := r.scanned(r.scan()); len(got) != 1300 || err != nil {
				t.Errorf("limit %d: a scan found %d messages and %v, want 1300", limit, len(got), err)
			}
		})
	}
}

// TestBatchLimit: only the refusal of a batch names a limit of batches.
func TestBatchLimit(t *testing.T) {
	for _, tt := range []struct {
		description string
		limit       int
		ok          bool
	}{
		{"Exceeded MaxRequestBatch of 100", 100, true},
		{"Exceeded MaxRequestBatch of 0", 0, false},
		{"Exceeded MaxRequestBatch of x", 0, false},
		{"Exceeded MaxRequestExpires of 1s", 0, false},
		{"", 0, false},
	} {
		if got, ok := batchLimit(tt.description); ok != tt.ok || ok && got != tt.limit {
			t.Errorf("%q: got %d and %v, want %d and %v", tt.description, got, ok, tt.limit, tt.ok)
		}
	}
}
