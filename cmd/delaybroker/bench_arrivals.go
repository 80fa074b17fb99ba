package main

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
	"delaybroker/cmd/delaybroker/terminal"
)

// benchBody returns a body that begins with the message's number.
func benchBody(number, size int) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 0, size), uint64(number))[:size]
}

// arrivals counts the messages of a run of bench at their target.
type arrivals struct {
	offset time.Duration // the server's clock minus the local clock
	margin time.Duration // the maximum error of offset

	mu           sync.Mutex      // guards all below
	seen         []bool          // by number
	late         []time.Duration // in the order of the arrivals, without duplicates
	early, twice int
	first, last  time.Time // the times of the first and the last arrival, by the local clock
}

func newArrivals(count int, offset, margin time.Duration) *arrivals {
	return &arrivals{offset: offset, margin: margin, seen: make([]bool, count)}
}

// receive counts a message. It ignores a message that is not of this run.
func (a *arrivals) receive(m *nats.Msg) {
	now := time.Now()
	due, err := time.Parse(time.RFC3339Nano, m.Header.Get(message.HeaderDue))
	if err != nil || len(m.Data) < 8 {
		return
	}
	number := binary.BigEndian.Uint64(m.Data)
	a.mu.Lock()
	defer a.mu.Unlock()
	if number >= uint64(len(a.seen)) {
		return
	}
	late := now.Add(a.offset).Sub(due)
	if late < -a.margin {
		a.early++
	}
	if a.seen[number] {
		a.twice++
		return
	}
	if len(a.late) == 0 {
		a.first = now
	}
	a.seen[number], a.last = true, now
	a.late = append(a.late, late)
}

// wait waits until count messages have arrived, or the missing ones count as lost. Due is the due time of the last one,
// by the local clock.
func (a *arrivals) wait(count int, due time.Time) {
	const interval = 50 * time.Millisecond
	for {
		a.mu.Lock()
		arrived, last := len(a.late), a.last
		a.mu.Unlock()
		if arrived >= count || min(time.Since(due), time.Since(last)) > lossTimeout {
			return
		}
		time.Sleep(interval)
	}
}

// A benchResult has the measurements of bench. Lateness is in milliseconds, and rates are in messages a second.
type benchResult struct {
	Messages      int     `json:"messages"` // accepted
	P50           float64 `json:"late_ms_p50"`
	P90           float64 `json:"late_ms_p90"`
	P99           float64 `json:"late_ms_p99"`
	Max           float64 `json:"late_ms_max"`
	PublishedRate float64 `json:"published_per_s"`
	ArrivedRate   float64 `json:"arrived_per_s"` // from the first arrival to the last
	Lost          int     `json:"lost"`
	Early         int     `json:"early"`
	Twice         int     `json:"twice"`
}

// result returns the measurements, after an accepted number of messages.
func (a *arrivals) result(accepted int) benchResult {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := benchResult{
		Messages: accepted, Lost: max(0, accepted-len(a.late)), Early: a.early, Twice: a.twice,
	}
	if len(a.late) == 0 {
		return r
	}
	late := slices.Sorted(slices.Values(a.late))
	percentile := func(percent int) float64 { return terminal.Milliseconds(late[(len(late)-1)*percent/100]) }
	r.P50, r.P90, r.P99, r.Max = percentile(50), percentile(90), percentile(99), percentile(100)
	if elapsed := a.last.Sub(a.first); elapsed > 0 {
		r.ArrivedRate = float64(len(late)-1) / elapsed.Seconds()
	}
	return r
}

// err returns an error if a message is lost or early.
func (r benchResult) err(target string) error {
	switch {
	case r.Lost > 0 && r.Lost == r.Messages:
		return fmt.Errorf("no message has arrived on %s: see delaybroker doctor, and delaybroker dead ls --target %s",
			target, target)
	case r.Lost > 0 || r.Early > 0:
		return fmt.Errorf("of %s messages, %s have not arrived, and %s were early; see delaybroker dead ls --target %s",
			terminal.Whole(r.Messages), terminal.Whole(r.Lost), terminal.Whole(r.Early), target)
	}
	return nil
}
