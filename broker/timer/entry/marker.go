package entry

import (
	"strconv"

	"delaybroker/broker/message"
)

// Marker represents a timer in a level, without the timer's body.
type Marker struct {
	message.Request
	Key  string // the key of the timer; message.ScheduleKey for a schedule
	Size int    // size of the timer's body, in bytes
}

// IsMarker reports whether a message claims to be a marker.
func IsMarker(n message.Names, in message.Incoming) bool {
	return in.Header[message.HeaderTimer] != nil && n.Parse(in.Subject).StoredByBroker()
}

// ParseMarker parses a marker. It does not check whether the target is allowed: the worker checks that when it reads
// the timer. If there is a problem, the marker has the fields that could be parsed.
func ParseMarker(p message.Policy, in message.Incoming) (Marker, *message.Problem) {
	m, problem := p.ParseHop(in)
	if problem != nil {
		return Marker{Request: m.Request}, problem
	}
	f := m.Fields
	marker := Marker{
		Request: m.Request, Key: f.Text(message.HeaderTimer), Size: f.Count(message.HeaderTimerSize, message.Optional),
	}
	if marker.Key != message.ScheduleKey && CheckKey(marker.Key) != nil {
		f.Refuse(message.HeaderTimer, message.Excerpt(marker.Key))
	}
	if marker.Target = f.Text(message.HeaderTarget); len(marker.Target) > message.MaxTarget {
		f.Refuse(message.HeaderTarget, message.Excerpt(marker.Target))
	}
	return marker, f.Problem
}

// Timer returns the subject of the marker's timer.
func (m Marker) Timer(n message.Names) string {
	if m.Key == message.ScheduleKey {
		return n.ScheduleSubject(m.Origin().Scheduler)
	}
	return n.Timer(m.Key, m.Target)
}

// Header returns the header with which the marker is published into the next level.
func (m Marker) Header() message.Header {
	h := make(message.Header, 12)
	m.Identify(h, m.NatsMsgID(m.Hop+1)+"/timer") // unlike the id of the fired message in the same level
	message.Put(h, message.HeaderFormat, format(m.Origin()))
	message.Put(h, message.HeaderSubject, m.Subject)
	message.Put(h, message.HeaderHop, strconv.Itoa(m.Hop+1))
	message.Put(h, message.HeaderTimer, m.Key)
	message.Put(h, message.HeaderTarget, m.Target)
	message.PutCount(h, message.HeaderTimerSize, m.Size)
	message.Put(h, message.HeaderScheduler, m.Origin().Scheduler)
	return h
}

// ParseAny parses any message. It parses each entry of a timer as a set.
func ParseAny(p message.Policy, in message.Incoming) (Pending, *message.Problem) {
	switch {
	case p.Names.Parse(in.Subject).Form == message.FormTimer:
		return ParseSet(p, in)
	case IsMarker(p.Names, in):
		m, problem := ParseMarker(p, in)
		return Pending{Request: m.Request}, problem
	}
	r, problem := p.Parse(in)
	return Pending{Request: r}, problem
}
