package inspect

import (
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/broker/timer/entry"
)

// Named timers have their own stream. Most timers also have a marker in a level: a message without a body, at whose due
// time the broker fires the timer. A marker remains until it is due, even if its timer was cancelled. So lists and
// forecasts ignore markers. In the stream of the timers, only the last entry of a subject can be a pending timer. The
// message of a fired timer counts in its lane, for example a retry lane.

// parser selects and parses the pending messages of all lanes.
type parser struct {
	policy message.Policy
	target string // a pattern; empty for all
}

// pending parses a message of a lane. Ok is false if the message is not pending. In the lane of timers, ok is also
// false if the target does not match the pattern. In the other lanes, the filters of the scan select the targets.
func (p parser) pending(l Lane, in message.Incoming) (req message.Request, problem *message.Problem, ok bool) {
	switch {
	case in.Subject == p.policy.Names.PausesRecord():
		return req, nil, false
	case l.Kind != streams.Timers:
		t, problem := entry.ParseAny(p.policy, in)
		return t.Request, problem, problem != nil || !entry.IsMarker(p.policy.Names, in)
	}
	e := entry.Parse(p.policy, in)
	ok = e.Kind == entry.Set && (p.target == "" || message.Match(p.target, e.Request.Target))
	return e.Request, e.Problem, ok
}

// pass is one scan of a lane.
type pass struct {
	filters        []string // subjects; empty for the whole lane
	skipsSchedules bool     // only timers with their target in the subject
	onlySchedules  bool     // only schedules of nats-server's format
}

// passesOf returns the scans that find a lane's messages for the targets of a pattern. The subject of a schedule does
// not contain its target, so a second pass reads the headers of all schedules. The filters of the two passes overlap,
// so one consumer cannot have both.
func passesOf(names message.Names, l Lane, pattern string) []pass {
	filters := subjectsOf(names, l, pattern)
	if pattern == "" || l.Kind != streams.Timers {
		return []pass{{filters: filters}}
	}
	return []pass{
		{filters: filters, skipsSchedules: true},
		{filters: []string{names.ScheduleSubject(">")}, onlySchedules: true},
	}
}

// excludes reports whether another pass of the lane reads the subject.
func (p pass) excludes(names message.Names, subject string) bool {
	return p.skipsSchedules && names.Parse(subject).IsSchedule()
}
