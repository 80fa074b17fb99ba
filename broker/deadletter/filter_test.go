package deadletter

import (
	"slices"
	"testing"
	"time"

	"delaybroker/broker/message"
)

func TestFilters(t *testing.T) {
	bubble(t, func(t *testing.T, k *kit) {
		start := time.Now()
		storeBad := func(n uint64, subject string) message.Request {
			r, problem := k.request(n, subject)
			k.deadLetter(r, problem, "")
			time.Sleep(time.Hour)
			return r
		}
		first := k.undelivered(1, "orders.a", "1")
		time.Sleep(time.Hour)
		k.undelivered(2, "payments.a.b", "2")
		time.Sleep(time.Hour)
		storeBad(3, "delayin.soon.orders.a")            // bad_time, with a target
		fourth := storeBad(4, "delayin.1m.elsewhere.x") // bad_target, without a target
		first.Hop++                                     // a second letter of the first message, after a crash
		k.deadLetter(first, message.Problemf(message.Undelivered, "no"), "1")
		id := func(r message.Request) message.ID { i, _ := message.ParseID(r.ID); return i }
		for _, tt := range []struct {
			name string
			f    Filter
			want []uint64
		}{
			{"all", Filter{}, []uint64{1, 2, 3, 4, 5}},
			{"a code", Filter{Codes: []message.Code{"undelivered"}}, []uint64{1, 2, 5}},
			{"a code without targets", Filter{Codes: []message.Code{"bad_target"}}, []uint64{4}},
			{"two codes, one twice", Filter{Codes: []message.Code{"bad_time", "bad_target", "bad_time"}}, []uint64{3, 4}},
			{"a code that nothing has", Filter{Codes: []message.Code{"expired"}}, nil},
			{"a target", Filter{Target: "orders.a"}, []uint64{1, 3, 5}},
			{"a pattern", Filter{Target: "*.a.>"}, []uint64{2}},
			{"everything with a target", Filter{Target: ">"}, []uint64{1, 2, 3, 5}},
			{"code and target", Filter{Codes: []message.Code{"bad_time", "undelivered"}, Target: "orders.*"}, []uint64{1, 3, 5}},
			{"since", Filter{Since: start.Add(time.Hour)}, []uint64{2, 3, 4, 5}},
			{"since, a moment later", Filter{Since: start.Add(time.Hour + 1)}, []uint64{3, 4, 5}},
			{"until", Filter{Until: start.Add(time.Hour)}, []uint64{1}},
			{"until, a moment later", Filter{Until: start.Add(time.Hour + 1)}, []uint64{1, 2}},
			{"an id with two letters", Filter{IDs: []message.ID{id(first)}}, []uint64{1, 5}},
			{"two ids", Filter{IDs: []message.ID{id(fourth), id(first)}}, []uint64{1, 4, 5}},
			{"a sequence", Filter{Sequences: []uint64{2}}, []uint64{2}},
			{"sequences", Filter{Sequences: []uint64{4, 2, 99}}, []uint64{2, 4}},
			{"a sequence that is not there", Filter{Sequences: []uint64{99}}, nil},
			{"a sequence or an id", Filter{Sequences: []uint64{2}, IDs: []message.ID{id(fourth)}}, []uint64{2, 4}},
			{"a sequence and a code", Filter{Sequences: []uint64{2, 3}, Codes: []message.Code{"undelivered"}}, []uint64{2}},
			{"everything at once", Filter{
				Codes: []message.Code{"undelivered"}, Target: "orders.>", Since: start, Until: start.Add(time.Minute),
				IDs: []message.ID{id(first)},
			}, []uint64{1}},
		} {
			if got := numbersOf(k.list(Query{Filter: tt.f, HeadersOnly: true})); !slices.Equal(got, tt.want) {
				t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
			}
			if got, want := tt.f.SelectsAll(), tt.name == "all"; got != want {
				t.Errorf("%s: all is %v, want %v", tt.name, got, want)
			}
		}
	})
}
