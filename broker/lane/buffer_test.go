package lane

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/test/natstest"
)

// TestMessagesLargerThanBuffer: a reader with a small buffer delivers messages of any size, even larger than the
// buffer, in the order of their sequences. The reader needs one consumer, and does not pause.
func TestMessagesLargerThanBuffer(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		last := 0
		store := func(count, size int) {
			for range count {
				last++
				r.store(&nats.Msg{Subject: "delay.30m.x", Data: fmt.Appendf(nil, "%d%*s", last, size, "")})
			}
		}
		store(300, 0)
		store(2, 200<<10)
		store(600, 64<<10/250-60) // about 250 of these messages fill the buffer
		store(3, 100<<10)
		store(1, 0)
		o := r.readerOf(ReaderConfig{Conn: s.Connect(), JetStream: s.JetStream(s.Connect()), Buffer: 64 << 10})
		go o.take(1 << 30)
		check := func() {
			t.Helper()
			synctest.Wait() // without passing of time
			o.mu.Lock()
			defer o.mu.Unlock()
			for i, m := range o.stored {
				if m.Sequence != uint64(i+1) {
					t.Fatalf("the message read as number %d has sequence %d", i+1, m.Sequence)
				}
			}
			if got := len(o.stored); got != last {
				t.Fatalf("%d messages are read, want %d", got, last)
			}
		}
		check()
		time.Sleep(time.Minute)
		store(1, 300<<10) // for the request that waits at the tail
		check()
		o.checkEpochs("fresh")
	})
}
