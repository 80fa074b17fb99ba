package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
	"delaybroker/broker/message"
)

const (
	// skew is the assumed maximum difference between the clocks of two leaders.
	skew = time.Minute
	// leadTime is the length of the interval that a search reads before the interval of the query. An instance that was
	// killed early in the interval of the query may have written its last batch before.
	leadTime = deadAfter + skew
	// A batch counts as a copy if its latest record was older than maxRecordAge when the batch was stored.
	maxRecordAge = maxBatchAge + skew
)

// Config is the configuration of a reader of the journal.
type Config struct {
	Conn      *nats.Conn
	JetStream jetstream.JetStream
	APIPrefix string         // "$JS.API", or another prefix of the JetStream API for a domain or an import
	Policy    message.Policy // has the name of the stream, and the keys that verify seals
	// States has the states of all running writers shortly before a search. It is nil if these states are unknown. If
	// States is nil, a search reports a hole of a killed instance only after a minute without a batch.
	States []State
}

// Journal reads the stream of records.
type Journal struct {
	cfg    Config
	stream string
}

// Open returns a journal. It sends no request.
func Open(cfg Config) *Journal { return &Journal{cfg: cfg, stream: cfg.Policy.Names.JournalStream()} }

// Entry is a record in the journal.
type Entry struct {
	Record
	Instance string // the instance that wrote the record
}

// errLimit ends a search at its limit.
var errLimit = errors.New("limit reached")

// Search calls emit for each selected record, in the order in which the records were stored. It ends at the first error
// of emit, and returns this error. If there is no stream, Search returns ErrNoJournal.
func (j *Journal) Search(ctx context.Context, q Query, emit func(Entry) error) (Report, error) {
	info, err := j.info(ctx)
	if err != nil {
		return Report{}, err
	}
	s := &search{
		Journal: j, Query: q, emit: emit, summaries: newSummaries(),
		Report: Report{MaxAge: info.Config.MaxAge, SearchedAt: info.TimeStamp.UTC(), Bytes: info.State.Bytes},
	}
	if info.State.Msgs == 0 {
		s.conclude(s.SearchedAt)
		return s.Report, nil
	}
	s.OldestBatch = info.State.FirstTime.UTC()
	scan := lane.Scan{
		Conn: j.cfg.Conn, JetStream: j.cfg.JetStream, APIPrefix: j.cfg.APIPrefix, Stream: j.stream, Observer: "journal",
		To: info.State.LastSeq, From: q.From.Sequence,
	}
	if !q.Since.IsZero() && q.From.Sequence == 0 {
		if scan.Since = q.Since.Add(-leadTime); s.OldestBatch.Before(scan.Since) {
			s.summaries.lastStored = scan.Since // latest possible time of the last batch that the scan skips
		}
	}
	if q.From.Sequence > 0 && q.From.Sequence < info.State.FirstSeq {
		s.Holes = append(s.Holes, Hole{From: s.OldestBatch, To: s.OldestBatch,
			Reason: "the journal no longer has the record at which this search should continue"})
	}
	end, batches := s.SearchedAt, uint64(0)
	for m, err := range scan.All(ctx) {
		if err != nil {
			return s.Report, fmt.Errorf("read %s: %w", j.stream, err)
		}
		if !q.Until.IsZero() && m.At.After(q.Until.Add(maxRecordAge)) {
			end = m.At
			break
		}
		if batches++; q.Progress != nil {
			q.Progress(s.ReadRecords, s.ReadRecords+s.ReadRecords/batches*m.Pending)
		}
		switch err := s.process(m); {
		case errors.Is(err, errLimit):
			s.conclude(m.At)
			return s.Report, nil
		case err != nil:
			return s.Report, err
		}
	}
	s.conclude(end)
	return s.Report, nil
}

// Now returns the time by the clock of the stream's leader.
func (j *Journal) Now(ctx context.Context) (time.Time, error) {
	info, err := j.info(ctx)
	if err != nil {
		return time.Time{}, err
	}
	return info.TimeStamp, nil
}

func (j *Journal) info(ctx context.Context) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	s, err := j.cfg.JetStream.Stream(ctx, j.stream)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, ErrNoJournal
	case err != nil:
		return nil, fmt.Errorf("state of %s: %w", j.stream, err)
	}
	return s.CachedInfo(), nil
}

// search is one read of the journal.
type search struct {
	*Journal
	Query
	Report
	emit      func(Entry) error
	summaries summaries
}

// process adds a stored batch to the summaries, and emits its selected records.
func (s *search) process(m lane.Message) error {
	if !s.isOwn(m) {
		s.UnprovenMessages++
		return nil
	}
	h, lines, ok := parseHead(m.Data)
	if !ok { // written by a newer broker or, without a secret, perhaps by a client
		s.addHole(Hole{From: m.At, To: m.At, Reason: "written by a newer broker: read the journal with that version"})
		return nil
	}
	if h.Records > 0 && m.At.Sub(timeOf(h.Last)) > maxRecordAge || !s.summaries.addBatch(h, m.At, s.addHole) {
		s.Duplicates++
		return nil
	}
	s.ReadRecords += uint64(h.Records)
	if !s.mayContain(h, lines) {
		return nil
	}
	record := -1
	for line := range bytes.Lines(lines) {
		record++
		if m.Sequence == s.From.Sequence && record < s.From.Record {
			continue
		}
		r, err := parseRecord(line)
		if err != nil {
			return fmt.Errorf("message %d of %s: %w", m.Sequence, s.stream, err)
		}
		if !s.matches(r) {
			continue
		}
		if s.Limit > 0 && s.Found == s.Limit {
			s.ContinueAt = Place{m.Sequence, record}
			return errLimit
		}
		s.Found++
		if err := s.emit(Entry{r, h.Instance}); err != nil {
			return err
		}
	}
	return nil
}

// isOwn reports whether a broker wrote a message. Without a secret, any message on the journal's subject counts.
func (s *search) isOwn(m lane.Message) bool {
	if m.Subject != s.cfg.Policy.Names.JournalSubject() || m.Undecodable {
		return false
	}
	note := message.Note{Subject: m.Subject, Body: m.Data, Seal: nats.Header(m.Header).Get(message.HeaderSeal)}
	return s.cfg.Policy.Keys.Trusts(note, message.TrustSealed)
}

// addHole adds a hole to the report if it overlaps the interval of the query.
func (s *search) addHole(h Hole) {
	h.From, h.To = h.From.UTC(), h.To.UTC()
	if !s.Since.IsZero() && h.To.Before(s.Since) || !s.Until.IsZero() && h.From.After(s.Until) {
		return
	}
	if len(s.Holes) == maxHoles {
		s.MoreHoles++
		return
	}
	s.Holes = append(s.Holes, h)
}

// conclude reports the hole before the journal's oldest batch, and the holes after the last batches read. End is the
// time at which the search began or, if it stopped before the last batch, the time of the batch at which it stopped.
func (s *search) conclude(end time.Time) {
	states := s.cfg.States
	if end.Before(s.SearchedAt) {
		states = nil // the states describe a later time
	}
	s.summaries.reportSilent(end, states, s.addHole)
	if !s.Since.IsZero() && s.From.Sequence == 0 && (s.OldestBatch.IsZero() || s.Since.Before(s.OldestBatch)) {
		h := Hole{From: s.Since, To: s.OldestBatch, Reason: "the journal begins later"}
		if s.OldestBatch.IsZero() {
			h.To = s.SearchedAt
		}
		s.Holes = append([]Hole{h}, s.Holes...)
	}
}
