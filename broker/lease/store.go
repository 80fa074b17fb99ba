package lease

import (
	"context"
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
	Stream string // stores the last message of Claim
	Claim  string // subject of the claim
	// Calls is the beginning of subjects that no stream stores. On Calls+"all" the instances call each other. On Calls+id
	// each instance has a subscription, which shows that its connection is open.
	Calls string
}

// store is the stream that the instances share. All reads go to its leader: a replica that lags shows old claims.
type store struct {
	conn *nats.Conn
	api  jsapi.Client
	keys *message.Keys // see Config.Keys
	Subjects
}

// swap stores a message if the last message of the subject has the given sequence, or returns errConflict. The sequence
// zero means that the subject must have no message. After any other error, the message may or may not be stored.
func (s store) swap(ctx context.Context, subject string, body []byte, sequence uint64) (uint64, error) {
	m := &nats.Msg{Subject: subject, Data: body, Header: nats.Header{
		jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(sequence, 10)},
		jetstream.ExpectedStreamHeader:      {s.Stream},
	}}
	s.seal(m)
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

// unused reports whether the stream has never stored a message.
func (s store) unused(ctx context.Context) (bool, error) {
	var info struct {
		State struct {
			LastSequence uint64 `json:"last_seq"`
		} `json:"state"`
	}
	err := s.api.Ask(ctx, "STREAM.INFO."+s.Stream, struct{}{}, &info)
	return info.State.LastSequence == 0, err
}

// call returns the subject of calls.
func (s store) call() string { return s.Calls + "all" }

func (s store) send(body []byte) error {
	m := &nats.Msg{Subject: s.call(), Data: body, Header: nats.Header{}}
	s.seal(m)
	return s.conn.PublishMsg(m)
}

// seal adds the seal to a message, if there is a key. See "Forged messages" in the package documentation.
func (s store) seal(m *nats.Msg) {
	message.Put(m.Header, message.HeaderSeal, s.keys.Seal(m.Subject, m.Data))
}

// trusts reports whether a message has a valid seal. Without keys, no message needs one.
func (s store) trusts(subject string, body []byte, header nats.Header) bool {
	note := message.Note{Subject: subject, Body: body, Seal: header.Get(message.HeaderSeal)}
	return s.keys.Trusts(note)
}
