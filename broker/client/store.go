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
)

// A Store takes what a client publishes: JetStream, or the fake of package clienttest.
type Store interface {
	PublishMsg(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error)
	PublishMsgAsync(m *nats.Msg, opts ...jetstream.PublishOpt) (jetstream.PubAckFuture, error)
	// Stored reads a stored message. It returns ErrGone if there is none at that sequence.
	Stored(ctx context.Context, stream string, sequence uint64) (message.Incoming, error)
	// Last reads the last message of a subject, likewise.
	Last(ctx context.Context, stream, subject string) (message.Incoming, error)
	// Ask asks brokers, and returns the answer of one.
	Ask(ctx context.Context, subject string, body []byte) (*nats.Msg, error)
	// Streams are the streams that listen on a subject, or a part of it.
	Streams(ctx context.Context, subject string) ([]string, error)
	// MaxPayload is the largest message that the server takes, in bytes.
	MaxPayload() int64
	// Refusal is what the server said when it did not let this user publish to a subject, or nil.
	Refusal(subject string) error
	// Now is the time by which requests are checked before they are published.
	Now() time.Time
}

// jetStream is the Store on a server. Publishing asynchronously has a state in the client library: this is our own, so
// that it is bounded by our windows alone.
type jetStream struct {
	jetstream.JetStream

	api string // "$JS.API" unless a domain or an import says otherwise
}

func newJetStream(js jetstream.JetStream, timeout time.Duration) (Store, error) {
	if js == nil || js.Conn() == nil {
		return nil, fmt.Errorf("%w: New needs JetStream on a connection", ErrConfig)
	}
	own := []jetstream.JetStreamOpt{
		jetstream.WithPublishAsyncMaxPending(math.MaxInt32), jetstream.WithPublishAsyncTimeout(timeout),
	}
	var made jetstream.JetStream
	var err error
	s := jetStream{api: "$JS.API"}
	switch o := js.Options(); {
	case o.APIPrefix != "":
		s.api = strings.TrimSuffix(o.APIPrefix, ".")
		made, err = jetstream.NewWithAPIPrefix(js.Conn(), o.APIPrefix, own...)
	case o.Domain != "":
		s.api = "$JS." + o.Domain + ".API"
		made, err = jetstream.NewWithDomain(js.Conn(), o.Domain, own...)
	default:
		made, err = jetstream.New(js.Conn(), own...)
	}
	if err != nil {
		return nil, fmt.Errorf("use JetStream: %w", err)
	}
	s.JetStream = made
	return s, nil
}

func (s jetStream) Now() time.Time    { return time.Now() }
func (s jetStream) MaxPayload() int64 { return s.Conn().MaxPayload() }

// Ask takes the first answer.
func (s jetStream) Ask(ctx context.Context, subject string, body []byte) (*nats.Msg, error) {
	return s.Conn().RequestWithContext(ctx, subject, body)
}

// Streams pages through the names.
func (s jetStream) Streams(ctx context.Context, subject string) ([]string, error) {
	list := s.StreamNames(ctx, jetstream.WithStreamListSubject(subject))
	var all []string
	for name := range list.Name() {
		all = append(all, name)
	}
	return all, list.Err()
}

// Refusal looks at the last error of the connection: a server that refuses a publish answers nothing, and says so apart
// from all answers.
func (s jetStream) Refusal(subject string) error {
	err := s.Conn().LastError()
	if errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), `"`+subject+`"`) {
		return err
	}
	return nil
}

// Stored asks the stream's leader: a replica that lags would not have the message yet.
func (s jetStream) Stored(ctx context.Context, stream string, sequence uint64) (message.Incoming, error) {
	m, err := s.leader().Message(ctx, stream, sequence)
	return read(stream, m, err)
}

func (s jetStream) Last(ctx context.Context, stream, subject string) (message.Incoming, error) {
	m, err := s.leader().Last(ctx, stream, subject)
	if err == nil && m.Subject != subject {
		return message.Incoming{}, fmt.Errorf("%w: a message of %q", ErrForeign, m.Subject)
	}
	return read(stream, m, err)
}

func (s jetStream) leader() jsapi.Client { return jsapi.Client{Conn: s.Conn(), API: s.api} }

// read is a message of a stream, or why there is none in the words of this package.
func read(stream string, m jsapi.Message, err error) (message.Incoming, error) {
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return message.Incoming{}, ErrGone
	case errors.Is(err, jsapi.ErrAnswer):
		return message.Incoming{}, fmt.Errorf("%w: %w", ErrForeign, err)
	case err != nil:
		return message.Incoming{}, err
	}
	in := m.Incoming(stream)
	in.KeysRead = true
	return in, nil
}
