package inspect

import (
	"container/heap"
	"context"
	"iter"
	"slices"
	"time"

	"delaybroker/broker/lane"
	"delaybroker/broker/streams"
)

const (
	// listBatch is the number of headers in one request to a lane. A list often needs only a few messages of each lane.
	listBatch = 100
	// A hop may be due up to maxLateArrival before it leaves its level. If it is due still earlier, its position in the
	// list is not exact.
	maxLateArrival = time.Minute
)

// A source reads one pass of a lane for a merge. A message in a level is due when it leaves the level, or later. Only a
// hop that arrived late in its level is due before it leaves. The position of a message in the list is its due time, or
// without a due time the time at which it was stored. In a level, the position is at the earliest maxLateArrival before
// the message leaves. The other lanes are not sorted by due time as a whole, so the merge reads all their messages
// before it lists the first message of any lane.
type source struct {
	Lane
	pass
	next     func() (lane.Message, error, bool)
	stop     func()
	earliest time.Time // no unread message has an earlier position
	done     bool
}

// A merge lists the messages of a broker's lanes by due time.
type merge struct {
	*Inspector
	query          PendingQuery
	parser         parser
	minDue, maxDue time.Time // zero for no bound
	sources        []*source
	unlisted       pendingHeap // messages that were read, and not yet listed
	// listed has the ids of the listed messages, which the merge may read again in another lane, and of replaced and ended
	// timers.
	listed map[string]bool
	timers map[string]string // id of the latest set of a timer, by subject
	result PendingList
}

// add adds a lane. The first call of next sends the first request.
func (m *merge) add(ctx context.Context, l Lane) {
	for _, p := range passesOf(m.names, l, m.query.Target) {
		scan := m.ScanHeaders(l.Stream, "pending")
		scan.To, scan.Batch, scan.Filters = l.Info.State.LastSeq, listBatch, p.filters
		scan.From = l.arrived + 1
		s := &source{Lane: l, pass: p}
		s.earliest = s.earliestAfter(l.Info.State.FirstTime)
		s.next, s.stop = iter.Pull2(scan.All(ctx))
		m.sources = append(m.sources, s)
	}
}

func (m *merge) stop() {
	for _, s := range m.sources {
		s.stop()
	}
}

// earliestAfter returns the earliest position of a message stored at this time or later.
func (s *source) earliestAfter(stored time.Time) time.Time {
	if s.Kind != streams.Level {
		return time.Time{}
	}
	return stored.Add(s.spec.Delay - maxLateArrival)
}

// run lists a message when no lane can contain a message with an earlier position. Otherwise it reads one message of
// the lane that may contain the message with the earliest position.
func (m *merge) run() error {
	for len(m.result.Messages) < m.query.Limit {
		s := m.firstSource()
		if len(m.unlisted) > 0 && (s == nil || m.unlisted[0].position.Before(s.earliest)) {
			m.list(heap.Pop(&m.unlisted).(PendingMessage))
			continue
		}
		switch {
		case s == nil:
			return nil
		case m.result.Read >= m.query.MaxRead:
			m.result.Truncated = true
			m.setCursor()
			return nil
		}
		if err := m.readOne(s); err != nil {
			return scanError(s.Stream, err)
		}
	}
	if len(m.unlisted) > 0 || m.firstSource() != nil {
		m.setCursor()
	}
	return nil
}

// firstSource returns the source that may contain the unread message with the earliest position, or nil. It ignores a
// source whose unread messages are all beyond the end of the list.
func (m *merge) firstSource() *source {
	var first *source
	for _, s := range m.sources {
		beyond := !m.maxDue.IsZero() && !s.earliest.Before(m.maxDue)
		if !s.done && !beyond && (first == nil || s.earliest.Before(first.earliest)) {
			first = s
		}
	}
	return first
}

func (m *merge) setCursor() {
	m.result.More, m.result.Cursor = true, m.query.Cursor.String()
	if n := len(m.result.Messages); n > 0 {
		last := m.result.Messages[n-1]
		m.result.Cursor = Cursor{last.position, last.ID}.String()
	}
}

func (m *merge) list(w PendingMessage) {
	if !m.listed[w.ID] {
		m.listed[w.ID] = true
		m.result.Messages = append(m.result.Messages, w)
	}
}

func (m *merge) readOne(s *source) error {
	stored, err, ok := s.next()
	if !ok || err != nil {
		s.done = true
		return err
	}
	m.result.Read++
	if earliest := s.earliestAfter(stored.At); earliest.After(s.earliest) { // a new leader's clock may be behind
		s.earliest = earliest
	}
	if s.excludes(m.names, stored.Subject) {
		return nil
	}
	if id, set := m.timers[stored.Subject]; set { // this entry replaces or ends the timer
		delete(m.timers, stored.Subject)
		m.listed[id] = true
	}
	w, ok := m.parse(s, stored)
	if ok && s.Kind == streams.Timers {
		m.timers[stored.Subject] = w.ID
	}
	switch {
	case !ok, !w.matches(m.query.Find):
		return nil
	case w.position.Before(m.minDue), !m.maxDue.IsZero() && !w.position.Before(m.maxDue), m.query.Cursor.compare(w) >= 0:
		return nil
	}
	heap.Push(&m.unlisted, w)
	return nil
}

// parse returns the message as a row of the list. Ok is false if the message is not pending, or its target does not
// match the pattern.
func (m *merge) parse(s *source, stored lane.Message) (w PendingMessage, ok bool) {
	r, problem, ok := m.parser.pending(s.Lane, incoming(s.Stream, stored))
	if !ok {
		return w, false
	}
	w = PendingMessage{
		ID: r.ID, MsgID: r.MsgID, Target: r.Target, Due: r.NextAttempt().UTC(), Accepted: r.Accepted.UTC(), Stream: s.Stream,
		Sequence: stored.Sequence, Bytes: stored.BodySize(), Attempts: r.Attempts, position: r.NextAttempt(),
	}
	if s.Kind == streams.Timers {
		w.Key = m.names.Parse(stored.Subject).Key()
	}
	if problem != nil {
		w.Problem, w.Due, w.position = string(problem.Code), time.Time{}, stored.At
	}
	if w.position.Before(s.earliest) {
		w.position = s.earliest
	}
	return w, true
}

// pendingHeap is a heap of messages, ordered by position.
type pendingHeap []PendingMessage

func (w pendingHeap) Len() int           { return len(w) }
func (w pendingHeap) Less(a, b int) bool { return Cursor{w[a].position, w[a].ID}.compare(w[b]) < 0 }
func (w pendingHeap) Swap(a, b int)      { w[a], w[b] = w[b], w[a] }
func (w *pendingHeap) Push(x any)        { *w = append(*w, x.(PendingMessage)) }

func (w *pendingHeap) Pop() any {
	last := len(*w) - 1
	x := (*w)[last]
	*w = slices.Delete(*w, last, last+1)
	return x
}
