package deliver

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"delaybroker/broker/message"
)

// TestFilters compares match with message.Match, for random filters and subjects.
func TestFilters(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	subject := func(wild bool) string {
		words := []string{"a", "b", "c", "dd"}
		if wild {
			words = append(words, "*")
		}
		var tokens []string
		for range 1 + rng.IntN(5) {
			tokens = append(tokens, words[rng.IntN(len(words))])
		}
		if wild && rng.IntN(4) == 0 {
			tokens[len(tokens)-1] = ">"
		}
		return strings.Join(tokens, ".")
	}
	found := 0
	for range 300 {
		var f filters
		byName := make(map[string]string)
		for i := range rng.IntN(6) {
			name, filter := fmt.Sprint(i), subject(true)
			byName[name] = filter
			f.add(filter, &listener{name: name, acks: rng.IntN(2) == 0})
		}
		for range 100 {
			s := subject(false)
			ln := f.match(s)
			matches := 0
			for _, filter := range byName {
				if message.Match(filter, s) {
					matches++
				}
			}
			if ln == nil && matches > 0 || ln != nil && !message.Match(byName[ln.name], s) {
				t.Fatalf("%s: found %v of %v", s, ln, byName)
			}
			if ln != nil {
				found++
			}
		}
	}
	if found < 1000 {
		t.Errorf("only %d subjects had a stream", found)
	}
}

// TestFiltersOverlap: if several streams listen on a subject, match returns the first that acknowledges.
func TestFiltersOverlap(t *testing.T) {
	for _, order := range [][2]string{{"a.b", "a.>"}, {"a.>", "a.b"}, {"a.*", "*.b"}, {"a.b", "a.b"}} {
		var f filters
		f.add(order[0], &listener{name: "MUTE"})
		f.add(order[1], &listener{name: "ACKS", acks: true})
		f.add(order[1], &listener{name: "ACKS2", acks: true})
		if got := f.match("a.b"); got == nil || got.name != "ACKS" {
			t.Errorf("%v: got %v, want ACKS", order, got)
		}
	}
}

func manyFilters() *filters {
	var f filters
	for i := range 10_000 {
		filter := []string{"tenant.%d.orders.>", "tenant.%d.*.done", "*.%d.audit", "site%d.>"}[i%4]
		f.add(fmt.Sprintf(filter, i), &listener{name: "S", acks: true})
	}
	return &f
}

func TestMatchAllocatesNothing(t *testing.T) {
	f := manyFilters()
	for subject, want := range map[string]bool{
		"tenant.8.orders.x.y": true, "tenant.9.orders.x.y": false, "ui.77.notify": false, "x.10.audit": true,
	} {
		if got := f.match(subject) != nil; got != want {
			t.Errorf("%s: found %v, want %v", subject, got, want)
		}
		if n := testing.AllocsPerRun(100, func() { f.match(subject) }); n != 0 {
			t.Errorf("%s: %v allocations, want none", subject, n)
		}
	}
}

func BenchmarkMatch(b *testing.B) {
	f := manyFilters()
	for _, subject := range []string{"tenant.8.orders.x.y", "ui.77.notify"} {
		b.Run(subject, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f.match(subject)
			}
		})
	}
}
