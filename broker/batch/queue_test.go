package batch

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// words is a batch of words. Its size is the number of their bytes.
type words struct {
	all  []string
	size int
}

func (w *words) Add(word string) { w.all, w.size = append(w.all, word), w.size+len(word) }
func (w *words) Size() int       { return w.size }
func (w *words) Reset()          { *w = words{all: w.all[:0]} }

// observer receives batches.
type observer struct {
	began   time.Time
	batches [][]string
	after   []time.Duration          // from began until the batch was sent
	pause   chan struct{}            // if not nil, send waits for this channel or the end of its context
	refuse  func(batch []string) int // if not nil, the number of dropped items
}

func (o *observer) send(ctx context.Context, w *words, _ time.Time) (dropped int) {
	o.batches, o.after = append(o.batches, slices.Clone(w.all)), append(o.after, time.Since(o.began))
	if o.pause != nil {
		select {
		case <-o.pause:
		case <-ctx.Done():
			return len(w.all)
		}
	}
	if o.refuse != nil {
		return o.refuse(w.all)
	}
	return 0
}

// start runs a queue until stop is called.
func start(l Limits, o *observer) (q *Queue[string, words, *words], stop func()) {
	q = New[string, words](l)
	ctx, cancel := context.WithCancel(context.Background())
	o.began = time.Now()
	var running sync.WaitGroup
	running.Go(func() { q.Run(ctx, func() time.Duration { return time.Second }, o.send) })
	return q, func() {
		cancel()
		running.Wait()
	}
}

// TestBatches: an item waits for further items for exactly Limits.Wait, and a full batch does not wait. A stop sends
// the rest at once.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o observer
		q, stop := start(Limits{Room: 100, Full: 4, Wait: time.Second}, &o)
		time.Sleep(time.Second)
		q.Add("a")
		time.Sleep(time.Second - 1)
		q.Add("b")
		time.Sleep(time.Second)
		for range 3 {
			q.Add("cc")
		}
		synctest.Wait()
		time.Sleep(time.Second / 2)
		stop()
		want := [][]string{{"a", "b"}, {"cc", "cc"}, {"cc"}}
		after := []time.Duration{2 * time.Second, 3*time.Second - 1, 3*time.Second + time.Second/2 - 1}
		if !slices.EqualFunc(o.batches, want, slices.Equal) || !slices.Equal(o.after, after) || q.Dropped() != 0 {
			t.Errorf("sent %v after %v, dropped %d; want %v after %v, and no drop", o.batches, o.after, q.Dropped(), want, after)
		}
	})
}

// TestRoomIsBounded: Add takes no time. While an observer is silent, the items beyond the room are dropped and counted;
// items that are being sent take room, too. Afterwards, there is room again.
func TestRoomIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := observer{pause: make(chan struct{})}
		q, stop := start(Limits{Room: 10, Full: 4, Wait: time.Second}, &o)
		began := time.Now()
		for range 6 {
			q.Add("ab")
			synctest.Wait()
		}
		if items, since := q.Waiting(); items != 5 || !since.Equal(began) || q.Dropped() != 1 || time.Now() != began {
			t.Errorf("%d items wait since %s, %d dropped; want 5 since %s, and 1", items, since, q.Dropped(), began)
		}
		close(o.pause)
		time.Sleep(time.Second)
		synctest.Wait()
		if items, since := q.Waiting(); items != 0 || !since.IsZero() {
			t.Errorf("%d items wait since %s, want none", items, since)
		}
		q.Add("cd")
		stop()
		want := [][]string{{"ab", "ab"}, {"ab", "ab"}, {"ab"}, {"cd"}}
		if !slices.EqualFunc(o.batches, want, slices.Equal) || q.Dropped() != 1 {
			t.Errorf("sent %v, dropped %d; want %v, and 1", o.batches, q.Dropped(), want)
		}
	})
}

// TestEachItemIsSentOrCounted: a stop waits for a silent observer for the grace period. Items that the observer did not
// take, and items that are added after the stop, count as dropped.
func TestEachItemIsSentOrCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := observer{pause: make(chan struct{})}
		q, stop := start(Limits{Room: 100, Full: 2, Wait: time.Second}, &o)
		for range 5 {
			q.Add("x")
		}
		began := time.Now()
		if stop(); time.Since(began) != time.Second {
			t.Errorf("the stop took %s, want the grace period of one second", time.Since(began))
		}
		if q.Add("y"); q.Dropped() != 6 || len(o.batches) != 3 {
			t.Errorf("%d dropped in %d batches, want 6 in 3", q.Dropped(), len(o.batches))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		o := observer{refuse: func(batch []string) int { return len(batch) - 1 }}
		q, stop := start(Limits{Room: 100, Full: 3, Wait: time.Second}, &o)
		for range 3 {
			q.Add("x")
		}
		if stop(); q.Dropped() != 2 {
			t.Errorf("%d dropped, want the 2 that the observer reports", q.Dropped())
		}
	})
}
