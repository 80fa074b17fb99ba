package store

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/test/natstest"
)

// TestListKeepsWhatFiredMeanwhile: an entry that was replaced since the page began is left out; of what recurs, the
// round that took its place is listed.
func TestListKeepsWhatFiredMeanwhile(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, on *natstest.Server) {
		names, err := message.NewNames(message.DefaultPrefix)
		if err != nil {
			t.Fatal(err)
		}
		nc := on.Connect()
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		cfg := jetstream.StreamConfig{Name: names.TimersStream(), Subjects: []string{names.TimerFilter()}}
		if _, err := js.CreateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			m := &nats.Msg{Subject: names.Timer("k", "orders.x"), Header: nats.Header{message.HeaderEvery: {"1m"}}}
			if _, err := js.PublishMsg(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		timers := Timers{
			Policy: message.Policy{Names: names}, API: jsapi.Client{Conn: nc, API: "$JS.API"},
		}
		for recurring, want := range map[bool]int{true: 1, false: 0} {
			page := Listing{UpTo: 1, Timers: []Row{{subject: names.Timer("k", "orders.x"), state: timer.State{Sequence: 1}}}}
			if err := timers.dropReplaced(t.Context(), &page, Filter{Recurring: recurring}); err != nil {
				t.Fatal(err)
			}
			if len(page.Timers) != want || want > 0 && page.Timers[0].Generation != 2 {
				t.Errorf("recurring %t: there are left %+v, want %d", recurring, page.Timers, want)
			}
		}
	})
}

// TestMatchKey: * is any characters, in any place.
func TestMatchKey(t *testing.T) {
	for pattern, keys := range map[string][2][]string{
		"a":     {{"a"}, {"", "aa", "b"}},
		"*":     {{"", "a", "abc"}, {}},
		"a*":    {{"a", "abc"}, {"ba", ""}},
		"*c":    {{"c", "abc", "cc"}, {"ca"}},
		"a*c":   {{"ac", "abc", "acc"}, {"a", "c", "acb"}},
		"a*b*c": {{"abc", "aXbYc", "abbc", "abcbc"}, {"ac", "acb", "acbX"}},
		"aa*a":  {{"aaa", "aaba"}, {"aa", "a"}},
	} {
		for i, want := range []bool{true, false} {
			for _, key := range keys[i] {
				if got := matchKey(pattern, key); got != want {
					t.Errorf("%q matches %q: %t, want %t", pattern, key, got, want)
				}
			}
		}
	}
}
