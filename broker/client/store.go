package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/change"
)

// A Store stores the messages of a client. It is JetStream, or the fake of package clienttest.
type Store interface {
	PublishMsg(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error)
	PublishMsgAsync(m *nats.Msg, opts ...jetstream.PublishOpt) (jetstream.PubAckFuture, error)
	// ReadMessage reads a stored message. It returns ErrGone if the stream does not have the message.
	ReadMessage(ctx context.Context, stream string, sequence uint64) (message.Incoming, error)
	// Reader returns a reader of the stream of timers.
	Reader(stream string) change.Reader
	// Ask sends a request to the brokers, and returns the first reply.
	Ask(ctx context.Context, subject string, body []byte) (*nats.Msg, error)
	// Streams returns the names of the streams with a subject that overlaps with the given subject.
	Streams(ctx context.Context, subject string) ([]string, error)
	// MaxPayload returns the size of the largest message that the server accepts, in bytes.
	MaxPayload() int64
	// Refusal returns the server's permission error for a publish to the subject, or nil.
	Refusal(subject string) error
	// Now returns the time for the checks before a publish.
	Now() time.Time
}

// jetStream is the Store on a server. Its own JetStream context does not limit asynchronous publishes. Each Publisher
// has its own window instead.
type jetStream struct {
	jetstream.JetStream

	api string // "$JS.API", or another prefix of the JetStream API for a domain or an import
}

func newJetStream(js jetstream.JetStream, timeout time.Duration) (Store, error) {
	if js == nil || js.Conn() == nil {
		return nil, fmt.Errorf("%w: New needs JetStream on a connection", ErrConfig)
	}
	s := jetStream{api: "$JS.API"}
	switch o := js.Options(); {
	case o.APIPrefix != "":
		s.api = strings.TrimSuffix(o.APIPrefix, ".")
	case o.Domain != "":
		s.api = "$JS." + o.Domain + ".API"
	}
	var err error
	s.JetStream, err = jetstream.NewWithAPIPrefix(js.Conn(), s.api,
		jetstream.WithPublishAsyncMaxPending(math.MaxInt32), jetstream.WithPublishAsyncTimeout(timeout))
	if err != nil {
		return nil, fmt.Errorf("use JetStream: %w", err)
	}
	return s, nil
}

func (s jetStream) Now() time.Time    { return time.Now() }
func (s jetStream) MaxPayload() int64 { return s.Conn().MaxPayload() }

func (s jetStream) Ask(ctx context.Context, subject string, body []byte) (*nats.Msg, error) {
	return s.Conn().RequestWithContext(ctx, subject, body)
}

func (s jetStream) Streams(ctx context.Context, subject string) ([]string, error) {
	list := s.StreamNames(ctx, jetstream.WithStreamListSubject(subject))
	var names []string
	for name := range list.Name() {
		names = append(names, name)
	}
	return names, list.Err()
}

// Refusal checks the last error of the connection. A server that refuses a publish sends no reply, and reports the
// refusal as an error of the connection.
func (s jetStream) Refusal(subject string) error {
	err := s.Conn().LastError()
	if errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), `"`+subject+`"`) {
		return err
	}
	return nil
}

// ReadMessage reads from the stream's leader: a lagging replica might not have the message yet.
func (s jetStream) ReadMessage(ctx context.Context, stream string, sequence uint64) (message.Incoming, error) {
	m, err := s.leaderReads().Message(ctx, stream, sequence)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return message.Incoming{}, ErrGone
	case errors.Is(err, jsapi.ErrWrongAnswer):
		return message.Incoming{}, fmt.Errorf("%w: %w", ErrForeign, err)
	case err != nil:
		return message.Incoming{}, err
	}
	in := m.Incoming(stream)
	in.KeysCurrent = true // a client has no keys, so it does not wait for newer keys
	return in, nil
}

func (s jetStream) Reader(stream string) change.Reader {
	return change.JetStream{API: s.leaderReads(), Stream: stream}
}

func (s jetStream) leaderReads() jsapi.Client { return jsapi.Client{Conn: s.Conn(), API: s.api} }
