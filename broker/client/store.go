package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

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
	in, err := s.get(ctx, stream, map[string]any{"seq": sequence})
	if err == nil && in.Sequence != sequence {
		return in, fmt.Errorf("%w: message %d", ErrForeign, in.Sequence)
	}
	return in, err
}

func (s jetStream) Last(ctx context.Context, stream, subject string) (message.Incoming, error) {
	in, err := s.get(ctx, stream, map[string]any{"last_by_subj": subject})
	if err == nil && in.Subject != subject {
		return in, fmt.Errorf("%w: a message of %q", ErrForeign, in.Subject)
	}
	return in, err
}

// get compares the type of the answer, because an inbox takes whatever somebody has had put there.
func (s jetStream) get(ctx context.Context, stream string, question map[string]any) (message.Incoming, error) {
	in := message.Incoming{Stream: stream, KeysRead: true}
	body, err := json.Marshal(question)
	if err != nil {
		return in, fmt.Errorf("bug: encode a question: %w", err)
	}
	m, err := s.Conn().RequestWithContext(ctx, s.api+".STREAM.MSG.GET."+stream, body)
	if err != nil {
		return in, err
	}
	var answer struct {
		Type    string              `json:"type"`
		Error   *jetstream.APIError `json:"error"`
		Message struct {
			Subject  string    `json:"subject"`
			Sequence uint64    `json:"seq"`
			Header   []byte    `json:"hdrs"`
			Data     []byte    `json:"data"`
			Time     time.Time `json:"time"`
		} `json:"message"`
	}
	err = json.Unmarshal(m.Data, &answer)
	switch {
	case err != nil || answer.Type != "io.nats.jetstream.api.v1.stream_msg_get_response":
		return in, fmt.Errorf("%w: a %.60q to a question for a message", ErrForeign, answer.Type)
	case answer.Error != nil && answer.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return in, ErrGone
	case answer.Error != nil:
		return in, answer.Error
	}
	in.Subject, in.Sequence, in.At, in.Data = answer.Message.Subject, answer.Message.Sequence, answer.Message.Time,
		answer.Message.Data
	if len(answer.Message.Header) > 0 {
		header, err := nats.DecodeHeadersMsg(answer.Message.Header)
		in.Header, in.Undecodable = message.Header(header), err != nil
	}
	return in, nil
}
