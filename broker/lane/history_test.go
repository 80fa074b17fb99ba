package lane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// TestResumesAfterRestart: the server restarts while the reader reads. Every message is delivered once, and the stream
// is recognized.
func TestResumesAfterRestart(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		o := r.read(s.Connect(), 0)
		r.publish(1, 10)
		o.check(1, 10)
		s.Restart(20 * time.Second)
		time.Sleep(time.Second)
		r.publish(11, 20)
		time.Sleep(5 * time.Second)
		o.check(1, 20)
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, e := range o.epochs[1:] {
			if e.NewHistory {
				t.Errorf("after a restart, epoch %d has another history", e.Number)
			}
		}
	})
}

// TestResumesAfterPurge: all messages that were read are purged. The reader resumes after the last of them.
func TestResumesAfterPurge(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		o := r.read(s.Connect(), 0)
		r.publish(1, 10)
		o.check(1, 10)
		r.purge()
		r.publish(11, 11)
		o.check(1, 11)
		r.purge()
		r.deleteConsumers()
		time.Sleep(time.Second)
		o.check(1, 11) // the same sequence is not read twice
		r.publish(12, 13)
		o.check(1, 13)
		o.checkEpochs("fresh", "same")
	})
}

// TestConsumerDeleted: the consumer is deleted. The reader creates another consumer, which starts at the last message
// read.
func TestConsumerDeleted(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		o := r.read(s.Connect(), 0)
		r.publish(1, 5)
		o.check(1, 5)
		r.deleteConsumers()
		r.publish(6, 10)
		time.Sleep(time.Second)
		o.check(1, 10)
		o.checkEpochs("fresh", "same")
	})
}

// TestAnotherHistory: the stream is deleted and created again, with fewer messages than were read, as many, or more.
// The reader reads the new stream from its first message.
func TestAnotherHistory(t *testing.T) {
	for _, stored := range []int{0, 1, 9, 10, 11, 50} {
		t.Run(fmt.Sprint(stored), func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				r := newRig(t, s)
				o := r.read(s.Connect(), 0)
				r.publish(1, 10)
				o.check(1, 10)
				time.Sleep(time.Second) // otherwise, the creation times of both streams would be equal
				r.replace()
				r.publish(101, 100+stored)
				time.Sleep(time.Second)
				want := slices.Concat(numbers(1, 10), numbers(101, 100+stored))
				o.checkBodies(want...)
				o.checkEpochs("fresh", "fresh")
				r.publish(200, 200)
				o.checkBodies(append(want, "200")...)
			})
		})
	}
}

func numbers(first, last int) (bodies []string) {
	for i := first; i <= last; i++ {
		bodies = append(bodies, fmt.Sprint(i))
	}
	return bodies
}

// TestTruncatedHistory: the stream is truncated, as after a loss of power: the test restores an earlier copy. The
// message with the sequence of the last message read has another timestamp, or is missing. The reader notices the
// truncation, and reads the new messages.
func TestTruncatedHistory(t *testing.T) {
	for _, rewritten := range []int{0, 5, 10, 20} {
		t.Run(fmt.Sprint(rewritten), func(t *testing.T) {
			dir, old := natstest.Dir(t), natstest.Dir(t)
			natstest.BubbleWith(t, server.Options{StoreDir: dir}, func(t *testing.T, s *natstest.Server) {
				r := newRig(t, s)
				o := r.read(s.Connect(), 0)
				r.publish(1, 5)
				o.check(1, 5)
				s.Stop()
				copyDir(t, old, dir)
				s.Start()
				time.Sleep(time.Minute)
				r.publish(6, 15)
				o.check(1, 15)
				s.Stop()
				copyDir(t, dir, old)
				s.Start()
				// The server starts again with five messages, and clients publish before the reader reconnects.
				for i := range rewritten {
					r.retry(&nats.Msg{Subject: "delay.30m.x", Data: fmt.Append(nil, 100+i)})
				}
				time.Sleep(time.Minute)
				o.mu.Lock()
				defer o.mu.Unlock()
				for _, want := range numbers(100, 99+rewritten) {
					if !slices.Contains(o.got, want) {
						t.Errorf("%s was stored after the cut and never read", want)
					}
				}
				if !slices.ContainsFunc(o.epochs[1:], func(e Epoch) bool { return e.NewHistory }) {
					t.Error("the reader has not noticed that the stream was truncated")
				}
			})
		})
	}
}

// TestAnotherHistoryIsNotForgotten: the first attempt to read a truncated stream fails. The next epoch must still
// report another history. Otherwise, the owner would purge by a cursor of the old history.
func TestAnotherHistoryIsNotForgotten(t *testing.T) {
	dir, old := natstest.Dir(t), natstest.Dir(t)
	natstest.BubbleWith(t, server.Options{StoreDir: dir}, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		s.Stop()
		copyDir(t, old, dir)
		s.Start()
		time.Sleep(time.Minute)
		nc := s.Connect()
		failing := &failingConsumers{JetStream: s.JetStream(nc)}
		o := r.readerOf(ReaderConfig{Conn: nc, JetStream: failing})
		go o.take(1 << 30)
		r.publish(1, 10)
		o.check(1, 10)
		s.Stop()
		copyDir(t, dir, old)
		failing.times = 2
		s.Start()
		time.Sleep(time.Minute)
		r.publish(101, 150)
		time.Sleep(time.Second)
		o.checkBodies(slices.Concat(numbers(1, 10), numbers(101, 150))...)
		o.mu.Lock()
		defer o.mu.Unlock()
		if !o.epochs[1].NewHistory {
			t.Error("the first epoch after the truncation has the same history")
		}
	})
}

// failingConsumers is a JetStream that fails to create consumers.
type failingConsumers struct {
	jetstream.JetStream
	times int // number of requests that still fail
}

func (f *failingConsumers) CreateConsumer(ctx context.Context, stream string,
	cfg jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	if f.times > 0 {
		f.times--
		return nil, errors.New("no consumer for a test")
	}
	return f.JetStream.CreateConsumer(ctx, stream, cfg)
}

// TestBlockedReaderSeesLoss: the connection is lost while the owner takes nothing. The owner must not commit any more,
// because the server may come back with another history.
func TestBlockedReaderSeesLoss(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		r.burst(1, 2000)
		o := r.reader(s.Connect(), 0)
		o.take(11)
		synctest.Wait()
		if got, want := o.Live(), uint64(1); got != want {
			t.Fatalf("Live = %d, want %d", got, want)
		}
		s.Restart(time.Second)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := o.Live(); got == 1 {
			t.Error("after a restart, the first epoch is still live")
		}
		go o.take(1 << 30)
		time.Sleep(time.Minute)
		o.check(1, 2000)
	})
}

// TestBacksOff: the reader creates only a few consumers if each fails immediately, for example at a limit of the
// account.
func TestBacksOff(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		nc := s.Connect()
		counting := &shortLivedConsumers{JetStream: s.JetStream(nc)}
		o := r.readerOf(ReaderConfig{Conn: nc, JetStream: counting})
		go o.take(1 << 30)
		time.Sleep(time.Minute)
		synctest.Wait()
		if limit := 40; counting.consumers > limit {
			t.Errorf("%d consumers in a minute, want at most %d", counting.consumers, limit)
		}
	})
}

// shortLivedConsumers is a JetStream whose consumers disappear as soon as they are created.
type shortLivedConsumers struct {
	jetstream.JetStream
	consumers int // number of created consumers
}

func (f *shortLivedConsumers) CreateConsumer(ctx context.Context, stream string,
	cfg jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	f.consumers++
	c, err := f.JetStream.CreateConsumer(ctx, stream, cfg)
	if err == nil {
		err = f.JetStream.DeleteConsumer(ctx, stream, cfg.Name)
	}
	return c, err
}

// copyDir replaces the directory target with a copy of source.
func copyDir(t *testing.T, target, source string) {
	t.Helper()
	if err := os.RemoveAll(target); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(target, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
}
