package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

type Kind string

// The kinds.
const (
	Lost         Kind = "lost"          // accepted, and neither delivered nor a dead letter
	LostOnServer Kind = "server lacks"  // delivered, but a server does not have the message, or has another message
	Early        Kind = "early"         // delivered before it was due
	WrongDue     Kind = "wrong due"     // the due time or the time of acceptance is wrong
	WrongID      Kind = "wrong id"      // the Delay-Id is not that of the message, or the message has two Delay-Ids
	Unexpected   Kind = "unexpected"    // no client published it, or its publish failed
	WrongTarget  Kind = "wrong target"  // delivered to another subject
	WrongPayload Kind = "wrong payload" // the checksum of body and header differs from the published one
	Duplicate    Kind = "stored twice"  // the target's stream has a duplicate within its window
	Repeated     Kind = "sent twice"    // sent twice in a run whose faults excuse no duplicate
	DeadLetter   Kind = "dead letter"   // the runs publish no message that should become a dead letter
	TooLate      Kind = "too late"      // late by more than the bound, which counts from the end of a fault
	TooSlow      Kind = "too slow"      // a broker was not ready in time
	Settled      Kind = "not settled"   // sent twice, long after one fault and before the next
	NotKept      Kind = "not kept"      // a violation that the run itself observed
	LeftBehind   Kind = "left behind"   // a lane is not empty at the end
	NoOrder      Kind = "no order"      // no order explains a timer's answers and deliveries: see package linear
	Incomplete   Kind = "incomplete"    // the history lacks events or contradicts itself
)

type Violation struct {
	Kind Kind
	ID   string // the message, or empty
	What string
}

func (v Violation) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s: %s %s", v.Kind, v.ID, v.What))
}

// sent is a published message or a generation of a timer, with its answer and its arrivals.
type sent struct {
	Event                 // the invocation
	answer *Event         // nil without an answer
	found  []Event        // messages in the target's stream, one for each sequence
	seen   map[string]int // number of arrivals at each witness
	first  int64          // the time at which the first witness received the message
	dead   bool
}

func (s *sent) acked() bool { return s.answer != nil && s.answer.Phase == OK }

func (s *sent) arrived() bool { return len(s.found) > 0 || s.Core && len(s.seen) > 0 }

func (s *sent) failed() bool { return s.answer != nil && s.answer.Phase == Fail }

type checker struct {
	conditions Conditions
	faults     []Period
	sent       map[string]*sent
	timers     map[string]*namedTimer
	byServer   map[string]map[uint64]Event // contents of the target's stream
	read       map[string]bool
	report     *Report
}

func Check(events []Event) *Report {
	c := &checker{sent: make(map[string]*sent), byServer: make(map[string]map[uint64]Event), read: make(map[string]bool),
		timers: make(map[string]*namedTimer), report: &Report{}}
	if len(events) == 0 || events[0].Conditions == nil {
		c.violate(Incomplete, "", "the history does not begin with the conditions of a run")
		return c.report
	}
	c.conditions = *events[0].Conditions
	c.report.Conditions = c.conditions
	for i := range events {
		c.add(&events[i])
	}
	c.closeFaults()
	c.assignSeen(events)
	c.compareServers()
	ids := slices.SortedFunc(maps.Keys(c.sent), byCounter)
	for _, id := range ids {
		c.judge(c.sent[id])
	}
	c.judgeTimers()
	c.findLost(ids)
	c.checkIDs(ids)
	c.checkTraffic(events)
	c.report.finish(c.faults)
	return c.report
}

func (c *checker) violate(kind Kind, id, format string, args ...any) {
	c.report.Violations = append(c.report.Violations, Violation{kind, id, fmt.Sprintf(format, args...)})
}

func (c *checker) add(e *Event) {
	switch e.Op {
	case Fault:
		c.addFault(e)
	case Publish:
		c.addPublish(e)
	case Timer:
		c.addTimer(e)
	case Stored:
		if c.byServer[e.Server] == nil {
			c.byServer[e.Server] = make(map[uint64]Event)
		}
		c.byServer[e.Server][e.Sequence] = *e
	case Read:
		c.read[e.Server] = true
	case Dead:
		c.violate(DeadLetter, e.ID, "%s", e.Text)
		if c.timerOf(e.ID) != nil {
			break
		}
		if s := c.publishOf(e); s != nil {
			s.dead = true
		}
	case Rest:
		if e.Count > 0 {
			c.violate(LeftBehind, "", "%s holds %d messages", e.Stream, e.Count)
		}
	case Ready:
		c.report.Starts++
		c.report.SlowestStart = max(c.report.SlowestStart, e.Delay)
		if maxReady := c.conditions.Ready; maxReady > 0 && e.Delay > maxReady {
			c.violate(TooSlow, "", "%s was ready after %s, want %s", e.Text, short(e.Delay), maxReady)
		}
	case Broken:
		c.violate(NotKept, "", "%s", e.Text)
	}
}

// assignSeen assigns the witnesses' messages to publishes and to generations of timers. It runs after add, because a
// witness may receive a timer before the client has the answer to the set.
func (c *checker) assignSeen(events []Event) {
	for i := range events {
		e := &events[i]
		if e.Op != Seen {
			continue
		}
		s := c.cause(e)
		if s == nil {
			continue
		}
		if s.seen == nil {
			s.seen = make(map[string]int)
		}
		s.seen[e.Server]++
		if s.first == 0 {
			s.first = e.At
		}
	}
}

// cause returns the origin of a message: the generation of a timer, or a publish.
func (c *checker) cause(e *Event) *sent {
	if t := c.timerOf(e.ID); t != nil {
		return c.generation(t, e)
	}
	return c.publishOf(e)
}

func (c *checker) addPublish(e *Event) {
	s := c.sent[e.ID]
	switch {
	case e.Phase == Invoke && s != nil:
		c.violate(Incomplete, e.ID, "published twice")
	case e.Phase == Invoke:
		c.sent[e.ID] = &sent{Event: *e}
		c.report.Attempted++
	case s == nil || s.answer != nil:
		c.violate(Incomplete, e.ID, "an answer without a publish")
	default:
		s.answer = e
		switch e.Phase {
		case OK:
			c.report.Acked++
		case Fail:
			c.report.Failed++
		}
	}
}

// publishOf returns the publish of a message, or nil. It reports a message that was not published, or whose publish
// failed.
func (c *checker) publishOf(e *Event) *sent {
	s := c.sent[e.ID]
	switch {
	case s == nil:
		c.violate(Unexpected, e.ID, "%s on %s, but no client published it", e.Op, e.Subject)
	case s.failed():
		c.violate(Unexpected, e.ID, "%s on %s, but its publish had failed: %s", e.Op, e.Subject, s.answer.Text)
	}
	return s
}

// compareServers compares the servers' copies of the target's stream, and assigns the messages to their publishes.
func (c *checker) compareServers() {
	all := make(map[uint64]Event)
	for _, held := range c.byServer {
		maps.Copy(all, held)
	}
	for _, server := range c.conditions.Servers {
		if !c.read[server] {
			c.violate(Incomplete, "", "the copy of %s was not read", server)
			continue
		}
		for seq, want := range all {
			got, ok := c.byServer[server][seq]
			got.At, got.Server = want.At, want.Server
			switch {
			case !ok:
				c.violate(LostOnServer, want.ID, "%s lacks sequence %d of the target", server, seq)
			case got != want:
				c.violate(LostOnServer, want.ID, "%s holds another message as sequence %d of the target: %s", server, seq, got.ID)
			}
		}
	}
	for _, seq := range slices.Sorted(maps.Keys(all)) {
		e := all[seq]
		if s := c.cause(&e); s != nil {
			s.found = append(s.found, e)
		}
	}
}
