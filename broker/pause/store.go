package pause

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
)

const (
	// maxRecords is the maximum number of messages that Read reads on the record's subject. Brokers leave one message
	// there, or two after a crash. Any further messages are foreign.
	maxRecords = 10_000
	// maxForeign is the maximum number of foreign messages that tidy leaves. They may belong to a broker with another
	// secret.
	maxForeign = 64
)

// Store reads and writes the record, in the stream of the paused messages. It reads from the stream's leader only.
type Store struct {
	Conn  *nats.Conn
	API   string // prefix of the JetStream API: "$JS.API", or the prefix of a domain or of an account's import
	Names message.Names
	Keys  *message.Keys
}

func (s Store) api() jsapi.Client { return jsapi.Client{Conn: s.Conn, API: s.API} }

// readResult is the record as it was read.
type readResult struct {
	List         *List          // nil if there is no record that can be opened
	Sequence     uint64         // the sequence of the record
	LastSequence uint64         // the sequence of the last message on the subject, by any writer
	Key          message.KeyUse // which key sealed the record
	// UnopenedList has the pauses of the lists under unknown keys, if there is no list that can be opened. Clients may
	// have forged them. It is nil without such lists.
	UnopenedList *List

	foreignSequences []uint64 // sequences of the messages after the record; none of them is a newer record
	hasEarlier       bool     // there are messages before the record
}

// Record is a list with its seal, as it is stored and announced.
type Record struct {
	Body []byte `json:"body"`
	Seal string `json:"seal"`
}

// Seal returns the record of a list.
func (s Store) Seal(l *List) Record {
	body := l.encode()
	return Record{Body: body, Seal: s.Keys.Seal(s.Names.PausesRecord(), body)}
}

// Open returns the list in a record. It returns nil if the record is malformed, or if no broker or operator with the
// secret wrote it. A record without a seal is trusted only if this broker has no secrets.
func (s Store) Open(r Record) *List {
	note := message.Note{Subject: s.Names.PausesRecord(), Body: r.Body, Seal: r.Seal}
	if !s.Keys.Trusts(note) {
		return nil
	}
	l, _ := parse(r.Body) // nil after an error
	return l
}

// unopened returns the list in a record under an unknown key; nil for any other record.
func (s Store) unopened(r Record) *List {
	if s.Keys.UseOf(r.Seal) != message.OtherKey {
		return nil
	}
	l, _ := parse(r.Body) // nil after an error
	return l
}

// Read returns the newest trusted record. It skips old records and foreign messages on the subject. It returns
// jetstream.ErrStreamNotFound if there is no stream.
func (s Store) Read(ctx context.Context) (readResult, error) {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	var result readResult
	api := s.api()
	api.Retries = true
	for range maxRecords {
		m, err := api.Next(ctx, s.Names.PausedStream(), result.LastSequence+1, s.Names.PausesRecord())
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return result, nil
		}
		if err != nil {
			return result, fmt.Errorf("read the list of pauses: %w", err)
		}
		result.LastSequence = m.Sequence
		header, _ := m.Header() // nil after an error
		r := Record{m.Data, header.Get(message.HeaderSeal)}
		switch l := s.Open(r); {
		case l == nil, result.List != nil && l.Version <= result.List.Version:
			result.foreignSequences = append(result.foreignSequences, m.Sequence)
			if result.List == nil && !message.IsServerAnswer(message.Header(header)) {
				result.UnopenedList = result.UnopenedList.merge(s.unopened(r))
			}
		default:
			result.hasEarlier = result.hasEarlier || result.List != nil || len(result.foreignSequences) > 0
			result.List, result.Sequence = l.storedAt(m.Time), m.Sequence
			result.foreignSequences, result.UnopenedList = nil, nil
			result.Key = s.Keys.UseOf(r.Seal)
		}
	}
	return result, nil
}

// Write stores a list, and returns its sequence. It returns ErrConflict if the subject has got another message since
// Read returned the result. After any other error, the list may or may not be stored.
func (s Store) Write(ctx context.Context, l *List, result readResult) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	r, stream := s.Seal(l), s.Names.PausedStream()
	m := &nats.Msg{Subject: s.Names.PausesRecord(), Data: r.Body, Header: nats.Header{
		jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(result.LastSequence, 10)},
		jetstream.ExpectedStreamHeader:      {stream},
	}}
	message.Put(m.Header, message.HeaderSeal, r.Seal)
	reply := s.api().Publish(ctx, stream, m)
	switch reply.Outcome() {
	case jsapi.Stored, jsapi.Duplicate:
		return reply.Ack.Sequence, nil
	case jsapi.Conflict, jsapi.Undecided:
		return 0, ErrConflict
	case jsapi.Unavailable:
		return 0, fmt.Errorf("write the list of pauses: %w", jetstream.ErrStreamNotFound)
	}
	return 0, fmt.Errorf("stream %s did not store the list of pauses: %w", stream, reply.Failure())
}

// Announce sends a list to all instances, on the subject of status requests. Instances that support pauses apply the
// list, and all instances answer. So an operator needs no other permissions, and learns of brokers that do not support
// pauses.
func (s Store) Announce(l *List, reply string) error {
	r := s.Seal(l)
	m := &nats.Msg{Subject: s.Names.StatusCall(), Reply: reply, Data: r.Body, Header: nats.Header{}}
	message.Put(m.Header, message.HeaderSeal, r.Seal)
	return s.Conn.PublishMsg(m)
}

// ParseAnnouncement returns the record in an announcement.
func ParseAnnouncement(m *nats.Msg) Record {
	return Record{Body: m.Data, Seal: m.Header.Get(message.HeaderSeal)}
}

// untidy reports whether tidy should remove messages from the subject.
func (s readResult) untidy() bool { return s.hasEarlier || len(s.foreignSequences) > maxForeign }

// tidy removes the earlier messages that Read found on the subject, and the later ones if they are more than
// maxForeign. The record itself stays.
func (s Store) tidy(ctx context.Context, result readResult) error {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	api := s.api()
	if result.hasEarlier {
		if err := api.PurgeBelow(ctx, s.Names.PausedStream(), s.Names.PausesRecord(), result.Sequence); err != nil {
			return err
		}
	}
	if len(result.foreignSequences) <= maxForeign {
		return nil
	}
	for _, sequence := range result.foreignSequences {
		err := api.Delete(ctx, s.Names.PausedStream(), sequence)
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return err
		}
	}
	return nil
}
