package lease

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
)

// storeTimeout is the timeout of one request.
const storeTimeout = 2 * time.Second

// Subjects are the stream and the subjects that the instances share.
type Subjects struct {
	Stream string // stores the last message of each subject
	All    string // the stream's subject, with a wildcard
	Table  string // subject of the table
	Beat   string // prefix of the counters' subjects; the id of the instance follows
	Call   string // subject of calls, which no stream stores
}

// store is the stream that the instances share. All reads go to its leader: a replica that lags shows old counters.
type store struct {
	conn *nats.Conn
	api  jsapi.Client
	keys *message.Keys // see SharedConfig
	Subjects
}

func (s store) put(ctx context.Context, subject string, body []byte) (uint64, error) {
	return s.publish(ctx, &nats.Msg{Subject: subject, Data: body, Header: nats.Header{}})
}

// swap stores a message if the last message of the subject has the given sequence, or returns errConflict. The sequence
// zero means that the subject must have no message. After any other error, the message may or may not be stored.
func (s store) swap(ctx context.Context, subject string, body []byte, sequence uint64) (uint64, error) {
	header := nats.Header{jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(sequence, 10)}}
	return s.publish(ctx, &nats.Msg{Subject: subject, Data: body, Header: header})
}

func (s store) publish(ctx context.Context, m *nats.Msg) (uint64, error) {
	s.seal(m)
	m.Header.Set(jetstream.ExpectedStreamHeader, s.Stream)
	reply := s.api.Publish(ctx, s.Stream, m)
	switch outcome := reply.Outcome(); {
	case outcome == jsapi.Stored, outcome == jsapi.Duplicate:
		return reply.Ack.Sequence, nil
	case outcome == jsapi.Conflict, outcome == jsapi.Undecided:
		return 0, errConflict
	case outcome.Full():
		return 0, fmt.Errorf("write to %s: %w: %w", s.Stream, errFull, reply.Failure())
	}
	return 0, fmt.Errorf("write to %s: %w", s.Stream, reply.Failure())
}

// lastMessage reads the last message of a subject. Ours reports whether the store trusts the message. If the
// subject has no message, lastMessage returns jetstream.ErrMsgNotFound.
func (s store) lastMessage(ctx context.Context, subject string) (m jsapi.Message, ours bool, err error) {
	if m, err = s.api.Last(ctx, s.Stream, subject); err != nil {
		return m, false, err
	}
	header, err := m.Header()
	if err != nil {
		header = nil // an unreadable header has no seal
	}
	return m, s.trusts(subject, m.Data, header), nil
}

// checkFresh returns errStale if the server that answers has no message with this sequence or a higher one.
func (s store) checkFresh(ctx context.Context, sequence uint64) error {
	_, err := s.api.Next(ctx, s.Stream, sequence, s.All)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return errStale
	}
	return err
}

func (s store) send(body []byte) error {
	m := &nats.Msg{Subject: s.Call, Data: body, Header: nats.Header{}}
	s.seal(m)
	return s.conn.PublishMsg(m)
}

// seal adds the seal to a message, if there is a key. See "Forged messages" in the package documentation.
func (s store) seal(m *nats.Msg) {
	if seal := s.keys.Seal(m.Subject, m.Data); seal != "" {
		m.Header.Set(message.HeaderSeal, seal)
	}
}

// trusts reports whether a message has a valid seal, or needs none: without keys no message needs a seal, and under
// message.TrustLegacy a message of an older broker may need none.
func (s store) trusts(subject string, body []byte, header nats.Header) bool {
	note := message.Note{Subject: subject, Body: body, Seal: header.Get(message.HeaderSeal)}
	return s.keys.Trusts(note, message.TrustLegacy)
}
