package owners

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/levels/leader"
)

// bucketTimeout is how long one question may take. A stream without a leader says nothing for some seconds.
const bucketTimeout = 2 * time.Second

// Error codes of nats-server's JetStream (server/errors.json).
const (
	codeWrongSequence = 10071
	codeConflict      = 10164 // another write of the same subject is underway
)

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
	conn   *nats.Conn
	leader leader.Leaders
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

// next reads the first message at or above a sequence. It returns jetstream.ErrMsgNotFound when there is none.
func (b bucket) next(ctx context.Context, from uint64) (leader.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	return b.leader.Next(ctx, b.Stream, from, b.All)
}

// remove takes a subject out altogether.
func (b bucket) remove(ctx context.Context, subject string) error {
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	return b.leader.PurgeSubject(ctx, b.Stream, subject)
}
