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

// Journal reads the stream of records.
type Journal struct {
	Scan   lane.Scan      // reads a stream that Search names; see [lane.Scan]
	Policy message.Policy // has the name of the stream, and the keys that verify seals
}

// Entry is a record in the journal.
type Entry struct {
	Record
	Instance string // the instance that wrote the record
}

// errLimit ends a search at its limit.
var errLimit = errors.New("limit reached")

// Search calls emit for each selected record, in the order in which the records were stored. It ends at the first error
// of emit, and returns this error. If there is no stream, Search returns ErrNoJournal.
func (j Journal) Search(ctx context.Context, q Query, emit func(Entry) error) (Report, error) {
	info, err := j.info(ctx)
	if err != nil {
		return Report{}, err
	}
	s := &search{
		Journal: j, Query: q, emit: emit, starts: make(starts),
		Report: Report{MaxAge: info.Config.MaxAge, SearchedAt: info.TimeStamp.UTC(), Bytes: info.State.Bytes},
	}
	s.BeginsLater = q.From.Sequence > 0 && q.From.Sequence < info.State.FirstSeq
	if info.State.Msgs == 0 {
		s.BeginsLater = s.BeginsLater || !q.Since.IsZero()
		return s.Report, nil
	}
	s.OldestBatch = info.State.FirstTime.UTC()
	scan := j.Scan
	scan.Stream, scan.Observer, scan.From, scan.To = j.stream(), "journal", q.From.Sequence, info.State.LastSeq
	if !q.Since.IsZero() && q.From.Sequence == 0 {
		scan.Since = q.Since.Add(-skew)
		s.BeginsLater = q.Since.Before(s.OldestBatch)
	}
	batches := uint64(0)
	for m, err := range scan.All(ctx) {
		if err != nil {
			return s.Report, fmt.Errorf("read %s: %w", scan.Stream, err)
		}
		if !q.Until.IsZero() && m.At.After(q.Until.Add(maxRecordAge)) {
			break
		}
		if batches++; q.Progress != nil {
			q.Progress(s.ReadRecords, s.ReadRecords+s.ReadRecords/batches*m.Pending)
		}
		if err := s.process(m); errors.Is(err, errLimit) {
			return s.Report, nil
		} else if err != nil {
			return s.Report, err
		}
	}
	return s.Report, nil
}

// Now returns the time by the clock of the stream's leader.
func (j Journal) Now(ctx context.Context) (time.Time, error) {
	info, err := j.info(ctx)
	if err != nil {
		return time.Time{}, err
	}
	return info.TimeStamp, nil
}

func (j Journal) stream() string { return j.Policy.Names.JournalStream() }

func (j Journal) info(ctx context.Context) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	s, err := j.Scan.JetStream.Stream(ctx, j.stream())
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, ErrNoJournal
	case err != nil:
		return nil, fmt.Errorf("state of %s: %w", j.stream(), err)
	}
	return s.CachedInfo(), nil
}

// search is one read of the journal.
type search struct {
	Journal
	Query
	Report
	emit   func(Entry) error
	starts starts
}

// process emits the selected records of a stored batch.
func (s *search) process(m lane.Message) error {
	h, lines, ok := parseHead(m.Data)
	if !ok || !s.isOwn(m) {
		s.UnprovenMessages++
		return nil
	}
	if s.starts.isCopy(h, m.At) {
		s.Duplicates++
		return nil
	}
	if h.Lost > 0 {
		s.Dropped, s.DroppedUntil = s.Dropped+h.Lost, m.At.UTC()
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
			return fmt.Errorf("message %d of %s: %w", m.Sequence, s.stream(), err)
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
	if m.Subject != s.Policy.Names.JournalSubject() || m.Undecodable {
		return false
	}
	note := message.Note{Subject: m.Subject, Body: m.Data, Seal: nats.Header(m.Header).Get(message.HeaderSeal)}
	return s.Policy.Keys.Trusts(note)
}
