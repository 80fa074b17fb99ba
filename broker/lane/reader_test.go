package lane

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// TestReadsInOrder: the reader delivers the stored messages, which take several requests, and messages that are stored
// later.
func TestReadsInOrder(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		r.burst(1, 2000)
		o := r.read(s.Connect(), 0)
		o.check(1, 2000)
		for i := range 20 {
			time.Sleep(time.Duration(i) * time.Minute)
			r.burst(2001+100*i, 2100+100*i)
			o.check(1, 2100+100*i)
		}
		o.checkEpochs("fresh")
		for i, m := range o.stored {
			if m.Sequence != uint64(i+1) || m.Subject != "delay.30m.x" {
				t.Fatalf("message %d has sequence %d, subject %s", i+1, m.Sequence, m.Subject)
			}
		}
		if last := o.stored[len(o.stored)-1]; !last.At.Equal(time.Now()) || last.Pending != 0 {
			t.Errorf("the last message is stored at %s with %d pending, want %s and 0", last.At, last.Pending, time.Now())
		}
	})
}

// TestOneConsumerIsEnough: the reader needs only one consumer for a lane that is idle between small bursts. Otherwise,
// every burst would cost a new consumer, and the server keeps each consumer for five minutes.
func TestOneConsumerIsEnough(t *testing.T) {
	for _, idle := range []time.Duration{time.Second, 20 * time.Second, time.Minute, time.Hour} {
		t.Run(idle.String(), func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				r := newRig(t, s)
				o := r.read(s.Connect(), 0)
				last := 0
				for n := range 12 {
					time.Sleep(idle)
					r.burst(last+1, last+n)
					last += n
				}
				time.Sleep(time.Hour)
				o.check(1, last)
				o.checkEpochs("fresh")
			})
		})
	}
}

// TestFrom: the reader starts at the first message of the stream, for any cursor of the previous owner. A cursor above
// the first sequence belongs to another history: the leader does not have that commit.
func TestFrom(t *testing.T) {
	for _, from := range []uint64{0, 1, 4, 5, 10, 11, 12, 1000} {
		t.Run(fmt.Sprint(from), func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				r := newRig(t, s)
				r.publish(1, 10)
				r.purge(jetstream.WithPurgeSequence(4))
				o := r.read(s.Connect(), from)
				o.check(4, 10)
				r.publish(11, 12)
				o.check(4, 12)
			})
		})
	}
}

// TestFromDropsCommitted: the reader drops messages below the previous owner's cursor, which a lagging replica still
// returns.
func TestFromDropsCommitted(t *testing.T) {
	r := NewReader(ReaderConfig{From: 7})
	for seq := range uint64(10) {
		if err := r.accept(t.Context(), Message{Sequence: seq + 1}); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(r.items); got != 4 {
		t.Errorf("%d of 10 are handed over, want the 4 from sequence 7 on", got)
	}
}

// TestFromOfTruncatedHistory: the reader ignores the previous owner's cursor after the stream was restored. The
// restored stream has the same creation time, and new messages have the sequences of committed messages.
func TestFromOfTruncatedHistory(t *testing.T) {
	dir, old := natstest.Dir(t), natstest.Dir(t)
	natstest.BubbleWith(t, server.Options{StoreDir: dir}, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		r.publish(1, 5)
		s.Stop()
		copyDir(t, old, dir)
		s.Start()
		time.Sleep(time.Minute) // the connection is back
		js := s.JetStream(s.Connect())
		st, err := js.Stream(context.Background(), r.spec.Stream)
		if err != nil {
			t.Fatal(err)
		}
		r.publish(6, 15)
		s.Stop()
		copyDir(t, dir, old)
		s.Start()
		time.Sleep(time.Minute) // the connection is back
		r.publish(6, 25)
		o := r.readerOf(ReaderConfig{Conn: s.Connect(), JetStream: js, From: 16, FromCreated: st.CachedInfo().Created})
		go o.take(1 << 30)
		o.check(1, 25)
	})
}

// TestLive: when its consumer has ended, an epoch is not live any more, because a purge may then affect another
// history.
func TestLive(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		nc := s.Connect()
		o := r.read(nc, 0)
		synctest.Wait()
		if got, want := o.Live(), uint64(1); got != want {
			t.Errorf("Live = %d while the reader reads, want %d", got, want)
		}
		s.Stop()
		synctest.Wait()
		if got := o.Live(); got != 0 {
			t.Errorf("Live = %d without a server, want 0", got)
		}
		s.Start()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got, want := o.Live(), o.epochs[len(o.epochs)-1].Number; got != want || got == 1 {
			t.Errorf("Live = %d after a restart, want %d", got, want)
		}
	})
}

// TestHostileMessages: stored messages that look like control messages are delivered like other messages.
func TestHostileMessages(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		o := r.read(s.Connect(), 0)
		hostile := []nats.Header{
			{"Status": {"100"}, "Nats-Last-Consumer": {"1000"}},
			{"Status": {"404"}}, {"Status": {"408"}, "Nats-Pending-Messages": {"500"}},
			{"Status": {"409"}, "Description": {"Consumer Deleted"}}, {"Status": {"503"}},
		}
		for _, h := range hostile {
			r.store(&nats.Msg{Subject: "delay.30m.x", Header: h})
		}
		r.store(&nats.Msg{Subject: "delay.30m.x", Reply: "$JS.ACK.S.c.1.9.9.9.9", Data: []byte("a reply")})
		r.store(&nats.Msg{Subject: "delay.30m.x", Data: []byte("last")})
		o.checkBodies("", "", "", "", "", "a reply", "last")
		o.checkEpochs("fresh")
		for i, h := range hostile {
			if got, want := o.stored[i].Header["Status"], h["Status"]; !slices.Equal(got, want) {
				t.Errorf("message %d came with status %v, want %v", i, got, want)
			}
		}
	})
}

// TestSlowOwner: the owner takes no message for longer than the server keeps an idle consumer, and then all messages.
func TestSlowOwner(t *testing.T) {
	for _, count := range []int{10, 700, 3000} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				r := newRig(t, s)
				r.burst(1, count)
				o := r.reader(s.Connect(), 0)
				time.Sleep(time.Hour)
				if n := len(r.consumers()); count > 2*bufferItems && n > 0 {
					t.Errorf("%d consumers after an hour without a taken item, want none", n)
				}
				go o.take(1 << 30)
				time.Sleep(5 * time.Second)
				o.check(1, count)
				r.burst(count+1, count+10)
				time.Sleep(time.Second)
				o.check(1, count+10)
			})
		})
	}
}

// TestStopsBlocked: a reader stops even while its owner takes nothing. The bubble detects goroutines that do not end.
func TestStopsBlocked(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		r.burst(1, 1000)
		o := r.reader(s.Connect(), 0)
		time.Sleep(time.Second)
		start := time.Now()
		o.stop()
		o.stop = func() {}
		if took := time.Since(start); took != 0 {
			t.Errorf("the stop took %s, want 0s", took)
		}
		if got := r.consumers(); len(got) > 0 {
			t.Errorf("after a clean stop, the consumers are %v, want none", got)
		}
	})
}
