package inspect

import (
	"context"

	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/broker/timer/entry"
)

// Named timers are pending in their own stream, and most have a marker in a level besides. The stream is the truth: a
// marker stays until it is due, whatever became of its timer. So markers count as nothing, and of the stream's entries
// the last set of each subject. A fired timer is what it was delivered from: in a retry lane, for example.

// A reader tells what is pending from what is not, in the messages of all lanes.
type reader struct {
	policy message.Policy
	target string // a pattern; empty for all
}

// pending reads a message of a lane. Ok is false for what is no message that waits for a target, or for another one.
func (r reader) pending(l Lane, in message.Incoming) (req message.Request, problem *message.Problem, ok bool) {
	switch {
	case in.Subject == r.policy.Names.PausesRecord():
		return req, nil, false
	case l.Kind != streams.Timers:
		t, problem := entry.ParseAny(r.policy, in)
		return t.Request, problem, problem != nil || !entry.IsMarker(r.policy.Names, in)
	}
	e := entry.Parse(r.policy, in)
	ok = e.Kind == entry.Set && (r.target == "" || message.Match(r.target, e.Request.Target))
	return e.Request, e.Problem, ok
}

// pass is one scan of a lane.
type pass struct {
	filters   []string // subjects; none for all of the lane
	named     bool     // of the timers: only those whose subject ends with their target
	schedules bool     // of the timers: only schedules
}

// passesOf are the scans that find what a lane has for the targets of a pattern. The subject of a schedule does not
// tell its target. So the headers of all schedules are read, in a pass of their own: the filters overlap, and one
// consumer cannot have both.
func passesOf(names message.Names, l Lane, pattern string) []pass {
	filters := subjectsOf(names, l, pattern)
	if pattern == "" || l.Kind != streams.Timers {
		return []pass{{filters: filters}}
	}
	return []pass{{filters: filters, named: true}, {filters: []string{names.ScheduleSubject(">")}, schedules: true}}
}

// leavesOut reports whether another pass has what is stored on a subject.
func (p pass) leavesOut(names message.Names, subject string) bool {
	return p.named && names.Parse(subject).Schedule()
}

// markers counts those of a level.
func (f *forecast) markers(ctx context.Context, s *stratum) (uint64, error) {
	scan := f.scan(s)
	// The second never exists. A single filter needs another permission.
	scan.Filters = []string{f.names.Marker(s.Level), f.names.Marker(s.Level) + ".none"}
	return scan.Count(ctx)
}
