package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/lane"
	"delaybroker/broker/layout"
	"delaybroker/broker/message"
)

const (
	// searchBatch is how many headers are looked at before the time is.
	searchBatch = 1000
	// progressPause is how long a search is silent.
	progressPause = 2 * time.Second
	// leaderSkew is how much earlier than its acceptance a message may have been stored in the next lane, whose leader
	// is another server with a clock of its own.
	leaderSkew = time.Minute
)

// A search looks for one message, on the way that messages take, so that one that moves on meanwhile is met again.
type search struct {
	*operator
	id       message.ID
	partial  bool // when it was accepted is not known
	most     uint64
	progress func(searched, pending uint64)

	searched, pending uint64 // messages
	told              time.Time
}

func (s *search) run(ctx context.Context) (whereabouts, error) {
	s.told = time.Now()
	v, err := s.look(ctx, unownedLook)
	if err != nil {
		return whereabouts{}, err
	}
	ctx, cancel := s.allowed(ctx)
	defer cancel()
	w, err := s.find(ctx, v)
	return w, because(ctx, err)
}

func (s *search) find(ctx context.Context, v lanesView) (whereabouts, error) {
	lanes := slices.DeleteFunc(v.Lanes, func(l laneView) bool { return l.info == nil })
	var origin *jetstream.StreamInfo
	if i := slices.IndexFunc(lanes, func(l laneView) bool { return l.Stream == s.id.Stream }); i >= 0 {
		origin = lanes[i].info
		in, err := s.stored(ctx, s.id.Stream, s.id.Sequence)
		if err == nil && s.partial {
			s.id.At, s.partial = in.At, false
		}
		if err == nil && in.At.Equal(s.id.At) {
			return s.inLane(in, v), nil
		}
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return whereabouts{}, err
		}
	}
	slices.SortStableFunc(lanes, alongTheWay)
	for _, l := range lanes {
		s.pending += l.Pending
	}
	for _, l := range lanes {
		if l.Kind == layout.Intake {
			continue // nothing hops into it
		}
		in, err := s.scan(ctx, l)
		switch {
		case err != nil:
			return whereabouts{}, fmt.Errorf("search %s: %w", l.Stream, err)
		case in != nil && l.Kind == layout.Dead:
			return s.inDead(*in), nil
		case in != nil:
			return s.inLane(*in, v), nil
		}
	}
	return whereabouts{ID: s.name(), Searched: s.searched, Answer: s.absent(origin)}, nil
}

// alongTheWay orders lanes as a message passes them: from the longest level to the shortest, through the retries, to the
// dead letters.
func alongTheWay(a, b laneView) int {
	if a.Kind == layout.Level && b.Kind == layout.Level {
		return cmp.Compare(b.Delay, a.Delay)
	}
	return byWay(a, b)
}

// name is the id as far as it is known.
func (s *search) name() string {
	if s.partial {
		return fmt.Sprintf("%s-%d", s.id.Stream, s.id.Sequence)
	}
	return s.id.String()
}

// is reports whether a message has the id that is searched for, and learns all of it.
func (s *search) is(id string) bool {
	if !s.partial {
		return id == s.id.String()
	}
	whole, err := message.ParseID(id)
	if err != nil || whole.Stream != s.id.Stream || whole.Sequence != s.id.Sequence {
		return false
	}
	s.id, s.partial = whole, false
	return true
}

// inLane tells of a message that is stored in a lane.
func (s *search) inLane(in message.Incoming, v lanesView) whereabouts {
	now := v.Time
	r, problem := s.streams.Policy().Parse(in)
	w := whereabouts{
		ID: s.id.String(), Found: true, Stream: in.Stream, Sequence: in.Sequence, Searched: s.searched,
		Accepted: r.Accepted, Due: r.Due, Target: r.Target, Attempts: r.Attempts, RetryAt: r.RetryAt,
	}
	switch wait := r.When().Sub(now); {
	case problem != nil && problem.Code == message.NewerFormat:
		w.Answer = newerMessage
	case problem != nil:
		w.Due = time.Time{} // it was not understood
		w.Code, w.Reason = string(problem.Code), problem.Sentence
		w.Answer = "about to become a dead letter"
	case wait > 0 && r.Attempts > 0:
		w.Answer = fmt.Sprintf("refused, and tried again in %s", span(wait))
	case wait > 0:
		w.Answer = fmt.Sprintf("waiting, due in %s", span(wait))
	default:
		w.Answer = fmt.Sprintf("due since %s: %s", span(-wait), v.whyHere(in))
	}
	if l := v.lane(in.Stream); l.Owner == ownerNobody && problem == nil && r.When().After(now) {
		w.Answer += "; nobody reads its lane at the moment"
	}
	return w
}

func (v lanesView) lane(stream string) laneView {
	for _, l := range v.Lanes {
		if l.Stream == stream {
			return l
		}
	}
	return laneView{}
}

// whyHere says why a message may be in its lane although it is due.
func (v lanesView) whyHere(in message.Incoming) string {
	const either = "being delivered, or delivered and not committed yet"
	switch l := v.lane(in.Stream); {
	case l.Owner == ownerNobody:
		return "nobody reads its lane"
	case l.Owner == ownerStopped:
		return fmt.Sprintf("%s cannot read its lane at the moment", l.Instance)
	case l.Read >= in.Sequence:
		return either
	case l.Read > 0:
		return fmt.Sprintf("%s has not read it yet", l.Instance)
	}
	return either + ", or not read yet"
}

// inDead tells of a dead letter, which keeps what it was in its headers. What cannot be read of it is not told.
func (s *search) inDead(in message.Incoming) whereabouts {
	l, _ := s.names.ParseLetter(in)
	if !l.Understood() {
		l.Due = time.Time{} // it stands for the time of acceptance
	}
	return whereabouts{
		ID: s.id.String(), Found: true, Stream: in.Stream, Sequence: in.Sequence, Searched: s.searched, Accepted: s.id.At,
		Due: l.Due, Target: l.Target, Attempts: l.Attempts, Code: string(l.Code), Reason: l.Sentence,
		Answer: "a dead letter since " + moment(in.At),
	}
}

// absent says what it means that a message is nowhere, given the stream that should have accepted it.
func (s *search) absent(origin *jetstream.StreamInfo) string {
	const nowhere = "not in any lane and no dead letter: "
	switch {
	case s.searched >= s.most:
		return fmt.Sprintf("not among the first %d messages; search more with --most", s.searched)
	case origin == nil:
		return nowhere + fmt.Sprintf("never accepted here, since there is no stream %s, or it was deleted with all it held", s.id.Stream)
	case !s.partial && origin.Created.After(s.id.At):
		return nowhere + fmt.Sprintf("the stream %s was created anew after it", s.id.Stream)
	case origin.State.LastSeq < s.id.Sequence:
		return nowhere + fmt.Sprintf("never accepted, since the last sequence of %s is %d", s.id.Stream, origin.State.LastSeq)
	}
	return nowhere + "delivered, unless somebody purged it or made the id up"
}

// scan reads the headers of a lane until one names the message. Only what is stored on our own subjects is looked at: on
// others, clients write what they like.
func (s *search) scan(ctx context.Context, l laneView) (*message.Incoming, error) {
	var since time.Time
	if !s.partial {
		since = s.id.At.Add(-leaderSkew)
	}
	scan := lane.Scan{
		Conn: s.nc, JetStream: s.js, APIPrefix: s.apiPrefix, Stream: l.Stream, For: "where", Since: since, HeadersOnly: true,
	}
	switch l.Kind {
	case layout.Level: // several subjects rather than one, which would take another permission
		scan.Filters = []string{s.names.HopFilter(l.Level)}
	case layout.Retry:
		scan.Filters = []string{s.names.RetryFilter(l.Level)}
	}
	asking, cancel := context.WithTimeout(ctx, apiPatience)
	defer cancel()
	now, err := s.js.Stream(asking, l.Stream) // as it is now: the message may have come since the lanes were looked at
	if err != nil || now.CachedInfo().State.Msgs == 0 {
		return nil, err
	}
	for m, err := range scan.All(ctx) {
		if err != nil {
			return nil, err
		}
		s.count()
		if s.is(nats.Header(m.Header).Get(message.HeaderID)) {
			return &message.Incoming{Stream: l.Stream, Sequence: m.Sequence, At: m.At, Subject: m.Subject, Header: m.Header, BodyLeft: true}, nil
		}
		if s.searched >= s.most {
			return nil, nil
		}
	}
	return nil, nil
}

func (s *search) count() {
	s.searched++
	if s.searched%searchBatch == 0 && time.Since(s.told) >= progressPause {
		s.told = time.Now()
		s.progress(s.searched, s.pending)
	}
}
