package lane

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
)

const (
	scanBatch = 1000
	scanBytes = 4 << 20 // bytes of one batch, unless one message may be larger
	// scanTimeout is the timeout for the next message, or for the report that there is none.
	scanTimeout = 5 * time.Second
	// createTimeout is the timeout of one request to create a consumer. The request is repeated once, because a server
	// that ceases to be the leader of the cluster may not answer.
	createTimeout = scanTimeout / 2
	// retryPause is the pause before a request that no server received is sent again.
	retryPause = 25 * time.Millisecond
)

// Scan reads the messages of a stream once, for an observer such as an operator. No stored message can end a scan,
// because a stored message is recognized by its reply subject, which the server sets. If a message is lost on the wire,
// the scan ends with an error, unlike a [Reader]. The caller may scan again.
type Scan struct {
	Conn      *nats.Conn
	JetStream jetstream.JetStream
	APIPrefix string // prefix of JetStream's API: "$JS.API", or that of a domain or an account's import
	Stream    string
	For       string // the observer's name, with which the consumer's name begins

	Filters     []string  // subjects, which must not overlap; empty for all
	From        uint64    // the first sequence; zero for the beginning
	Since       time.Time // if From is zero: messages stored earlier are left out; zero for the beginning
	To          uint64    // the last sequence; zero for the end
	HeadersOnly bool      // without bodies: see Message.BodySize
	Batch       int       // messages in one batch, for a caller that needs few messages; zero for a thousand
}

// All yields the messages in the order of the stream, until the end or an error. It requests the next batch when the
// caller has taken the whole current batch. If the caller takes more than a minute for a batch, the server removes the
// consumer, and the scan fails.
//
// In a cluster, the consumer may run on another server than the connection's. The answer that the consumer was created
// can arrive before the connection's server knows the consumer's subscription. Then that server answers a request with
// 503. So All repeats such a request, for at most scanTimeout.
func (s Scan) All(ctx context.Context) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		if err := s.run(ctx, func(m Message) bool { return yield(m, nil) }); err != nil {
			yield(Message{}, err)
		}
	}
}

// Count returns the number of messages that All would yield if To were zero. The server of the consumer counts the
// messages without reading them, and leaves out deleted messages. If the server's replica lags, the count lacks the
// last messages.
func (s Scan) Count(ctx context.Context) (uint64, error) {
	name := s.For + "-" + rand.Text()
	info, err := s.create(ctx, name)
	if err != nil {
		return 0, err
	}
	s.remove(ctx, name)
	return info.NumPending, nil
}

// run calls take with each message, until the end, an error, or take returns false.
func (s Scan) run(ctx context.Context, take func(Message) bool) error {
	name := s.For + "-" + rand.Text()
	if _, err := s.create(ctx, name); err != nil {
		return err
	}
	defer s.remove(ctx, name)
	b := batches{
		Scan: s, name: name, take: take, api: s.APIPrefix + ".CONSUMER.MSG.NEXT." + s.Stream + "." + name,
		// room for a batch, and for control messages
		inbox: s.Conn.NewInbox() + rand.Text() + ".", msgs: make(chan *nats.Msg, 2*scanBatch),
	}
	sub, err := s.Conn.ChanSubscribe(b.inbox+"*", b.msgs)
	if err != nil {
		return fmt.Errorf("subscribe to the inbox: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // Unsubscribe fails only on a closed connection
	for n := 1; ; n++ {
		if more, err := b.next(ctx, strconv.Itoa(n)); err != nil || !more {
			return err
		}
	}
}

// remove deletes the consumer. If that fails, the server deletes it after InactiveThreshold.
func (s Scan) remove(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = s.JetStream.DeleteConsumer(ctx, s.Stream, name)
}

func (s Scan) create(ctx context.Context, name string) (*jetstream.ConsumerInfo, error) {
	config := jetstream.ConsumerConfig{
		Name: name, Description: "delaybroker " + s.For, FilterSubjects: s.Filters,
		AckPolicy: jetstream.AckNonePolicy, HeadersOnly: s.HeadersOnly, MemoryStorage: true, Replicas: 1,
		InactiveThreshold: time.Minute,
	}
	switch {
	case s.From > 0:
		config.DeliverPolicy, config.OptStartSeq = jetstream.DeliverByStartSequencePolicy, s.From
	case !s.Since.IsZero():
		config.DeliverPolicy, config.OptStartTime = jetstream.DeliverByStartTimePolicy, &s.Since
	}
	ctx, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	var c jetstream.Consumer
	request := func() (err error) {
		ctx, cancel := context.WithTimeout(ctx, createTimeout)
		defer cancel()
		c, err = s.JetStream.CreateConsumer(ctx, s.Stream, config)
		return err
	}
	err := jsapi.Retry(ctx, request)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil { // the second request has the same consumer name
		err = jsapi.Retry(ctx, request)
	}
	if err != nil {
		return nil, fmt.Errorf("create a consumer: %w", err)
	}
	return c.CachedInfo(), nil
}

// batches sends the requests of a scan, one after the other.
type batches struct {
	Scan
	name  string             // of the consumer
	take  func(Message) bool // reports whether the caller wants more messages
	api   string             // the subject of requests
	inbox string             // with the final dot; each batch appends its own token
	msgs  chan *nats.Msg
	last  uint64 // the consumer's number of its last message
}

// batch returns the number of messages in one request.
func (s Scan) batch() int {
	if s.Batch > 0 {
		return min(s.Batch, scanBatch)
	}
	return scanBatch
}

// next reads one batch. More is false if no message follows the batch, or if the caller wants no more messages.
func (b *batches) next(ctx context.Context, token string) (more bool, err error) {
	room := max(scanBytes, int(b.Conn.MaxPayload())+8<<10)
	request := body{Batch: b.batch(), MaxBytes: room, NoWait: true}
	if err := request.send(b.Conn, b.api, b.inbox+token); err != nil {
		return false, err
	}
	silence := time.NewTimer(scanTimeout)
	defer silence.Stop()
	var retry <-chan time.Time // set while the last request is known to have reached no server
	unanswered := errUnanswered
	for got := 0; got < b.batch() && room > 0; { // without room the batch has ended, and the server does not report it
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-silence.C:
			return false, unanswered
		case <-retry:
			retry = nil
			if err := request.send(b.Conn, b.api, b.inbox+token); err != nil {
				return false, err
			}
		case m := <-b.msgs:
			if strings.HasPrefix(m.Subject, b.inbox) { // a control message, which may be forged
				if m.Subject == b.inbox+token && m.Header.Get("Status") == "503" && got == 0 {
					retry, unanswered = time.After(retryPause), errNobody
					continue
				}
				if ended, err := b.ended(m, token, got); ended {
					return got > 0, err
				}
				continue
			}
			s, ok := parseStored(m, b.inbox, b.Stream, b.name)
			if !ok {
				continue
			}
			if s.consumer != b.last+1 {
				return false, errLost
			}
			b.last = s.consumer
			got++
			room -= m.Size()
			if b.To > 0 && s.Sequence > b.To || !b.take(s) || b.To > 0 && s.Sequence == b.To {
				return false, nil
			}
			silence.Reset(scanTimeout)
		}
	}
	return true, nil
}

// ended reports whether a control message ends the batch, and returns an error if the scan cannot continue. Got is the
// number of messages received in the batch. A control message for an earlier batch does not end the batch.
func (b *batches) ended(m *nats.Msg, token string, got int) (bool, error) {
	status := m.Header.Get("Status")
	switch {
	case m.Subject != b.inbox+token, status == "":
		return false, nil
	case status == "404", status == "408":
		return true, nil
	case got > 0 && status == "409": // if the consumer is gone, the next batch fails
		return true, nil
	}
	return true, fmt.Errorf("the consumer of the scan ended (%s %s); try again", status, m.Header.Get("Description"))
}
