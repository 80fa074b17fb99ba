package entry

import (
	"strconv"

	"delaybroker/broker/message"
)

// Marker stands for a timer in a level, without the timer's body.
type Marker struct {
	message.Request
	Key  string // or message.ScheduleKey
	Size int    // of the body, in bytes
}

// IsMarker reports whether a message says that it is a marker.
func IsMarker(n message.Names, in message.Incoming) bool {
	return in.Header[message.HeaderTimer] != nil && n.Parse(in.Subject).Internal()
}

// ParseMarker reads a marker. Its target is not judged: that is done when the timer is read. On a problem it has the
// part that could be read.
func ParseMarker(p message.Policy, in message.Incoming) (Marker, *message.Problem) {
	m, problem := p.ParseHop(in)
	if problem != nil {
		return Marker{Request: m.Request}, problem
	}
	f := m.Fields
	marker := Marker{
		Request: m.Request, Key: f.Text(message.HeaderTimer), Size: f.Count(message.HeaderTimerSize, message.Optional),
	}
	if marker.Key != message.ScheduleKey && checkKey(marker.Key) != nil {
		f.Refuse(message.HeaderTimer, message.Excerpt(marker.Key))
	}
	if marker.Target = f.Text(message.HeaderTarget); len(marker.Target) > message.MaxTarget {
		f.Refuse(message.HeaderTarget, message.Excerpt(marker.Target))
	}
	return marker, f.Problem
}

// Timer is the subject of the timer for which the marker stands.
func (m Marker) Timer(n message.Names) string {
	if m.Key == message.ScheduleKey {
		return n.ScheduleSubject(m.Origin().Scheduler)
	}
	return n.Timer(m.Key, m.Target)
}

// Header is the header of the marker on its next publish into a level.
func (m Marker) Header() message.Header {
	h := make(message.Header, 12)
	m.Identify(h, m.NatsMsgID(m.Hop+1)+"/timer") // a message that has fired may be in the same level, under the other id
	message.Put(h, message.HeaderFormat, format(m.Origin()))
	message.Put(h, message.HeaderSubject, m.Subject)
	message.Put(h, message.HeaderHop, strconv.Itoa(m.Hop+1))
	message.Put(h, message.HeaderTimer, m.Key)
	message.Put(h, message.HeaderTarget, m.Target)
	message.PutCount(h, message.HeaderTimerSize, m.Size)
	message.Put(h, message.HeaderScheduler, m.Origin().Scheduler)
	return h
}

// ParseAny reads a message that may be any: the set of a timer, a marker, or one that is no timer's.
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
