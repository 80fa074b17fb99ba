package jsapi

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
)

// Any replica of the stream answers a direct get, even a replica that lags. A direct get costs the server a third as
// much as a request to the leader, and can read many messages. The stream must have AllowDirect.

// MaxDirect is the maximum number of subjects in one request of LastOfEach. The server's maximum is 1024.
const MaxDirect = 256

// The server adds these headers to each message in the answer to a direct get. If a client has stored headers with
// these names, each name has several values, and the last value is the server's.
const (
	directStream   = "Nats-Stream"
	directSubject  = "Nats-Subject"
	directSequence = "Nats-Sequence"
	directTime     = "Nats-Time-Stamp"
)

// LastOfEach reads the last message of each subject from a replica. It returns nothing for a subject without a message.
// The answer ends with the message that makes it larger than maxBytes. After an error, LastOfEach also returns the
// messages that it has read.
func (c Client) LastOfEach(
	ctx context.Context, stream string, subjects []string, maxBytes int,
) (found []message.Incoming, err error) {
	err = c.direct(ctx, stream, map[string]any{"multi_last": subjects, "max_bytes": maxBytes},
		func(in message.Incoming) (more bool) {
			found = append(found, in)
			return true
		})
	return found, err
}

// FirstOf reads, from a replica, the first message of a subject that has at least the given sequence. It returns
// jetstream.ErrMsgNotFound if there is no such message.
func (c Client) FirstOf(
	ctx context.Context, stream, subject string, sequence uint64,
) (first message.Incoming, err error) {
	err = c.direct(ctx, stream, map[string]any{"seq": sequence, "next_by_subj": subject},
		func(in message.Incoming) (more bool) {
			first = in
			return false
		})
	if err == nil && first.Subject != subject {
		err = jetstream.ErrMsgNotFound
	}
	return first, err
}

// direct sends a direct get, and passes the messages of the answer to take until take returns false or the server
// reports the end. The inbox is secret, so that no client can make the server deliver other messages there. The
// messages arrive in a channel, because nats.go's NextMsg would return an error for an empty stored message with the
// header "Status: 503".
func (c Client) direct(
	ctx context.Context, stream string, request any, take func(message.Incoming) (more bool),
) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("bug: encode a direct get: %w", err)
	}
	inbox := c.Conn.NewInbox() + "." + rand.Text()
	answers := make(chan *nats.Msg, MaxDirect+1) // room for all messages and the report of the end; never closed
	sub, err := c.Conn.ChanSubscribe(inbox, answers)
	if err != nil {
		return fmt.Errorf("subscribe to the inbox: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only on a closed connection
	subject := c.API + ".DIRECT.GET." + stream
	if err := c.Conn.PublishRequest(subject, inbox, body); err != nil {
		return fmt.Errorf("ask %s: %w", subject, err)
	}
	for {
		var m *nats.Msg
		select {
		case <-ctx.Done():
			return fmt.Errorf("ask %s: %w", subject, ctx.Err())
		case m = <-answers:
		}
		in, isStored := parseDirect(m, stream)
		switch status := m.Header.Get("Status"); {
		case isStored && !take(in):
			return nil
		case isStored:
		case status == "204", status == "404":
			return nil
		case status == "":
			return fmt.Errorf("%s: neither a message nor a status: %w", subject, ErrWrongAnswer)
		case status == "503":
			return fmt.Errorf("%s: %w", subject, nats.ErrNoResponders)
		default:
			code, _ := strconv.Atoi(status) // zero if the status is no number
			return fmt.Errorf("%s: %w", subject, &jetstream.APIError{Code: code, Description: m.Header.Get("Description")})
		}
	}
}

// parseDirect parses a stored message in the answer to a direct get. Ok is false for the server's own messages, such as
// the report of the end: only stored messages have the headers that the server adds.
func parseDirect(m *nats.Msg, stream string) (in message.Incoming, ok bool) {
	lastValue := func(name string) string {
		values := m.Header[name]
		if len(values) == 0 {
			return ""
		}
		return values[len(values)-1]
	}
	sequence, err := strconv.ParseUint(lastValue(directSequence), 10, 64)
	timestamp, err2 := time.Parse(time.RFC3339Nano, lastValue(directTime))
	if err != nil || err2 != nil || lastValue(directStream) != stream || lastValue(directSubject) == "" {
		return message.Incoming{}, false
	}
	in = message.Incoming{
		Stream: stream, Sequence: sequence, At: timestamp, Subject: lastValue(directSubject),
		Header: message.Header(m.Header), Data: m.Data,
	}
	for _, name := range []string{
		directStream, directSubject, directSequence, directTime, "Nats-Num-Pending", "Nats-Last-Sequence",
	} {
		switch values := in.Header[name]; {
		case len(values) > 1:
			in.Header[name] = values[:len(values)-1]
		case values != nil:
			delete(in.Header, name)
		}
	}
	return in, true
}
