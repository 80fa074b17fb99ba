package history

import (
	"fmt"
	"slices"
	"time"
)

// aftermath is the time after the end of a fault within which the statistics attribute lateness to the fault. It does
// not change the bound of lateness. A fault that starts within aftermath of a delivery also excuses its duplicates.
const aftermath = 5 * time.Second

// excusePeriod is the time after the end of a fault within which a published message may get duplicates.
const excusePeriod = 10 * time.Second

// Period is one fault, with its statistics.
type Period struct {
	Name      string
	Proof     string
	From, To  int64
	Worst     time.Duration // maximum lateness of messages whose time from due to arrival overlaps the fault or aftermath
	Delivered int           // number of these messages
	proved    bool
}

// addFault adds a phase of a fault. Faults do not overlap.
func (c *checker) addFault(e *Event) {
	open := len(c.faults) > 0 && c.faults[len(c.faults)-1].To == 0
	switch {
	case e.Phase == Invoke && !open:
		c.faults = append(c.faults, Period{Name: e.Text, From: e.At})
		return
	case e.Phase == Invoke || !open:
		c.violate(Incomplete, "", "the phase %s of a fault (%s) has no beginning, or overlaps with another fault", e.Phase,
			e.Text)
		return
	}
	switch f := &c.faults[len(c.faults)-1]; e.Phase {
	case OK:
		f.Proof, f.proved = e.Text, e.Text != ""
	case Healed:
		f.To = e.At
	}
}

// closeFaults checks that each fault has a proof and an end.
func (c *checker) closeFaults() {
	for i := range c.faults {
		f := &c.faults[i]
		if f.To == 0 {
			c.violate(Incomplete, "", "the fault %q did not end", f.Name)
			f.To = f.From
		}
		if !f.proved {
			c.violate(Incomplete, "", "the fault %q has no proof", f.Name)
		}
	}
}

// addLateness judges a message's lateness, and adds it to the statistics of the faults that may explain it.
func (c *checker) addLateness(s *sent, due, stored int64) {
	late := time.Duration(stored - due)
	from := due
	calm := true
	for i := range c.faults {
		f := &c.faults[i]
		if f.From < stored {
			from = max(from, f.To)
		}
		if f.From <= stored && due <= f.To+int64(aftermath) {
			calm = false
			f.Worst = max(f.Worst, late)
			f.Delivered++
		}
	}
	if calm {
		c.report.calm = append(c.report.calm, late)
	}
	c.report.Worst = max(c.report.Worst, late)
	over := time.Duration(stored - from)
	switch {
	case over > c.conditions.Bound:
		c.violate(TooLate, s.ID, "arrived %s after it was due, %s of that after the end of any fault, want at most %s",
			late, over, c.conditions.Bound)
	case s.Within > 0 && late > s.Within:
		c.violate(TooLate, s.ID, "arrived %s after it was due, want at most %s for this message", late, s.Within)
	case c.conditions.Late > 0 && late > c.conditions.Late:
		c.violate(TooLate, s.ID, "arrived %s after it was due, want at most %s in this run", late, c.conditions.Late)
	}
}

// lastFault returns the end of the last fault that began before a time, or zero.
func (c *checker) lastFault(at int64) int64 {
	end := int64(0)
	for _, f := range c.faults {
		if f.From < at {
			end = max(end, f.To)
		}
	}
	return end
}

// settled reports whether a message was published more than excusePeriod after the end of a fault, and stored more than
// aftermath before the next fault. Then no fault excuses a duplicate. Before the first fault, settled is false.
func (c *checker) settled(s *sent) bool {
	last := s.At
	for _, e := range s.found {
		last = max(last, e.Stored)
	}
	end := c.lastFault(s.At)
	if end == 0 || s.At < end+int64(excusePeriod) {
		return false
	}
	return !slices.ContainsFunc(c.faults, func(f Period) bool { return f.From >= s.At && f.From <= last+int64(aftermath) })
}

// checkTraffic requires a minimum of publishes before, during and after each fault, and of requests about timers:
// without traffic, a fault proves nothing.
func (c *checker) checkTraffic(events []Event) {
	var acked, tried []int64
	for i := range events {
		if e := &events[i]; e.Op == Publish {
			switch e.Phase {
			case Invoke:
				tried = append(tried, e.At)
			case OK:
				acked = append(acked, e.At)
			}
		}
	}
	slices.Sort(acked)
	slices.Sort(tried)
	demand := func(what string, times []int64, from, to int64, least int) {
		begin, _ := slices.BinarySearch(times, from)
		end, _ := slices.BinarySearch(times, to)
		if n := end - begin; n < least {
			c.violate(Incomplete, "", "only %d %s, want at least %d", n, what, least)
		}
	}
	before := int64(0)
	for _, f := range c.faults {
		demand(fmt.Sprintf("publishes accepted before %q", f.Name), acked, before, f.From, c.conditions.MinPublishes)
		quarter := int(time.Duration(c.conditions.Rate) * time.Duration(f.To-f.From) / (4 * time.Second))
		demand(fmt.Sprintf("publishes during %q", f.Name), tried, f.From, f.To,
			max(1, min(quarter, c.conditions.MinPublishes)))
		before = f.To
	}
	demand("publishes accepted after the last fault", acked, before, 1<<63-1, c.conditions.MinPublishes)
	if t := c.report.Timers; c.conditions.Players > 0 && min(t.Delivered, t.Cancelled, t.TooLate) == 0 {
		c.violate(Incomplete, "", "too little traffic of timers: %s", t)
	}
}
