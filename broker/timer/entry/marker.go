package entry

import (
	"fmt"
	"strconv"
	"strings"

	"delaybroker/broker/message"
)

// Marker represents a timer in a level, without the timer's body.
type Marker struct {
	message.Request
	Key  string // the key of the timer; message.ScheduleKey for a schedule
	Size int    // size of the timer's body, in bytes
	// RunStart is the generation of the first set of the timer's run; zero for a timer that is not debounced.
	RunStart uint64
}

// IsMarker reports whether a message claims to be a marker.
func IsMarker(n message.Names, in message.Incoming) bool {
	return in.Header[message.HeaderTimer] != nil && n.Parse(in.Subject).StoredByBroker()
}

// ParseMarker parses a marker. It does not check whether the target is allowed: the worker checks that when it reads
// the timer. If there is a problem, the marker has the fields that could be parsed.
func ParseMarker(p message.Policy, in message.Incoming) (Marker, *message.Problem) {
	m, problem := p.ParseHop(in, message.InMarker)
	if problem != nil {
		return Marker{Request: m.Request}, problem
	}
	f := m.Fields
	words := strings.SplitN(f.Text(message.HeaderTimer), " ", 3)
	if len(words) < 3 {
		words = []string{"", "", ""}
	}
	size, sizeErr := strconv.Atoi(words[0])
	run, runErr := strconv.ParseUint(words[1], 10, 64)
	key := words[2]
	if sizeErr != nil || size < 0 || runErr != nil || key != message.ScheduleKey && CheckKey(key) != nil {
		f.Refuse(message.HeaderTimer, message.Excerpt(strings.Join(words, " ")))
	}
	if len(m.Request.Target) > message.MaxTarget {
		f.Refuse(message.HeaderTarget, message.Excerpt(m.Request.Target))
	}
	return Marker{Request: m.Request, Key: key, Size: size, RunStart: run}, f.Problem
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
	h := m.MarkerHeader()
	message.Put(h, message.HeaderTimer, fmt.Sprint(m.Size, " ", m.RunStart, " ", m.Key))
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
