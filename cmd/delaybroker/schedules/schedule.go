package schedules

import (
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"delaybroker/broker/message"
	"delaybroker/broker/text"
	"delaybroker/broker/timer/entry"
)

// A Schedule is one schedule of a file.
type Schedule struct {
	Name, Target string
	First, Last  time.Time      // zero if the file has none
	Header       message.Header // all headers of the publish, except those for First, Last and the set
	Body         []byte
	Line         int
}

// keys are the keys of a schedule, in the usual order.
var keys = []string{
	"every", "cron", "tz", "target", "first", "last", "missed", "jitter", "pause-after", "headers", "body",
}

// keyHeaders maps the keys that become one header each.
var keyHeaders = map[string]string{
	"every": message.HeaderEvery, "cron": message.HeaderCron, "tz": message.HeaderZone,
	"missed": message.HeaderMissed, "jitter": message.HeaderJitter, "pause-after": message.HeaderPauseAfter,
}

// options are the Delay- headers that the key headers may have.
var options = message.Options()

// schedule parses one schedule. ok is false if it has problems, which are noted.
func (r *reader) schedule(key, value *yaml.Node) (s Schedule, ok bool) {
	problems := len(r.problems)
	s = Schedule{Name: key.Value, Header: make(message.Header), Line: key.Line}
	if problem := entry.CheckKey(s.Name); problem != nil {
		r.refuse(key.Line, "%s", strings.Replace(problem.Sentence, "the key", "the name", 1))
	}
	fields, ok := r.fields(value, s.Name, keys)
	if !ok {
		return s, false
	}
	s.Target, s.Body = r.text(fields["target"]), []byte(r.text(fields["body"]))
	r.headers(&s, fields["headers"])
	for name, header := range keyHeaders {
		if text := r.text(fields[name]); text != "" {
			s.Header[header] = []string{text}
		}
	}
	if s.Target == "" {
		r.refuse(key.Line, "%s: target is missing: want the subject to deliver to", s.Name)
	}
	s.First = r.moment(s.Name+": first", fields["first"])
	s.Last = r.moment(s.Name+": last", fields["last"])
	if len(r.problems) == problems {
		r.validate(s)
	}
	return s, len(r.problems) == problems
}

// moment parses a time. It returns the zero time without a valid time.
func (r *reader) moment(name string, n *yaml.Node) time.Time {
	text := r.text(n)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		r.refuse(n.Line, "%s %q: want a time with a zone, such as 2026-12-24T18:00:00Z; a file is applied repeatedly, "+
			"so a duration would begin at each application", name, text)
	}
	return t
}

// headers parses the client's own headers, and the headers in options.
func (r *reader) headers(s *Schedule, n *yaml.Node) {
	if n == nil {
		return
	}
	for _, p := range r.pairs(n, s.Name+": headers") {
		name, values := p.key.Value, []*yaml.Node{p.value}
		if strings.HasPrefix(strings.ToLower(name), "delay-") && !slices.Contains(options, name) {
			r.refuse(p.key.Line, "%s: the header %s is not allowed: want one of %s; other options have a key: %s", s.Name, name,
				strings.Join(options, ", "), strings.Join(keys, ", "))
			continue
		}
		if strings.HasPrefix(strings.ToLower(name), "nats-") {
			r.refuse(p.key.Line, "%s: the header %s is reserved for the server, and would not reach the target", s.Name, name)
			continue
		}
		if p.value.Kind == yaml.SequenceNode {
			values = p.value.Content
		}
		for _, v := range values {
			s.Header[name] = append(s.Header[name], r.text(resolveAlias(v)))
		}
	}
}

// validate adds the problems that a broker would report, except a last time in the past.
func (r *reader) validate(s Schedule) {
	s.Last = time.Time{}
	in := s.incoming(r.policy, "any", r.now)
	if _, problem := entry.ParseSet(r.policy, in); problem != nil {
		r.refuse(s.Line, "%s: %s", s.Name, problem.Sentence)
		return
	}
	if e := entry.Parse(r.policy, in); e.Kind != entry.Set || e.Problem != nil {
		r.refuse(s.Line, "%s: remove the headers that the broker writes", s.Name)
	}
}

// header returns the headers of a publish that sets the schedule. First is the requested time of the first round, or
// zero for the next time that every or cron gives.
func (s Schedule) header(set string, first time.Time) message.Header {
	h := maps.Clone(s.Header)
	h[message.HeaderOwner] = []string{set}
	for name, t := range map[string]time.Time{message.HeaderUntil: first, message.HeaderLast: s.Last} {
		if value := text.Moment(t); value != "" {
			h[name] = []string{value}
		}
	}
	return h
}

// incoming returns the message that a broker would read if the schedule were set now.
func (s Schedule) incoming(policy message.Policy, set string, now time.Time) message.Incoming {
	return message.Incoming{
		Stream: policy.Names.TimersStream(), Sequence: 1, At: now, Subject: policy.Names.Timer(s.Name, s.Target),
		Header: s.header(set, s.First), Data: s.Body,
	}
}

// request returns the timer that a broker would read if the schedule were set now. It leaves out the last time, which
// may be past. The schedule must be valid.
func (s Schedule) request(set string, policy message.Policy, now time.Time) entry.Pending {
	s.Last = time.Time{}
	return entry.Parse(policy, s.incoming(policy, set, now)).Pending
}

// hasEnded reports whether the schedule would have no round if it were set now.
func (s Schedule) hasEnded(want entry.Pending, now time.Time) bool {
	table := want.Series.Table
	table.Last = s.Last
	_, hasRound := table.Start(now, s.First)
	return !hasRound
}
