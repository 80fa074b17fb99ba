package lease

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestStatic: Acquire immediately returns a permanent lease of a lane in the set; without a set, of any lane. For any
// other lane, it calls onStandby once and waits until the context ends.
func TestStatic(t *testing.T) {
	for _, leaser := range []Static{{}, {Lanes: []string{"A", "B"}}} {
		lease, err := leaser.Acquire(context.Background(), "B", func() { t.Error("onStandby was called for B") })
		if err != nil || lease.Cursor() != (Cursor{}) || !lease.Held() {
			t.Errorf("B: got %v, %v; want a lease that is held, with the zero cursor", lease, err)
		}
		if err := lease.Release(context.Background(), Cursor{Next: 7}); err != nil {
			t.Errorf("release: %v", err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		calls, ended := 0, make(chan error, 1)
		go func() {
			_, err := Static{Lanes: []string{"A"}}.Acquire(ctx, "B", func() { calls++ })
			ended <- err
		}()
		synctest.Wait()
		if calls != 1 || len(ended) != 0 {
			t.Errorf("onStandby was called %d times and Acquire ended %d times, want 1 and 0", calls, len(ended))
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v, want the context's error", err)
		}
	})
}
