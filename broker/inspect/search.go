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

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/journal"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/broker/timer/entry"
)

const (
	// searchBatch is the number of headers between two reports of progress.
	searchBatch = 1000
	// leaderSkew is the assumed maximum difference between the clocks of two leaders. By these clocks, a message may be
	// stored in its second lane before it was accepted.
	leaderSkew = time.Minute
)

// MessageRef identifies the message of a search.
type MessageRef struct {
	ID      message.ID
	Partial bool // the id has no time of acceptance
}

// ParseMessageRef parses a Delay-Id, or its stream and sequence, which an acknowledgement shows.
func ParseMessageRef(text string) (MessageRef, error) {
	id, err := message.ParseID(text)
	if err == nil {
		return MessageRef{ID: id}, nil
	}
	i := strings.LastIndexByte(text, '-')
	if i < 1 || strings.ContainsAny(text, ".*> \t\r\n") {
		return MessageRef{}, err
	}
	n, numberErr := strconv.ParseUint(text[i+1:], 10, 63)
	if numberErr != nil || n == 0 {
		return MessageRef{}, err
	}
	return MessageRef{ID: message.ID{Stream: text[:i], Sequence: n}, Partial: true}, nil
}

// name returns the known part of the id.
func (r MessageRef) name() string {
	if r.Partial {
		return fmt.Sprintf("%s-%d", r.ID.Stream, r.ID.Sequence)
	}
	return r.ID.String()
}

// match reports whether id is the id of the message. If r is partial, a match completes r.
func (r *MessageRef) match(id string) bool {
	if !r.Partial {
		return id == r.ID.String()
	}
	complete, err := message.ParseID(id)
	if err != nil || complete.Stream != r.ID.Stream || complete.Sequence != r.ID.Sequence {
		return false
	}
	r.ID, r.Partial = complete, false
	return true
}

// Where searches for one message: in the stream that accepted it, in the journal if there is one, and then in the lanes
// in the order in which messages pass them. So it usually finds a message that moves to another lane meanwhile. Where
// searches at most maxRead messages of the lanes. It calls progress after each searchBatch, with an estimate of the
// total.
func (i *Inspector) Where(
	ctx context.Context, r MessageRef, maxRead uint64, progress func(searched, pending uint64),
) (Whereabouts, error) {
	s := search{Inspector: i, MessageRef: r, maxRead: maxRead, progress: progress}
	v, err := i.Lanes(ctx, MaxHandover)
	if err != nil {
		return Whereabouts{}, err
	}
	ctx, cancel := i.WithRefusal(ctx)
	defer cancel()
	found, err := s.find(ctx, v)
	return found, Cause(ctx, err)
}

// search is the search for one message.
type search struct {
	*Inspector
	MessageRef
	maxRead  uint64
	progress func(searched, pending uint64)

	searched      uint64   // messages whose headers were read
	cut           bool     // maxRead messages were searched, and there may be more
	pending       uint64   // messages in all lanes
	silentStreams []string // streams of lanes that did not answer, and may have the message
}

func (s *search) find(ctx context.Context, v Lanes) (Whereabouts, error) {
	var lanes []Lane
	for _, l := range v.Lanes {
		switch {
		case l.Info != nil:
			lanes = append(lanes, l)
		case l.State == Silent:
			s.silentStreams = append(s.silentStreams, l.Stream)
		}
	}
	var origin *jetstream.StreamInfo
	var stored *message.Incoming // the message in the stream that accepted it; nil if it left the stream
	if i := slices.IndexFunc(lanes, func(l Lane) bool { return l.Stream == s.ID.Stream }); i >= 0 {
		origin = lanes[i].Info
		in, err := s.Message(ctx, s.ID.Stream, s.ID.Sequence)
		if err == nil && s.Partial {
			s.ID.At, s.Partial = in.At, false
		}
		if err == nil && in.At.Equal(s.ID.At) {
			stored = &in
			if r, problem := entry.ParseAny(s.Policy(), in); problem != nil || r.NextAttempt().After(v.Time) {
				return s.describeStored(in, v), nil // unreadable, or not due: not delivered
			}
		}
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return Whereabouts{}, err
		}
	}
	records, err := s.findRecords(ctx, journalWriters{})
	switch {
	case err != nil:
		return Whereabouts{}, err
	case records.delivered > 0 && stored != nil:
		w := s.describeRecord(records)
		w.Stream, w.Sequence, w.Answer = stored.Stream, stored.Sequence, w.Answer+"; its lane has not removed it yet"
		return w, nil
	case records.delivered > 0:
		return s.describeRecord(records), nil
	case stored != nil:
		return s.describeStored(*stored, v), nil
	}
	slices.SortStableFunc(lanes, comparePassage)
	for _, l := range lanes {
		s.pending += l.Pending
	}
	for _, l := range lanes {
		if l.Kind == streams.Intake {
			continue // no hop leads into the intake
		}
		if s.cut {
			break
		}
		in, err := s.scan(ctx, l)
		switch {
		case err != nil:
			return Whereabouts{}, fmt.Errorf("search %s: %w", l.Stream, err)
		case in != nil && l.Kind == streams.Dead:
			return s.describeLetter(*in), nil
		case in != nil:
			return s.describeStored(*in, v), nil
		}
	}
	return s.describeMissing(ctx, origin, records)
}

// describeMissing describes a message that is neither in a lane nor a dead letter. It searches the journal once more,
// because the broker may have delivered the message during the search. After MaxStoreDelay, the record of the delivery
// is stored, or the journal has a hole.
func (s *search) describeMissing(
	ctx context.Context, origin *jetstream.StreamInfo, records journalRecords,
) (Whereabouts, error) {
	if records.hasJournal {
		select {
		case <-ctx.Done():
			return Whereabouts{}, context.Cause(ctx)
		case <-time.After(journal.MaxStoreDelay):
		}
		var err error
		if records, err = s.findRecords(ctx, s.askWriters(ctx)); err != nil {
			return Whereabouts{}, err
		}
	}
	if records.delivered > 0 || records.lastEntry.Code != "" {
		return s.describeRecord(records), nil
	}
	return Whereabouts{ID: s.name(), Searched: s.searched, Answer: s.explainAbsence(origin, records)}, nil
}

// comparePassage orders lanes as one message passes through them: the timers, the levels from the longest to the
// shortest, the retry lanes, the pauses, the dead letters.
func comparePassage(a, b Lane) int {
	if a.Kind == streams.Level && b.Kind == streams.Level {
		return cmp.Compare(b.Delay, a.Delay)
	}
	return streams.CompareLanes(a.spec, b.spec)
}

// scan reads the headers of a lane until it finds the message. Except in the stream of the timers, it reads only the
// broker's own subjects: on other subjects, clients can write any header. See isProven.
func (s *search) scan(ctx context.Context, l Lane) (*message.Incoming, error) {
	scan := s.ScanHeaders(l.Stream, "where")
	if !s.Partial {
		scan.Since = s.ID.At.Add(-leaderSkew)
	}
	switch l.Kind {
	case streams.Level: // a list of filters: a consumer with a single filter would need another permission
		scan.Filters = []string{s.names.HopFilter(l.Level)}
	case streams.Retry:
		scan.Filters = []string{s.names.RetryFilter(l.Level)}
	case streams.Paused:
		scan.Filters = []string{s.names.PausedStreamFilter()}
	}
	infoCtx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	// The message may have come into the lane after the snapshot of the lanes.
	stream, err := s.JetStream.Stream(infoCtx, l.Stream)
	if err != nil || stream.CachedInfo().State.Msgs == 0 {
		return nil, err
	}
	for m, err := range scan.All(ctx) {
		if err != nil {
			return nil, err
		}
		if s.cut = s.searched >= s.maxRead; s.cut {
			return nil, nil
		}
		s.count()
		if m.Header[message.HeaderTimer] != nil { // a marker; its timer is in the stream of the timers
			continue
		}
		ref := s.MessageRef
		if ref.match(message.ClaimOf(m.Header).ID) {
			proven, err := s.isProven(ctx, l, m.Sequence)
			if err != nil {
				return nil, err
			}
			if proven {
				found := incoming(l.Stream, m)
				s.MessageRef = ref
				return &found, nil
			}
		}
	}
	return nil, nil
}

// isProven reports whether a broker wrote the Delay-Id of a message that scan read. In the stream of the timers, only
// the seal of an entry proves this. To check the seal, isProven requests the entry with its body.
func (s *search) isProven(ctx context.Context, l Lane, sequence uint64) (bool, error) {
	if l.Kind != streams.Timers {
		return true, nil
	}
	in, err := s.Message(ctx, l.Stream, sequence)
	if err != nil {
		if errors.Is(err, jetstream.ErrMsgNotFound) { // a later entry has replaced it
			err = nil
		}
		return false, err
	}
	e := entry.Parse(s.Policy(), in)
	return e.Kind == entry.Fired || e.Kind == entry.Over || e.Replaced > 0, nil
}

func (s *search) count() {
	if s.searched++; s.searched%searchBatch == 0 {
		s.progress(s.searched, s.pending)
	}
}
