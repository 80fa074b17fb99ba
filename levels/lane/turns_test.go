package lane

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/test/natstest"
)

// TestTurns starts forty readers with a backlog each on one connection, and adds up what they ask for at once: less than
// nats-server lets wait for one client. All of them read on.
func TestTurns(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const maxPending, readers = 64 << 20, 40
		r := newRig(t, s)
		r.burst(1, 1200)
		var mu sync.Mutex
		asked := 0
		if _, err := r.nc.Subscribe("$JS.API.CONSUMER.MSG.NEXT.>", func(m *nats.Msg) {
			var request struct {
				MaxBytes int `json:"max_bytes"`
			}
			if err := json.Unmarshal(m.Data, &request); err != nil {
				t.Error(err)
			}
			mu.Lock()
			asked += request.MaxBytes
			mu.Unlock()
		}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := r.nc.FlushWithContext(ctx); err != nil {
			t.Fatal(err)
		}
		w := &wire{server: s}
		w.set(func(head, _ string) bool { return isStored(head) }) // nothing comes of what is asked for
		nc, shared := s.Connect(nats.SetCustomDialer(w)), NewTurns()
		var owners []*owner
		for range readers {
			owners = append(owners, r.readerOf(ReaderConfig{Conn: nc, JetStream: s.JetStream(nc), Turns: shared}))
		}
		synctest.Wait()
		mu.Lock()
		if asked > maxPending {
			t.Errorf("asked for %d MiB at once, want at most %d", asked>>20, maxPending>>20)
		}
		if least := readers * r.spec.MaxMsgSize; asked < int(least) {
			t.Errorf("asked for %d MiB at once; some of %d readers have asked for nothing", asked>>20, readers)
		}
		mu.Unlock()
		w.set(func(string, string) bool { return false })
		for _, o := range owners {
			go o.take(1 << 30)
		}
		time.Sleep(time.Minute)
		for _, o := range owners {
			o.check(1, 1200)
		}
		synctest.Wait()
		if got := len(shared); got != 0 {
			t.Errorf("%d turns are taken at the tail, want none", got)
		}
	})
}
