package jsapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
)

// Timeout is the broker's timeout for JetStream's answer to a request or a publish. A longer timeout would gain
// nothing: a cluster without a meta leader drops requests, and the broker repeats an unanswered publish under the same
// id.
const Timeout = 5 * time.Second

// Client sends requests on one connection. If a permission is missing, the server does not answer, and the request
// returns the error of its context when the context ends.
type Client struct {
	Conn *nats.Conn
	API  string // prefix of JetStream's API: "$JS.API", or that of a domain or an account's import

	// Timeout is the maximum time for one call of Ask or Publish. If zero, only the call's context bounds the time.
	Timeout time.Duration
	// Retries makes Ask repeat requests with [Retry].
	Retries bool
}

func (c Client) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.Timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.Timeout)
}

// Message is a stored message.
type Message struct {
	Subject       string    `json:"subject"`
	Sequence      uint64    `json:"seq"`
	EncodedHeader []byte    `json:"hdrs"` // the encoded header; empty if the message has none
	Data          []byte    `json:"data"`
	Time          time.Time `json:"time"`
}

// Header decodes the header as nats.go does for a subscriber.
func (m Message) Header() (nats.Header, error) {
	if len(m.EncodedHeader) == 0 {
		return nil, nil
	}
	return nats.DecodeHeadersMsg(m.EncodedHeader)
}

// Incoming returns the message in the form that package message parses.
func (m Message) Incoming(stream string) message.Incoming {
	header, err := m.Header()
	return message.Incoming{
		Stream: stream, Sequence: m.Sequence, At: m.Time, Subject: m.Subject, Header: message.Header(header),
		Undecodable: err != nil, Data: m.Data,
	}
}

// Message reads the message at a sequence. Message, Next and Last return jetstream.ErrMsgNotFound if the stream has no
// such message.
func (c Client) Message(ctx context.Context, stream string, sequence uint64) (Message, error) {
	m, err := c.get(ctx, stream, map[string]any{"seq": sequence})
	if err == nil && m.Sequence != sequence {
		return Message{}, fmt.Errorf("message %d of %s: got message %d: %w", sequence, stream, m.Sequence, ErrWrongAnswer)
	}
	return m, err
}

// Next reads the first message that has at least the given sequence and a subject that matches the filter.
func (c Client) Next(ctx context.Context, stream string, sequence uint64, filter string) (Message, error) {
	return c.get(ctx, stream, map[string]any{"seq": sequence, "next_by_subj": filter})
}

// Last reads the last message of a subject.
func (c Client) Last(ctx context.Context, stream, subject string) (Message, error) {
	return c.get(ctx, stream, map[string]any{"last_by_subj": subject})
}

func (c Client) get(ctx context.Context, stream string, request any) (Message, error) {
	var answer struct {
		Message Message `json:"message"`
	}
	err := c.Ask(ctx, "STREAM.MSG.GET."+stream, request, &answer)
	return answer.Message, err
}

// Delete removes one message, without overwriting its bytes on disk. It returns jetstream.ErrMsgNotFound if the stream
// does not have the message.
func (c Client) Delete(ctx context.Context, stream string, sequence uint64) error {
	err := c.Ask(ctx, "STREAM.MSG.DELETE."+stream, map[string]any{"seq": sequence, "no_erase": true}, nil)
	// The server has several errors for a message that does not exist.
	if _, refused := errors.AsType[*jetstream.APIError](err); refused {
		if _, readErr := c.Message(ctx, stream, sequence); errors.Is(readErr, jetstream.ErrMsgNotFound) {
			return jetstream.ErrMsgNotFound
		}
	}
	return err
}

// PurgeBelow removes the messages that have a sequence below the given one and a subject that matches the filter; the
// empty filter matches all. It does nothing if the sequence is 0 or 1: for 0, the server would ignore the sequence.
func (c Client) PurgeBelow(ctx context.Context, stream, filter string, below uint64) error {
	if below <= 1 {
		return nil
	}
	return c.Ask(ctx, "STREAM.PURGE."+stream, map[string]any{"filter": filter, "seq": below}, nil)
}

// Ask sends one request of the API and decodes the reply into answer, unless answer is nil. Subject lacks the prefix
// API. If the server refuses the request, the error is jetstream.ErrMsgNotFound, or wraps jetstream.ErrStreamNotFound
// or a *jetstream.APIError.
func (c Client) Ask(ctx context.Context, subject string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("bug: encode %s: %w", subject, err)
	}
	ctx, cancel := c.withTimeout(ctx)
	defer cancel()
	if !c.Retries {
		return c.ask(ctx, subject, body, answer)
	}
	return Retry(ctx, func() error { return c.ask(ctx, subject, body, answer) })
}

func (c Client) ask(ctx context.Context, subject string, body []byte, answer any) error {
	m, err := c.Conn.RequestWithContext(ctx, c.API+"."+subject, body)
	if err != nil {
		return fmt.Errorf("ask %s: %w", subject, err)
	}
	var refusal struct {
		Type  string              `json:"type"`
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &refusal); err != nil {
		return fmt.Errorf("decode the answer to %s: %w: %w", subject, ErrWrongAnswer, err)
	}
	if refusal.Type != answerType(subject) {
		return fmt.Errorf("%s: the answer has the type %.60q: %w", subject, refusal.Type, ErrWrongAnswer)
	}
	switch e := refusal.Error; {
	case e == nil:
	case e.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return jetstream.ErrMsgNotFound
	case e.ErrorCode == jetstream.JSErrCodeStreamNotFound:
		return fmt.Errorf("%s: %w", subject, jetstream.ErrStreamNotFound)
	default:
		return fmt.Errorf("%s: %w", subject, e)
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(m.Data, answer); err != nil {
		return fmt.Errorf("decode the answer to %s: %w", subject, err)
	}
	return nil
}

// ErrWrongAnswer is returned when a received answer belongs to another request. A client that knows the inbox can make
// the server deliver such an answer there. Without this check, the acknowledgement of a publish could pass for the
// answer to a purge.
var ErrWrongAnswer = errors.New("the answer belongs to another request")

// answerType returns the type of the server's answers to requests on a subject. The type is
// "io.nats.jetstream.api.v1.stream_msg_get_response" for "STREAM.MSG.GET.<stream>", and "….stream_list_response" for
// "STREAM.LIST", which names no stream.
func answerType(subject string) string {
	operation := subject
	if subject != "STREAM.LIST" {
		operation = subject[:strings.LastIndexByte(subject, '.')]
	}
	name := strings.ReplaceAll(strings.ToLower(operation), ".", "_")
	return "io.nats.jetstream.api.v1." + name + "_response"
}
