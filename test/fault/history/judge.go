package history

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"delaybroker/broker/message"
)

func (c *checker) judge(s *sent) {
	if s.arrived() {
		c.report.Delivered++
		if !s.acked() {
			c.report.Recovered++
		}
	}
	c.judgeRepeats(s)
	if s.Core && len(s.seen) > 0 {
		c.judgeSeen(s)
	}
	for _, e := range s.found {
		c.judgeOne(s, e)
	}
	c.judgeCopies(s)
}

// judgeRepeats reports duplicates that witnesses received.
func (c *checker) judgeRepeats(s *sent) {
	if count := slices.Max(append(slices.Collect(maps.Values(s.seen)), 1)); count > 1 {
		c.report.Repeats += count - 1
		if c.conditions.Clean {
			c.violate(Repeated, s.ID, "seen %d times", count)
		}
		if c.settled(s) {
			c.report.Settled++
			c.violate(Settled, s.ID, "seen %d times, published %s after the last fault", count,
				short(time.Duration(s.At-c.lastFault(s.At))))
		}
	}
}

// judgeCopies reports duplicates that the target's stream stored.
func (c *checker) judgeCopies(s *sent) {
	for i, e := range s.found {
		if i == 0 {
			continue
		}
		c.report.Copies++
		if apart := time.Duration(e.Stored - s.found[0].Stored); apart <= c.conditions.Window {
			c.violate(Duplicate, s.ID, "as sequences %d and %d, %s apart", s.found[0].Sequence, e.Sequence, apart)
		}
	}
}

// judgeSeen judges when a message reached core subscribers. Its time of acceptance is unknown, but is between the
// publish and the answer. So judgeSeen calls a message early only if it came before the earliest possible due time, and
// counts lateness from the latest possible one.
func (c *checker) judgeSeen(s *sent) {
	if s.first < s.At+int64(s.Delay) {
		c.violate(Early, s.ID, "by %s", time.Duration(s.At+int64(s.Delay)-s.first))
	}
	if s.acked() {
		c.addLateness(s, s.answer.At+int64(s.Delay), s.first)
	}
}

func (c *checker) judgeOne(s *sent, e Event) {
	if e.Subject != s.Target {
		c.violate(WrongTarget, s.ID, "came on %s, want %s", e.Subject, s.Target)
	}
	if e.Sum != s.Sum {
		c.violate(WrongPayload, s.ID, "came as %s, want %s", e.Sum, s.Sum)
	}
	due := s.Until
	if due == 0 {
		due = e.Accepted + int64(s.Delay)
	}
	due = max(due, e.Accepted)
	if e.Due != due {
		c.violate(WrongDue, s.ID, "due %d, want %d, a difference of %s", e.Due, due, time.Duration(due-e.Due))
	}
	if e.Accepted < s.At || s.acked() && e.Accepted > s.answer.At {
		c.violate(WrongDue, s.ID, "accepted %d, which is not between the publish and its answer", e.Accepted)
	}
	earliest := max(due, e.Due, s.Until, s.At+int64(s.Delay))
	if e.Stored < earliest {
		c.violate(Early, s.ID, "by %s", time.Duration(earliest-e.Stored))
	}
	c.addLateness(s, due, e.Stored)
}

// checkIDs compares the Delay-Ids with the acknowledgements, with the times of acceptance and with each other.
func (c *checker) checkIDs(ids []string) {
	owner := make(map[string]string)
	for _, id := range ids {
		s := c.sent[id]
		for _, e := range s.found {
			if other, taken := owner[e.DelayID]; taken && other != id {
				c.violate(WrongID, id, "the same Delay-Id %s as %s", e.DelayID, other)
			}
			owner[e.DelayID] = id
			if e.DelayID != s.found[0].DelayID {
				c.violate(WrongID, id, "has two Delay-Ids, %s and %s", s.found[0].DelayID, e.DelayID)
			}
			parsed, err := message.ParseID(e.DelayID)
			switch {
			case err != nil:
				c.violate(WrongID, id, "%v", err)
			case parsed.At.UnixNano() != e.Accepted:
				c.violate(WrongID, id, "the Delay-Id %s does not have the time of acceptance, %d", e.DelayID, e.Accepted)
			case s.acked() && (parsed.Stream != s.answer.Stream || parsed.Sequence != s.answer.Sequence):
				c.violate(WrongID, id, "the Delay-Id is %s, but %s acknowledged sequence %d", e.DelayID, s.answer.Stream,
					s.answer.Sequence)
			}
		}
	}
}

// findLost reports the lost messages, and whether the publisher's messages before and after them arrived.
func (c *checker) findLost(ids []string) {
	acked := make(map[string][]*sent)
	for _, id := range ids {
		if s := c.sent[id]; s.acked() {
			acked[publisherOf(id)] = append(acked[publisherOf(id)], s)
		}
	}
	arrived := func(s *sent) bool { return s.arrived() || s.dead }
	for _, publisher := range slices.Sorted(maps.Keys(acked)) {
		all := acked[publisher]
		first := slices.IndexFunc(all, arrived)
		for i, s := range all {
			if arrived(s) {
				continue
			}
			others := "earlier and later ones arrived"
			switch {
			case first < 0:
				others = "none arrived"
			case i < first:
				others = "only later ones arrived"
			case !slices.ContainsFunc(all[i:], arrived):
				others = "only earlier ones arrived"
			}
			c.report.Lost++
			c.violate(Lost, s.ID, "accepted on %s as sequence %d of %s; of the messages of %s, %s", s.Subject,
				s.answer.Sequence, s.answer.Stream, publisher, others)
		}
	}
}

func publisherOf(id string) string {
	publisher, _, _ := strings.Cut(id, "-")
	return publisher
}

// byCounter orders ids by publisher, then by counter.
func byCounter(a, b string) int {
	pa, na, _ := strings.Cut(a, "-")
	pb, nb, _ := strings.Cut(b, "-")
	ia, _ := strconv.Atoi(na) // an invalid number counts as zero
	ib, _ := strconv.Atoi(nb)
	return cmp.Or(cmp.Compare(pa, pb), cmp.Compare(ia, ib))
}
