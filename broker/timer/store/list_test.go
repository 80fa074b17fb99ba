package store

import (
	"testing"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/test/natstest"
)

// TestListOfReplacedEntries: an entry that is replaced after the page has begun is left out. A list of recurring timers
// has the round that replaced that entry.
func TestListOfReplacedEntries(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, on *natstest.Server) {
		timers, js := newTimers(t, on)
		subject := timers.Policy.Names.Timer("k", "orders.x")
		for range 2 {
			m := &nats.Msg{Subject: subject, Header: nats.Header{message.HeaderEvery: {"1m"}}}
			if _, err := js.PublishMsg(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		for recurring, want := range map[bool]int{true: 1, false: 0} {
			page := Listing{UpTo: 1, Timers: []Row{{subject: subject, state: timer.State{Sequence: 1}}}}
			if err := timers.dropReplaced(t.Context(), &page, Filter{Recurring: recurring}); err != nil {
				t.Fatal(err)
			}
			if len(page.Timers) != want || want > 0 && page.Timers[0].Generation != 2 {
				t.Errorf("recurring %t: the page has %+v, want %d timers", recurring, page.Timers, want)
			}
		}
	})
}

// TestMatchKey: * matches any characters, at any position.
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
