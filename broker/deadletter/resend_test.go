package deadletter

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

func TestResend(t *testing.T) {
	bubble(t, func(t *testing.T, k *kit) {
		r := k.undelivered(1, "orders.expire", "body")
		if err := k.resend(k.onlyLetter(Query{}), Resend{}); err != nil {
			t.Fatal(err)
		}
		want := r
		want.Hop, want.Attempts = r.Hop+1, 0
		want.FirstFailure, want.LastFailure, want.RetryAt = time.Time{}, time.Time{}, time.Time{}
		want.LastError, want.EarlierRefusals = "", ""
		if got := k.resent(); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("resent\n%+v\nwant\n%+v", got, want)
		}
		k.wantCount("DELAY_DEAD", 0)
	})
}

// TestResendTwice: after a repeated resend, the lane has stored the message once, even if a broker has already moved
// the first copy to another lane.
func TestResendTwice(t *testing.T) {
	for _, moved := range []bool{false, true} {
		bubble(t, func(t *testing.T, k *kit) {
			l := k.newLetter()
			k.crash(l, Resend{})
			want := 1
			if moved {
				k.purge("DELAY_RETRY_1s")
				want = 0
			}
			for _, want := range []error{nil, ErrAbsent} {
				if err := k.resend(l, Resend{}); !errors.Is(err, want) {
					t.Fatalf("got %v, want %v", err, want)
				}
			}
			if got := len(k.resent()); got != want {
				t.Errorf("moved on %v: %d copies in the lane, want %d", moved, got, want)
			}
			k.wantCount("DELAY_DEAD", 0)
		})
	}
}

// TestResendIsNoDuplicate: neither a hop of the message nor a client's message makes a resend a duplicate.
func TestResendIsNoDuplicate(t *testing.T) {
	bubble(t, func(t *testing.T, k *kit) {
		r := k.undelivered(1, "orders.expire", "body")
		l := k.onlyLetter(Query{})
		// The lane's duplicate window has a hop of the message.
		k.store(&nats.Msg{Subject: "delaysys.retry.1s.orders.expire", Header: nats.Header(r.HopHeader())})
		// A client with a broker's permissions uses the first part of the id that the resend will have.
		k.store(&nats.Msg{Subject: "delaysys.retry.1s.orders.expire",
			Header: nats.Header{"Nats-Msg-Id": l.ResentHeader()["Nats-Msg-Id"]}})
		if err := k.resend(l, Resend{}); err != nil {
			t.Fatal(err)
		}
		k.wantCount("DELAY_RETRY_1s", 3)
	})
}

// TestForgedResendID: a client stores a forged message in the lane with the Nats-Msg-Id in the letter, and the broker
// removes the message. A resend is not a duplicate of this message.
func TestForgedResendID(t *testing.T) {
	bubble(t, func(t *testing.T, k *kit) {
		k.policy.Keys.Replace([]string{"a secret that no client knows"})
		r, _ := k.request(1, "delay.1m.orders.expire")
		m := &nats.Msg{Subject: "delaydead.undelivered.orders.expire",
			Header: nats.Header(r.DeadHeader(message.Problemf(message.Undelivered, "no")))}
		k.policy.Keys.SealMessage(m.Subject, message.Header(m.Header), m.Data)
		k.store(m)
		l := k.onlyLetter(Query{})
		k.store(&nats.Msg{Subject: "delaysys.retry.1s.orders.expire",
			Header: nats.Header{"Nats-Msg-Id": l.ResentHeader()["Nats-Msg-Id"]}})
		k.purge("DELAY_RETRY_1s")
		if err := k.resend(l, Resend{}); err != nil {
			t.Fatal(err)
		}
		k.wantCount("DELAY_RETRY_1s", 1)
	})
}

// TestResendFromAnOldList: a second operator resends a letter after the end of the duplicate window. The lane has
// stored the message once.
func TestResendFromAnOldList(t *testing.T) {
	bubble(t, func(t *testing.T, k *kit) {
		l := k.newLetter()
		if err := k.resend(l, Resend{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := k.resend(l, Resend{}); !errors.Is(err, ErrAbsent) {
			t.Errorf("got %v, want ErrAbsent", err)
		}
		k.wantCount("DELAY_RETRY_1s", 1)
	})
}

// TestDeadAgain: if a resent message becomes a dead letter again, the stream stores a second letter, even if the first
// letter still exists.
func TestDeadAgain(t *testing.T) {
	bubble(t, func(t *testing.T, k *kit) {
		l := k.newLetter()
		k.crash(l, Resend{})
		ack := k.deadLetter(k.resent()[0], message.Problemf(message.Undelivered, "again"), "body")
		if ack.Duplicate || ack.Sequence != 2 {
			t.Fatalf("got %+v, want a second letter: otherwise the removal of the first letter would lose the message", ack)
		}
		if err := k.Remove(k.ctx(), l); err != nil {
			t.Fatal(err)
		}
		if got := k.onlyLetter(Query{}); got.ID != l.ID || got.Sentence != "again" {
			t.Errorf("the remaining letter is %+v, want the second", got)
		}
	})
}

// TestRefusedByTheLane: if the lane does not store the message, the store keeps the letter.
func TestRefusedByTheLane(t *testing.T) {
	bubble(t, func(t *testing.T, k *kit) {
		k.undelivered(1, "orders.x", strings.Repeat("x", 1<<20-4<<10))
		k.undelivered(2, "orders.x", "small")
		letters := k.list(Query{})
		if err := k.resend(letters[0], Resend{}); !errors.Is(err, ErrTooLarge) || !errors.Is(err, ErrNotResendable) {
			t.Errorf("a large message: got %v, want ErrTooLarge", err)
		}
		natstest.Reconfigure(k.t, k.js, "DELAY_RETRY_1s", func(c *jetstream.StreamConfig) { c.MaxBytes = 10 })
		if err := k.resend(letters[1], Resend{}); err == nil || errors.Is(err, ErrNotResendable) ||
			!strings.Contains(err.Error(), "maximum bytes exceeded") {
			t.Errorf("a full lane: got %v, want the answer of the stream", err)
		}
		if err := k.js.DeleteStream(k.ctx(), "DELAY_RETRY_1s"); err != nil {
			t.Fatal(err)
		}
		if err := k.resend(letters[1], Resend{}); !errors.Is(err, errNoStream) {
			t.Errorf("no lane: got %v, want ErrNoStream", err)
		}
		k.wantCount("DELAY_DEAD", 2)
	})
}
