package inspect

import (
	"cmp"
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"delaybroker/broker/lane"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
)

// maxConcurrent is the maximum number of concurrent requests of a forecast.
const maxConcurrent = 16

// A segment is a set of messages of one lane, counted by one method.
type segment struct {
	Lane
	pass
	ordered    bool   // a message is due when it leaves the lane, unless a header has a later time
	hasMarkers bool   // the segment may contain markers of timers: see pending_timers.go
	messages   uint64 // number of messages, without markers
	headers    uint64 // number of messages and markers: the headers to read
}

// subjectsOf returns the subjects on which a lane has messages for the targets of a pattern, or nil for all. For the
// lane of timers the result lacks the schedules, which passesOf adds.
func subjectsOf(names message.Names, l Lane, pattern string) []string {
	if pattern == "" {
		return nil
	}
	var filters []string
	switch l.Kind {
	case streams.Timers:
		filters = []string{names.TimerFilter()}
	case streams.Paused:
		filters = []string{names.PauseFilter("*")}
	case streams.Level:
		filters = []string{names.LevelFilter(l.Level), names.HopFilter(l.Level)}
	case streams.Retry:
		filters = []string{names.RetryFilter(l.Level)}
	default:
		filters = []string{names.InFilter(), names.AtFilter(), names.LevelFilter("*")}
	}
	for n := range filters {
		filters[n] = message.RestrictFilter(filters[n], pattern)
	}
	return filters
}

// segments divides a lane into segments. A level has two: the messages that clients published, and the hops.
func (f *forecast) segments(l Lane) []*segment {
	if l.Kind != streams.Level {
		return f.wholeLane(l)
	}
	filters := subjectsOf(f.names, l, f.query.Target)
	direct := []string{f.names.LevelFilter(l.Level), f.names.BareLevel(l.Level)}
	hops := []string{f.names.HopFilter(l.Level)}
	if filters != nil {
		direct, hops = filters[:1], filters[1:]
	}
	hasMarkers := f.query.Target == "" || message.Match(f.query.Target, message.MarkerTarget)
	return []*segment{
		{Lane: l, pass: pass{filters: direct}, ordered: true}, {Lane: l, pass: pass{filters: hops}, hasMarkers: hasMarkers},
	}
}

func (f *forecast) wholeLane(l Lane) (segments []*segment) {
	for _, p := range passesOf(f.names, l, f.query.Target) {
		segments = append(segments, &segment{Lane: l, pass: p})
	}
	return segments
}

func (f *forecast) count(ctx context.Context, segments []*segment) error {
	for _, s := range segments {
		if f.report.CountRequests++; s.hasMarkers {
			f.report.CountRequests++
		}
	}
	return fanOut(ctx, len(segments), func(ctx context.Context, n int) (err error) {
		s := segments[n]
		s.headers, err = f.scan(s).Count(ctx)
		if s.messages = s.headers; err == nil && s.hasMarkers && s.headers > 0 {
			var markers uint64
			scan := f.scan(s)
			scan.Filters = []string{f.names.Marker(s.Level)}
			markers, err = scan.Count(ctx)
			s.messages -= min(markers, s.messages)
		}
		return scanError(s.Stream, err)
	})
}

func (f *forecast) scan(s *segment) lane.Scan {
	scan := f.ScanHeaders(s.Stream, "ahead")
	scan.To, scan.Filters = s.Info.State.LastSeq, s.filters
	return scan
}

// read adds a segment to the tally. It reads the headers of the messages stored before the forecast began.
func (f *forecast) read(ctx context.Context, s *segment) error {
	var read, n uint64
	latest := make(map[string]int) // slot of the latest entry of a timer, by subject
	for m, err := range f.scan(s).All(ctx) {
		if err != nil {
			return scanError(s.Stream, err)
		}
		read++
		if s.excludes(f.names, m.Subject) {
			continue
		}
		if slot, counted := latest[m.Subject]; counted { // this entry replaces or ends the timer
			delete(latest, m.Subject)
			f.tally[slot].number--
			n--
		}
		r, problem, ok := f.parser.pending(s.Lane, incoming(s.Stream, m))
		if !ok {
			continue
		}
		slot := f.slot(r, problem)
		n++
		if f.tally[slot].number++; s.Kind == streams.Timers {
			latest[m.Subject] = slot
		}
	}
	if s.headers == 0 { // a segment of a small lane: run has not subtracted it from the budget
		f.budget -= min(f.budget, read)
	}
	f.report.Read += n
	return nil
}

// addSampled adds messages that were counted or estimated, and of which the headers of some were examined.
func (f *forecast) addSampled(messages, examined uint64) {
	if messages == 0 {
		return
	}
	f.report.Sampled += examined
	f.report.Represented += messages
}

// incoming converts a message of a header scan to the input of the policy.
func incoming(stream string, m lane.Message) message.Incoming {
	in := m.Incoming(stream)
	in.HeadersOnly = true
	return in
}

// scanError adds the name of the stream to the error of a scan, if there is an error.
func scanError(stream string, err error) error {
	if err != nil {
		return fmt.Errorf("scan %s: %w", stream, err)
	}
	return nil
}

// fanOut calls f with each number below n, at most maxConcurrent at a time. The first error ends the context of the
// other calls. If ctx has ended, fanOut returns its cause, otherwise the first error.
func fanOut(ctx context.Context, n int, f func(ctx context.Context, n int) error) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(maxConcurrent)
	for k := range n {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error { return f(groupCtx, k) })
	}
	err := group.Wait()
	return cmp.Or(context.Cause(ctx), err)
}
