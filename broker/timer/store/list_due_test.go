package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// TestListByDue: over all pages, each pending timer is listed once, the next due first; timers that are due at one time
// are in the order in which they were set. A moved timer is at its new time, and a cancelled one is left out.
func TestListByDue(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, on *natstest.Server) {
		timers, js := newTimers(t, on)
		set := func(key string, header nats.Header) {
			t.Helper()
			m := &nats.Msg{Subject: timers.Policy.Names.Timer(key, "orders.x"), Header: header}
			_, err := js.PublishMsg(t.Context(), m)
			natstest.NoError(t, err)
		}
		in := func(d time.Duration) nats.Header {
			return nats.Header{message.HeaderUntil: {time.Now().Add(d).UTC().Format(time.RFC3339Nano)}}
		}
		for n := range 5 {
			set(fmt.Sprint("late", n), in(9*time.Minute))
		}
		set("moved", in(time.Minute))
		set("first", in(2*time.Minute))
		set("moved", in(20*time.Minute))
		set("gone", in(3*time.Minute))
		set("gone", nats.Header{message.HeaderCancel: {"paid"}})
		want := []string{"first", "late0", "late1", "late2", "late3", "late4", "moved"}
		for limit := range 8 {
			var keys []string
			f, p := Filter{}, Page{ByDue: true, Limit: limit}
			for {
				l, err := timers.List(t.Context(), f, p)
				natstest.NoError(t, err)
				for _, r := range l.Timers {
					keys = append(keys, r.Key)
				}
				if f.DueFrom, p.Start = l.NextDue, l.Next; l.Next == 0 {
					break
				}
			}
			if !slices.Equal(keys, want) {
				t.Errorf("pages of %d: got %q, want %q", limit, keys, want)
			}
		}
	})
}
