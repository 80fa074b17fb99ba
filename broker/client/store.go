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
	// Streams are the streams that listen on a subject, or a part of it.
	Streams(ctx context.Context, subject string) ([]string, error)
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

func (s jetStream) Now() time.Time { return time.Now() }

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

// Stored asks the stream's leader: a replica that lags would not have the message yet. The type of the answer is
// compared because an inbox takes whatever somebody has had put there.
func (s jetStream) Stored(ctx context.Context, stream string, sequence uint64) (message.Incoming, error) {
	in := message.Incoming{Stream: stream, Sequence: sequence, KeysRead: true}
	question := fmt.Appendf(nil, `{"seq":%d}`, sequence)
	m, err := s.Conn().RequestWithContext(ctx, s.api+".STREAM.MSG.GET."+stream, question)
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
	case answer.Message.Sequence != sequence:
		return in, fmt.Errorf("%w: message %d", ErrForeign, answer.Message.Sequence)
	}
	in.Subject, in.At = answer.Message.Subject, answer.Message.Time
	if len(answer.Message.Header) > 0 {
		header, err := nats.DecodeHeadersMsg(answer.Message.Header)
		in.Header, in.Undecodable = message.Header(header), err != nil
	}
	return in, nil
}
