package store

import (
	"context"
	"iter"
	"strings"

	"delaybroker/broker/lane"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
)

// pass is one scan of the headers of the timers' stream, with one filter: see the package documentation.
type pass struct {
	filter     string
	timersOnly bool // skip schedules, which another pass contains
}

// passes returns the scans that find all entries that f may match. If f.Key is a key and no pattern, they read only the
// entries of that key. The subject of a schedule does not contain its target: with f.Targets, a scan reads the headers
// of all schedules.
func (f Filter) passes(names message.Names) (all []pass) {
	if subject, ok := message.ParseScheduleName(f.Key); ok && !strings.Contains(f.Key, "*") {
		below := f.Prefix == "" || strings.HasPrefix(subject+".", f.Prefix+".")
		if below && message.ValidPattern(subject) && !strings.Contains(subject, ">") {
			all = append(all, pass{filter: names.ScheduleSubject(subject)})
		}
		return all
	}
	key, ends := "*", []string{">"}
	if entry.CheckKey(f.Key) == nil {
		key = f.Key
	}
	if f.Prefix != "" {
		ends = []string{f.Prefix, f.Prefix + ".>"}
	}
	timers, schedules := f.keyKinds()
	if timers && len(f.Targets) == 0 { // these filters include schedules
		for _, end := range ends {
			all = append(all, pass{filter: names.Timer(key, end)})
		}
		return all
	}
	if timers {
		for _, target := range f.Targets {
			all = append(all, pass{filter: names.Timer(key, target), timersOnly: true})
		}
	}
	if schedules {
		for _, end := range ends {
			all = append(all, pass{filter: names.ScheduleSubject(end)})
		}
	}
	return all
}

// keyKinds reports whether the pattern Key may match keys of timers, and whether it may match names of schedules.
func (f Filter) keyKinds() (timers, schedules bool) {
	begin, _, open := strings.Cut(f.Key, "*")
	names := message.ScheduleName("")
	timers = !strings.HasPrefix(begin, names)
	return timers, !timers || f.Key == "" || open && strings.HasPrefix(names, begin)
}

// entries yields the entries that f may match, in the order of the stream.
func (t *Timers) entries(ctx context.Context, f Filter, from, to uint64) iter.Seq2[lane.Message, error] {
	return func(yield func(lane.Message, error) bool) {
		var heads []*head
		for _, p := range f.passes(t.Policy.Names) {
			scan := t.Scan
			scan.Stream, scan.Observer, scan.HeadersOnly = t.Policy.Names.TimersStream(), "timers", true
			scan.From, scan.To, scan.Filters = from, to, []string{p.filter}
			next, stop := iter.Pull2(scan.All(ctx))
			defer stop()
			h := &head{pass: p, next: next}
			h.load()
			heads = append(heads, h)
		}
		for last := uint64(0); ; {
			var first *head
			for _, h := range heads {
				if h.more && (first == nil || h.err != nil || h.message.Sequence < first.message.Sequence) {
					first = h
				}
			}
			if first == nil {
				return
			}
			m, err := first.message, first.err
			// Another pass has a schedule that a pass for timers skips.
			duplicate := m.Sequence == last || first.timersOnly && t.Policy.Names.Parse(m.Subject).IsSchedule()
			if err != nil || !duplicate {
				if last = m.Sequence; !yield(m, err) || err != nil {
					return
				}
			}
			first.load()
		}
	}
}

// head is the next entry of a pass.
type head struct {
	pass
	next func() (lane.Message, error, bool)

	message lane.Message
	err     error
	more    bool // false at the end of the pass
}

func (h *head) load() { h.message, h.err, h.more = h.next() }

// matchKey reports whether a key matches a pattern in which * stands for any characters. It takes the first match of
// each part, and never backtracks: a client's pattern costs at most the product of the two lengths.
func matchKey(pattern, key string) bool {
	parts := strings.Split(pattern, "*")
	key, ok := strings.CutPrefix(key, parts[0])
	if !ok || len(parts) == 1 {
		return ok && key == ""
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] {
		_, rest, found := strings.Cut(key, part)
		if !found {
			return false
		}
		key = rest
	}
	return strings.HasSuffix(key, parts[last])
}
