package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/ratelog"
	"delaybroker/broker/streams"
	"delaybroker/broker/timer/entry"
)

const (
	// searchBatch is the number of headers between two checks of ProgressInterval.
	searchBatch = 1000
	// ProgressInterval is the time between two reports of progress.
	ProgressInterval = 2 * time.Second
	// leaderSkew is the maximum difference between the clocks of two leaders. With such a difference, a message may
	// seem to be stored in its second lane before it was accepted.
	leaderSkew = time.Minute
)

// Wanted identifies the message of a search.
type Wanted struct {
	ID      message.ID
	Partial bool // the id has no time of acceptance
}

// ParseWanted parses a Delay-Id, or the part of it that an acknowledgement shows: stream and sequence.
func ParseWanted(text string) (Wanted, error) {
	id, err := message.ParseID(text)
	if err == nil {
		return Wanted{ID: id}, nil
	}
	i := strings.LastIndexByte(text, '-')
	if i < 1 || strings.ContainsAny(text, ".*> \t\r\n") {
		return Wanted{}, err
	}
	n, bad := strconv.ParseUint(text[i+1:], 10, 63)
	if bad != nil || n == 0 {
		return Wanted{}, err
	}
	return Wanted{ID: message.ID{Stream: text[:i], Sequence: n}, Partial: true}, nil
}

// name returns the known part of the id.
func (w Wanted) name() string {
	if w.Partial {
		return fmt.Sprintf("%s-%d", w.ID.Stream, w.ID.Sequence)
	}
	return w.ID.String()
}

// is reports whether a message has the wanted id. It completes a partial id.
func (w *Wanted) is(id string) bool {
	if !w.Partial {
		return id == w.ID.String()
	}
	whole, err := message.ParseID(id)
	if err != nil || whole.Stream != w.ID.Stream || whole.Sequence != w.ID.Sequence {
		return false
	}
	w.ID, w.Partial = whole, false
	return true
}

// Where searches for one message: in the stream that accepted it, in the journal if there is one, and then in the lanes
// in the order in which messages pass them. So it finds a message that moves on during the search. It reads at most
// most messages of the lanes. It calls progress every ProgressInterval, with an estimate of the total.
func (i *Inspector) Where(
	ctx context.Context, w Wanted, most uint64, progress func(searched, pending uint64),
) (Whereabouts, error) {
	s := search{Inspector: i, Wanted: w, most: most, progress: progress}
	s.progressed.Allow(ProgressInterval) // the first report comes after one interval
	v, err := i.Look(ctx, Handover)
	if err != nil {
		return Whereabouts{}, err
	}
	ctx, cancel := i.Allowed(ctx)
	defer cancel()
	found, err := s.find(ctx, v)
	return found, Cause(ctx, err)
}

// search is the search for one message.
type search struct {
	*Inspector
	Wanted
	most     uint64
	progress func(searched, pending uint64)

	searched, pending uint64 // messages
	progressed        ratelog.Limit
}

func (s *search) find(ctx context.Context, v Lanes) (Whereabouts, error) {
	lanes := slices.DeleteFunc(slices.Clone(v.Lanes), func(l Lane) bool { return l.Info == nil })
	var origin *jetstream.StreamInfo
	var here *message.Incoming
	if i := slices.IndexFunc(lanes, func(l Lane) bool { return l.Stream == s.ID.Stream }); i >= 0 {
		origin = lanes[i].Info
		in, err := s.Stored(ctx, s.ID.Stream, s.ID.Sequence)
		if err == nil && s.Partial {
			s.ID.At, s.Partial = in.At, false
		}
		if err == nil && in.At.Equal(s.ID.At) {
			here = &in
			if r, problem := entry.ParseAny(s.Policy(), in); problem != nil || r.When().After(v.Time) {
				return s.inLane(in, v), nil // it is still in a lane, so it was not delivered
			}
		}
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return Whereabouts{}, err
		}
	}
	end, err := s.ended(ctx, writers{})
	switch {
	case err != nil:
		return Whereabouts{}, err
	case end.delivered > 0 && here != nil:
		w := s.inJournal(end)
		w.Stream, w.Sequence, w.Answer = here.Stream, here.Sequence, w.Answer+"; its lane has not removed it yet"
		return w, nil
	case end.delivered > 0:
		return s.inJournal(end), nil
	case here != nil:
		return s.inLane(*here, v), nil
	}
	slices.SortStableFunc(lanes, byPassage)
	for _, l := range lanes {
		s.pending += l.Pending
	}
	for _, l := range lanes {
		if l.Kind == streams.Intake {
			continue // no hop leads into it
		}
		in, err := s.scan(ctx, l)
		switch {
		case err != nil:
			return Whereabouts{}, fmt.Errorf("search %s: %w", l.Stream, err)
		case in != nil && l.Kind == streams.Dead:
			return s.inDead(*in), nil
		case in != nil:
			return s.inLane(*in, v), nil
		}
	}
	return s.nowhere(ctx, origin, end)
}

// nowhere describes a message that is neither in a lane nor a dead letter. The broker may have delivered it during the
// search.
func (s *search) nowhere(ctx context.Context, origin *jetstream.StreamInfo, end ending) (Whereabouts, error) {
	if end.kept {
		select {
		case <-ctx.Done():
			return Whereabouts{}, context.Cause(ctx)
		case <-time.After(flushed):
		}
		var err error
		if end, err = s.ended(ctx, s.askWriters(ctx)); err != nil {
			return Whereabouts{}, err
		}
	}
	if end.delivered > 0 || end.last.Code != "" {
		return s.inJournal(end), nil
	}
	return Whereabouts{ID: s.name(), Searched: s.searched, Answer: s.absent(origin, end)}, nil
}

// byPassage orders lanes as one message passes through them: from the longest level to the shortest, then retries, then
// dead letters.
func byPassage(a, b Lane) int {
	if a.Kind == streams.Level && b.Kind == streams.Level {
		return cmp.Compare(b.Delay, a.Delay)
	}
	return byWay(a, b)
}

// scan reads the headers of a lane until it finds the message. It reads only the broker's own subjects: clients can
// write any header on other subjects.
func (s *search) scan(ctx context.Context, l Lane) (*message.Incoming, error) {
	scan := s.Headers(l.Stream, "where")
	if !s.Partial {
		scan.Since = s.ID.At.Add(-leaderSkew)
	}
	switch l.Kind {
	case streams.Level: // two filters: a single one would need another permission
		scan.Filters = []string{s.names.HopFilter(l.Level)}
	case streams.Retry:
		scan.Filters = []string{s.names.RetryFilter(l.Level)}
	case streams.Paused:
		scan.Filters = []string{s.names.PausedFilter()}
	}
	asking, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	// The message may have arrived in the lane after the first look at the lanes.
	now, err := s.JetStream.Stream(asking, l.Stream)
	if err != nil || now.CachedInfo().State.Msgs == 0 {
		return nil, err
	}
	for m, err := range scan.All(ctx) {
		if err != nil {
			return nil, err
		}
		s.count()
		if m.Header[message.HeaderTimer] != nil { // a marker; its timer is in the stream of the timers
			continue
		}
		if s.is(nats.Header(m.Header).Get(message.HeaderID)) {
			found := incoming(l.Stream, m)
			return &found, nil
		}
		if s.searched >= s.most {
			return nil, nil
		}
	}
	return nil, nil
}

func (s *search) count() {
	if s.searched++; s.searched%searchBatch != 0 {
		return
	}
	if _, ok := s.progressed.Allow(ProgressInterval); ok {
		s.progress(s.searched, s.pending)
	}
}
