package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
)

// bucketTimeout is how long one question may take. A stream without a leader says nothing for some seconds.
const bucketTimeout = 2 * time.Second

// Error codes of nats-server's JetStream (server/errors.json).
const (
	codeWrongSequence = 10071
	codeConflict      = 10164 // another write of the same subject is underway
)

// noRoom are the refusals of a leader that has no room: of the account, the server, its memory, its disk, the stream.
var noRoom = []jetstream.ErrorCode{10002, 10023, 10028, 10047, 10077}

// isFull reports whether a leader refused a write for want of room. It refuses everybody else's too.
func isFull(err error) bool {
	refusal := (*jetstream.APIError)(nil)
	return errors.As(err, &refusal) && slices.Contains(noRoom, refusal.ErrorCode)
}

// sealHeader carries the seal of what we put.
const sealHeader = "Delay-Seal"

// Sealer proves that a message was written by one of us. A client cannot publish where the instances meet, but it can
// have JetStream's acknowledgement of a message of its own put there.
type Sealer interface {
	// Seal is what proves that one of us put the body on the subject.
	Seal(subject string, body []byte) string
	// Sealed reports whether a seal is what Seal gives, or gave with an earlier secret that still counts.
	Sealed(subject string, body []byte, seal string) bool
}

// errConflict is returned when what was to be replaced is not there any more.
var errConflict = errors.New("another instance was faster")

// Subjects says where the instances of one broker meet.
type Subjects struct {
	Stream string // keeps the last message of each subject below Table and Beat
	All    string // what it listens on
	Table  string // of the one message with the table
	Beat   string // of the counters: followed by the instance
	Call   string // no stream listens here: a word to all instances that there is something to see
}

// bucket is the stream that the instances meet in. Everything is read from its leader: a replica that lags shows a
// counter that stands still.
type bucket struct {
	conn *nats.Conn
	api  jsapi.Client
	seal Sealer // nil believes everything, and seals nothing
	Subjects
}

// put stores a message and returns its sequence.
func (b bucket) put(ctx context.Context, subject string, body []byte) (uint64, error) {
	return b.publish(ctx, &nats.Msg{Subject: subject, Data: body, Header: nats.Header{}})
}

// swap replaces the last message of a subject if that has the sequence given, zero if there is none. It returns
// errConflict when it is another one by now. After any other error nobody knows.
func (b bucket) swap(ctx context.Context, subject string, body []byte, last uint64) (uint64, error) {
	header := nats.Header{jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(last, 10)}}
	return b.publish(ctx, &nats.Msg{Subject: subject, Data: body, Header: header})
}

func (b bucket) publish(ctx context.Context, m *nats.Msg) (uint64, error) {
	b.sign(m)
	m.Header.Set(jetstream.ExpectedStreamHeader, b.Stream)
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	answer, err := b.conn.RequestMsgWithContext(ctx, m)
	if err != nil {
		return 0, fmt.Errorf("write into %s: %w", b.Stream, err)
	}
	var ack struct {
		Seq   uint64              `json:"seq"`
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &ack); err != nil {
		return 0, fmt.Errorf("write into %s: decode the answer: %w", b.Stream, err)
	}
	switch {
	case ack.Error == nil:
		return ack.Seq, nil
	case ack.Error.ErrorCode == codeWrongSequence, ack.Error.ErrorCode == codeConflict:
		return 0, errConflict
	}
	return 0, fmt.Errorf("write into %s: %w", b.Stream, ack.Error)
}

// last reads the last message of a subject, and says whether one of us wrote it. It returns jetstream.ErrMsgNotFound
// when there is none.
func (b bucket) last(ctx context.Context, subject string) (m jsapi.Message, ours bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	if m, err = b.api.Last(ctx, b.Stream, subject); err != nil {
		return m, false, err
	}
	header, err := m.Header()
	if err != nil {
		header = nil // what cannot be read is not ours
	}
	return m, b.sealed(subject, m.Data, header), nil
}

// shows returns errStale when whoever answers does not have what was stored at a sequence, or behind it.
func (b bucket) shows(ctx context.Context, sequence uint64) error {
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	_, err := b.api.Next(ctx, b.Stream, sequence, b.All)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return errStale
	}
	return err
}

// exists returns jetstream.ErrStreamNotFound when there is no bucket.
func (b bucket) exists(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	_, err := b.api.Last(ctx, b.Stream, b.Table)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	return err
}

// remove takes a subject out altogether.
func (b bucket) remove(ctx context.Context, subject string) error {
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	return b.api.PurgeSubject(ctx, b.Stream, subject)
}

// sweep takes out all counters that were stored below a sequence.
func (b bucket) sweep(ctx context.Context, below uint64) error {
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	return b.api.PurgeBelow(ctx, b.Stream, b.Beat+"*", below)
}

// say puts a message on a plain subject.
func (b bucket) say(body []byte) error {
	m := &nats.Msg{Subject: b.Call, Data: body, Header: nats.Header{}}
	b.sign(m)
	return b.conn.PublishMsg(m)
}

func (b bucket) sign(m *nats.Msg) {
	if b.seal != nil {
		m.Header.Set(sealHeader, b.seal.Seal(m.Subject, m.Data))
	}
}

func (b bucket) sealed(subject string, body []byte, header nats.Header) bool {
	return b.seal == nil || b.seal.Sealed(subject, body, header.Get(sealHeader))
}
