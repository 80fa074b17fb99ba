package deadletter

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// TestLetterIsWhole: the letter has all that a broker knew of the message.
func TestLetterIsWhole(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		const subject = "delay.1m.orders.expire"
		accepted := time.Now().UTC()
		r, problem := k.request(7, subject, "X-Order", "42", "Delay-Expires", "10m", "Delay-TTL", "1h", "Delay-Deliver",
			"stream", "Nats-Msg-Id", "mine")
		if problem != nil {
			t.Fatal(problem)
		}
		time.Sleep(time.Minute)
		first := time.Now().UTC()
		r = r.Refused(first, first.Add(time.Second), "no stock")
		time.Sleep(time.Second)
		r = r.Refused(first.Add(time.Second), first.Add(time.Minute), "no stock")
		r.Hop = 3
		k.deadLetter(r, message.Problemf(message.Undelivered, "no"), "body")
		want := Letter{
			Letter:   message.Letter{Request: r, Code: message.Undelivered, Sentence: "no"},
			Sequence: 1, At: accepted.Add(61 * time.Second), Address: "delaydead.undelivered.orders.expire", Size: 4,
			Data: []byte("body"),
		}
		want.RetryAt, want.LastError = time.Time{}, "" // the letter's sentence says why
		if got := k.one(Query{}); !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		want.Data = nil
		if got := k.one(Query{HeadersOnly: true}); !reflect.DeepEqual(got, want) {
			t.Errorf("headers only: got  %+v\nwant %+v", got, want)
		}
		if now, err := k.Now(k.ctx()); err != nil || !now.Equal(time.Now()) {
			t.Errorf("now: got %v and %v, want %v", now, err, time.Now())
		}
	})
}

// TestNothingStopsTheList: messages that would end a consumer of nats.go are letters like others.
func TestNothingStopsTheList(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		poison := []nats.Header{
			{"Status": {"409"}, "Description": {"Consumer Deleted"}}, {"Status": {"404"}}, {"Status": {"503"}},
			{"Status": {"100"}},
			{"Status": {"408"}, "Nats-Pending-Messages": {"1000"}},
		}
		const rounds = 500 // beyond a batch
		for i := range rounds {
			for _, h := range poison {
				if _, err := k.js.PublishMsgAsync(&nats.Msg{Subject: "delaydead.undelivered.orders.x", Header: h}); err != nil {
					t.Fatal(err)
				}
			}
			if i%100 == 0 {
				<-k.js.PublishAsyncComplete()
			}
		}
		<-k.js.PublishAsyncComplete()
		if err := k.nc.Publish("delaydead.undelivered.orders.raw", nil); err != nil {
			t.Fatal(err)
		}
		k.undelivered(1, "orders.x", "last")
		total := uint64(rounds*len(poison) + 2)
		for _, q := range []Query{{}, {HeadersOnly: true}} {
			var looked, of uint64
			q.Progress = func(l, o uint64) { looked, of = l, o }
			all := k.list(q)
			if got, want := uint64(len(all)), total; got != want || looked != want || of != want {
				t.Fatalf("%d letters, %d of %d looked at, want %d", got, looked, of, want)
			}
			for i, l := range all {
				if l.Sequence != uint64(i+1) || (l.Problem == nil) != (l.Sequence == total) {
					t.Fatalf("number %d is %+v", i, l)
				}
			}
			if err := k.resend(all[0], Change{}); !errors.Is(err, ErrUnreadable) || !errors.Is(err, ErrStays) {
				t.Errorf("resend what no broker wrote: got %v, want ErrUnreadable", err)
			}
		}
		st, err := k.js.Stream(k.ctx(), "DELAY_DEAD")
		if err != nil {
			t.Fatal(err)
		}
		if got := st.CachedInfo().State.Consumers; got != 0 {
			t.Errorf("%d consumers left behind", got)
		}
	})
}

// TestListEnds: letters that come after a list began are not in it, and a list that is broken off leaves no consumer
// behind.
func TestListEnds(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		if got := k.list(Query{}); got != nil {
			t.Errorf("an empty box: got %v", got)
		}
		for n := range uint64(5) {
			k.undelivered(n, "orders.x", "old")
		}
		listed := 0
		for l, err := range k.List(k.ctx(), Query{}) {
			if err != nil {
				t.Fatal(err)
			}
			listed++
			k.undelivered(100+l.Sequence, "orders.x", "new") // one more for each that is dealt with
		}
		if listed != 5 {
			t.Errorf("listed %d, want the 5 that were there", listed)
		}
		for range k.List(k.ctx(), Query{}) {
			break
		}
		if err := k.js.DeleteStream(k.ctx(), "DELAY_DEAD"); err != nil {
			t.Fatal(err)
		}
		for _, err := range k.List(k.ctx(), Query{}) {
			if !errors.Is(err, ErrNoStream) {
				t.Errorf("without a stream: got %v, want ErrNoStream", err)
			}
		}
	})
}

func TestResend(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		r := k.undelivered(1, "orders.expire", "body")
		if err := k.resend(k.one(Query{}), Change{}); err != nil {
			t.Fatal(err)
		}
		want := r
		want.Hop, want.Attempts = r.Hop+1, 0
		want.FirstFailure, want.LastFailure, want.RetryAt = time.Time{}, time.Time{}, time.Time{}
		want.LastError = ""
		if got := k.resent(); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("resent\n%+v\nwant\n%+v", got, want)
		}
		if got := k.count("DELAY_DEAD"); got != 0 {
			t.Errorf("%d letters are left, want none", got)
		}
	})
}

// TestResendTwice: a crash between publish and removal, and two operators at once, put a message into the lane once;
// also when a broker has moved the first copy on already.
func TestResendTwice(t *testing.T) {
	for _, movedOn := range []bool{false, true} {
		natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
			k := newKit(t, s)
			k.undelivered(1, "orders.expire", "body")
			l := k.one(Query{})
			k.crash(l, Change{})
			want := 1
			if movedOn {
				k.purge("DELAY_RETRY_1s")
				want = 0
			}
			for _, want := range []error{nil, ErrAbsent} {
				if err := k.resend(l, Change{}); !errors.Is(err, want) {
					t.Fatalf("got %v, want %v", err, want)
				}
			}
			if got := len(k.resent()); got != want {
				t.Errorf("moved on %v: %d copies in the lane, want %d", movedOn, got, want)
			}
			if got := k.count("DELAY_DEAD"); got != 0 {
				t.Errorf("moved on %v: %d letters are left, want none", movedOn, got)
			}
		})
	}
}

// TestResendIsNotSwallowed: ids that are in the lane's window, of a hop or of another message, do not stand for a
// resend.
func TestResendIsNotSwallowed(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		r := k.undelivered(1, "orders.expire", "body")
		l := k.one(Query{})
		// A copy of the message that was in the lane just now, and died too.
		k.store(&nats.Msg{Subject: "delaysys.retry.1s.orders.expire", Header: nats.Header(r.HopHeader())})
		// Somebody with the rights of a broker, and our id.
		k.store(&nats.Msg{Subject: "delaysys.retry.1s.orders.expire",
			Header: nats.Header{"Nats-Msg-Id": l.ResentHeader()["Nats-Msg-Id"]}})
		if err := k.resend(l, Change{}); err != nil {
			t.Fatal(err)
		}
		if got := k.count("DELAY_RETRY_1s"); got != 3 {
			t.Errorf("%d messages in the lane, want the resent one too", got)
		}
	})
}

// TestForgedResendID: a client has a message with headers of its choice stored in the lane, where it is removed as
// nobody's. Whatever it writes as Nats-Msg-Id, no letter counts as resent for it.
func TestForgedResendID(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.policy.Keys.Use([]string{"a secret that no client knows"}, time.Now().Add(-time.Hour))
		r, _ := k.request(1, "delay.1m.orders.expire")
		m := &nats.Msg{Subject: "delaydead.undelivered.orders.expire",
			Header: nats.Header(r.DeadHeader(message.Problemf(message.Undelivered, "no")))}
		k.policy.Keys.SealMessage(m.Subject, message.Header(m.Header), m.Data, time.Now())
		k.store(m)
		l := k.one(Query{})
		k.store(&nats.Msg{Subject: "delaysys.retry.1s.orders.expire",
			Header: nats.Header{"Nats-Msg-Id": l.ResentHeader()["Nats-Msg-Id"]}})
		k.purge("DELAY_RETRY_1s")
		if err := k.resend(l, Change{}); err != nil {
			t.Fatal(err)
		}
		if got := k.count("DELAY_RETRY_1s"); got != 1 {
			t.Errorf("%d messages in the lane, want the resent one", got)
		}
	})
}

// TestResendFromAnOldList: of two operators who resend the same letter, one has a list that is older than the lane's
// duplicate window. The message goes into the lane once.
func TestResendFromAnOldList(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.undelivered(1, "orders.expire", "body")
		l := k.one(Query{})
		if err := k.resend(l, Change{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := k.resend(l, Change{}); !errors.Is(err, ErrAbsent) {
			t.Errorf("got %v, want ErrAbsent", err)
		}
		if got := k.count("DELAY_RETRY_1s"); got != 1 {
			t.Errorf("%d messages in the lane, want one", got)
		}
	})
}

// TestDeadAgain: a message that dies again at once is another letter, although the first is still there.
func TestDeadAgain(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.undelivered(1, "orders.expire", "body")
		l := k.one(Query{})
		k.crash(l, Change{})
		ack := k.deadLetter(k.resent()[0], message.Problemf(message.Undelivered, "again"), "body")
		if ack.Duplicate || ack.Sequence != 2 {
			t.Fatalf("got %+v: removing the first letter would lose the message", ack)
		}
		if err := k.Remove(k.ctx(), l); err != nil {
			t.Fatal(err)
		}
		if got := k.one(Query{}); got.ID != l.ID || got.Sentence != "again" {
			t.Errorf("left is %+v", got)
		}
	})
}

// TestRefusedByTheLane: a letter stays if its message cannot be stored.
func TestRefusedByTheLane(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.undelivered(1, "orders.x", strings.Repeat("x", 1<<20-4<<10))
		k.undelivered(2, "orders.x", "small")
		all := k.list(Query{})
		if err := k.resend(all[0], Change{}); !errors.Is(err, ErrTooLarge) || !errors.Is(err, ErrStays) {
			t.Errorf("a large one: got %v, want ErrTooLarge", err)
		}
		k.change("DELAY_RETRY_1s", func(c *jetstream.StreamConfig) { c.MaxBytes = 10 })
		if err := k.resend(all[1], Change{}); err == nil || errors.Is(err, ErrStays) ||
			!strings.Contains(err.Error(), "maximum bytes exceeded") {
			t.Errorf("a full lane: got %v", err)
		}
		if err := k.js.DeleteStream(k.ctx(), "DELAY_RETRY_1s"); err != nil {
			t.Fatal(err)
		}
		if err := k.resend(all[1], Change{}); !errors.Is(err, ErrNoStream) {
			t.Errorf("no lane: got %v, want ErrNoStream", err)
		}
		if got := k.count("DELAY_DEAD"); got != 2 {
			t.Errorf("%d letters are left, want both", got)
		}
	})
}

func (k *kit) change(stream string, edit func(*jetstream.StreamConfig)) {
	k.t.Helper()
	natstest.Reconfigure(k.t, k.js, stream, edit)
}

func TestRemove(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		for n := range uint64(4) {
			k.undelivered(n, "orders.x", fmt.Sprint(n))
		}
		all := k.list(Query{HeadersOnly: true})
		for _, i := range []int{1, 3, 0} { // in the middle, the last, the first
			if err := k.Remove(k.ctx(), all[i]); err != nil {
				t.Fatal(err)
			}
			if err := k.Remove(k.ctx(), all[i]); !errors.Is(err, ErrAbsent) {
				t.Errorf("again: got %v, want ErrAbsent", err)
			}
		}
		if got, want := sequences(k.list(Query{})), []uint64{3}; !slices.Equal(got, want) {
			t.Errorf("left are %v, want %v", got, want)
		}
		if err := k.resend(k.one(Query{HeadersOnly: true}), Change{}); err == nil || !strings.Contains(err.Error(), "bug") {
			t.Errorf("a letter without its body: got %v", err)
		}
	})
}
