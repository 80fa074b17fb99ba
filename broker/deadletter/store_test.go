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

	"delaybroker/broker/message"
)

// TestLetterIsComplete: a listed letter has all fields of the request.
func TestLetterIsComplete(t *testing.T) {
	bubble(t, func(t *testing.T, k *kit) {
		const subject = "delay.1m.orders.expire"
		accepted := time.Now().UTC()
		r, problem := k.request(7, subject, "X-Order", "42", "Delay-Expires", "10m", "Delay-TTL", "1h", "Delay-Deliver",
			"stream", "Nats-Msg-Id", "mine")
		if problem != nil {
			t.Fatal(problem)
		}
		time.Sleep(time.Minute)
		first := time.Now().UTC()
		r = r.WithRefusal(first, first.Add(time.Second), "no stock")
		time.Sleep(time.Second)
		r = r.WithRefusal(first.Add(time.Second), first.Add(time.Minute), "no stock")
		r.Hop = 3
		k.deadLetter(r, message.Problemf(message.Undelivered, "no"), "body")
		want := Letter{
			Letter:   message.Letter{Request: r, Code: message.Undelivered, Sentence: "no"},
			Sequence: 1, At: accepted.Add(61 * time.Second), Address: "delaydead.undelivered.orders.expire", Size: 4,
			Data: []byte("body"),
		}
		want.RetryAt, want.LastError = time.Time{}, "" // a letter has Sentence instead
		if got := k.onlyLetter(Query{}); !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		want.Data = nil
		if got := k.onlyLetter(Query{HeadersOnly: true}); !reflect.DeepEqual(got, want) {
			t.Errorf("headers only: got  %+v\nwant %+v", got, want)
		}
		if now, err := k.Now(k.ctx()); err != nil || !now.Equal(time.Now()) {
			t.Errorf("now: got %v and %v, want %v", now, err, time.Now())
		}
	})
}

// TestNothingStopsTheList: List yields stored messages with the headers of nats-server's status messages. Such a
// message would end a consumer of nats.go.
func TestNothingStopsTheList(t *testing.T) {
	bubble(t, func(t *testing.T, k *kit) {
		poison := []nats.Header{
			{"Status": {"409"}, "Description": {"Consumer Deleted"}}, {"Status": {"404"}}, {"Status": {"503"}},
			{"Status": {"100"}},
			{"Status": {"408"}, "Nats-Pending-Messages": {"1000"}},
		}
		const rounds = 500 // more than one batch
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
			var read, estimate uint64
			q.Progress = func(r, e uint64) { read, estimate = r, e }
			letters := k.list(q)
			if got, want := uint64(len(letters)), total; got != want || read != want || estimate != want {
				t.Fatalf("%d letters, %d of %d read, want %d", got, read, estimate, want)
			}
			for i, l := range letters {
				if l.Sequence != uint64(i+1) || (l.Problem == nil) != (l.Sequence == total) {
					t.Fatalf("got %+v, want number %d, readable only if it is the last", l, i+1)
				}
			}
			if err := k.resend(letters[0], Resend{}); !errors.Is(err, ErrUnreadable) || !errors.Is(err, ErrNotResendable) {
				t.Errorf("resend a letter that no broker wrote: got %v, want ErrUnreadable", err)
			}
		}
		if got := k.stream("DELAY_DEAD").CachedInfo().State.Consumers; got != 0 {
			t.Errorf("the lists have left %d consumers, want none", got)
		}
	})
}

// TestListEnds: List does not yield letters that are stored during the iteration. If the caller stops early, List
// deletes its consumer.
func TestListEnds(t *testing.T) {
	bubble(t, func(t *testing.T, k *kit) {
		if got := k.list(Query{}); got != nil {
			t.Errorf("an empty stream: got %v, want no letter", got)
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
			k.undelivered(100+l.Sequence, "orders.x", "new") // a new letter for each listed letter
		}
		if listed != 5 {
			t.Errorf("%d letters were listed, want the 5 that were stored before", listed)
		}
		for range k.List(k.ctx(), Query{}) {
			break
		}
		if err := k.js.DeleteStream(k.ctx(), "DELAY_DEAD"); err != nil {
			t.Fatal(err)
		}
		for _, err := range k.List(k.ctx(), Query{}) {
			if !errors.Is(err, errNoStream) {
				t.Errorf("without a stream: got %v, want ErrNoStream", err)
			}
		}
	})
}

func TestRemove(t *testing.T) {
	bubble(t, func(t *testing.T, k *kit) {
		for n := range uint64(4) {
			k.undelivered(n, "orders.x", fmt.Sprint(n))
		}
		letters := k.list(Query{HeadersOnly: true})
		for _, i := range []int{1, 3, 0} { // a letter in the middle, the last, and the first
			if err := k.Remove(k.ctx(), letters[i]); err != nil {
				t.Fatal(err)
			}
			if err := k.Remove(k.ctx(), letters[i]); !errors.Is(err, ErrAbsent) {
				t.Errorf("a second removal: got %v, want ErrAbsent", err)
			}
		}
		if got, want := numbersOf(k.list(Query{})), []uint64{3}; !slices.Equal(got, want) {
			t.Errorf("the remaining letters are %v, want %v", got, want)
		}
		err := k.resend(k.onlyLetter(Query{HeadersOnly: true}), Resend{})
		if err == nil || !strings.Contains(err.Error(), "bug") {
			t.Errorf("a letter without its body: got %v, want a bug", err)
		}
	})
}
