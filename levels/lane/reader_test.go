package lane

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// TestReadsInOrder reads what is there, several requests long, and what comes later.
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
		if last := o.stored[len(o.stored)-1]; !last.At.Equal(time.Now()) || last.Behind != 0 {
			t.Errorf("the last is stored at %s with %d behind it, want %s and 0", last.At, last.Behind, time.Now())
		}
	})
}

// TestOneConsumerIsEnough leaves a lane idle between small bursts: the consumer that watches slowly at the tail must
// survive them, or every burst costs a new one, and the server keeps each for five minutes.
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

// TestFrom begins below, within and above what the stream holds. Above it, the previous owner knew another history.
func TestFrom(t *testing.T) {
	for _, tt := range []struct {
		from  uint64
		first int
	}{{0, 4}, {1, 4}, {4, 4}, {7, 7}, {10, 10}, {11, 11}, {12, 4}, {1000, 4}} {
		t.Run(fmt.Sprint(tt.from), func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				r := newRig(t, s)
				r.publish(1, 10)
				r.purge(jetstream.WithPurgeSequence(4))
				o := r.read(s.Connect(), tt.from)
				o.check(tt.first, 10)
				r.publish(11, 12)
				o.check(tt.first, 12)
			})
		})
	}
}

// TestLive: an epoch lives with its consumer and not longer, since what is purged in between may be another history's.
func TestLive(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		nc := s.Connect()
		o := r.read(nc, 0)
		synctest.Wait()
		if got, want := o.Live(), uint64(1); got != want {
			t.Errorf("Live = %d while it reads, want %d", got, want)
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

// TestResumesAfterRestart restarts the server in the midst of reading: everything comes once, and the stream is known
// to be the same.
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
			if e.Fresh {
				t.Errorf("epoch %d is of another history after a restart", e.Number)
			}
		}
	})
}

// TestResumesBehindAPurge purges what was read, the last included, and lets the reader resume there.
func TestResumesBehindAPurge(t *testing.T) {
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

// TestConsumerDeleted deletes the consumer under the reader: it makes another where it was.
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

func (r *rig) deleteConsumers() {
	r.t.Helper()
	for _, name := range r.consumers() {
		if err := r.js.DeleteConsumer(context.Background(), r.spec.Stream, name); err != nil {
			r.t.Fatalf("delete the consumer: %v", err)
		}
	}
}

func (r *rig) consumers() []string {
	r.t.Helper()
	st, err := r.js.Stream(context.Background(), r.spec.Stream)
	if err != nil {
		r.t.Fatalf("stream: %v", err)
	}
	var names []string
	for name := range st.ConsumerNames(context.Background()).Name() {
		names = append(names, name)
	}
	return names
}

// TestAnotherHistory deletes the stream and creates it again with fewer, as many and more messages than were read.
func TestAnotherHistory(t *testing.T) {
	for _, stored := range []int{0, 1, 9, 10, 11, 50} {
		t.Run(fmt.Sprint(stored), func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				r := newRig(t, s)
				o := r.read(s.Connect(), 0)
				r.publish(1, 10)
				o.check(1, 10)
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

// replace makes another stream of the same name.
func (r *rig) replace() {
	r.t.Helper()
	if err := r.js.DeleteStream(context.Background(), r.spec.Stream); err != nil {
		r.t.Fatalf("delete: %v", err)
	}
	r.create()
}

func numbers(from, to int) (all []string) {
	for i := from; i <= to; i++ {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

// TestHistoryCutBack lets the sequences of one stream go back, as after a loss of power: from a copy of its earlier
// state. The message where the reader resumes has another timestamp, or is not there at all.
func TestHistoryCutBack(t *testing.T) {
	for _, rewritten := range []int{0, 5, 10, 20} {
		t.Run(fmt.Sprint(rewritten), func(t *testing.T) {
			dir, old := t.TempDir(), t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				s := natstest.Run(t, dir)
				r := newRig(t, s)
				o := r.read(s.Connect(), 0)
				r.publish(1, 5)
				o.check(1, 5)
				s.Stop()
				copyDir(t, old, dir)
				s.Start()
				time.Sleep(5 * time.Second)
				r.publish(6, 15)
				o.check(1, 15)
				s.Stop()
				copyDir(t, dir, old)
				s.Start()
				// A second server life begins with five messages; clients are faster than the reader.
				for i := range rewritten {
					r.retry(&nats.Msg{Subject: "delay.30m.x", Data: fmt.Append(nil, 100+i)})
				}
				time.Sleep(5 * time.Second)
				o.mu.Lock()
				defer o.mu.Unlock()
				for _, want := range numbers(100, 99+rewritten) {
					if !slices.Contains(o.got, want) {
						t.Errorf("%s was stored after the cut and never read", want)
					}
				}
				if !o.epochs[len(o.epochs)-1].Fresh && len(o.epochs) > 1 {
					fresh := slices.ContainsFunc(o.epochs[1:], func(e Epoch) bool { return e.Fresh })
					if !fresh {
						t.Error("the cut went unnoticed")
					}
				}
			})
		})
	}
}

// retry publishes until the server takes it.
func (r *rig) retry(m *nats.Msg) {
	for {
		if _, err := r.js.PublishMsg(context.Background(), m); err == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// TestHostileMessages stores what looks like a control message to other readers.
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

// TestSlowOwner takes nothing for longer than the server keeps an idle consumer, and then everything.
func TestSlowOwner(t *testing.T) {
	for _, count := range []int{10, 700, 3000} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				r := newRig(t, s)
				r.burst(1, count)
				o := r.reader(s.Connect(), 0)
				time.Sleep(time.Hour)
				if n := len(r.consumers()); count > 2*bufferItems && n > 0 {
					t.Errorf("%d consumers after an hour in which nothing was taken, want none", n)
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

// TestStopsBlocked stops a reader whose owner does not take; the bubble sees what leaks.
func TestStopsBlocked(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		r.burst(1, 1000)
		o := r.reader(s.Connect(), 0)
		time.Sleep(time.Second)
		before := time.Now()
		o.stop()
		o.stop = func() {}
		if took := time.Since(before); took != 0 {
			t.Errorf("stopping took %s, want none", took)
		}
		if got := r.consumers(); len(got) > 0 {
			t.Errorf("a clean stop leaves consumers %v", got)
		}
	})
}
