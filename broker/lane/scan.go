package lane

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
)

const (
	scanBatch = 1000
	scanBytes = 4 << 20 // bytes of one batch, or more if one message may be larger
	// scanTimeout is the time for which a scan waits for the next message, or for the report that there is none.
	scanTimeout = 5 * time.Second
	// createTimeout is the timeout of one attempt to create a consumer. After a timeout, the scan tries again, one time: a
	// leader that steps down may not answer.
	createTimeout = scanTimeout / 2
	retryPause    = 25 * time.Millisecond // before the repetition of a request that no server received
)

// Scan reads the messages of a stream in one pass, for an observer such as an operator. No stored message can end a
// scan, because a stored message is recognized by its reply subject, which the server sets. If a message is lost on the
// wire, the scan ends with an error, and the caller may scan again; a [Reader] creates another consumer instead.
type Scan struct {
	Conn      *nats.Conn
	JetStream jetstream.JetStream
	APIPrefix string // prefix of JetStream's API: "$JS.API", or that of a domain or an account's import
	Stream    string
	Observer  string // the beginning of the consumer's name

	Filters     []string  // subjects, which must not overlap; empty for all
	From        uint64    // stream sequence at which the scan begins; zero for the beginning
	Since       time.Time // if From is zero: the scan leaves out messages stored before Since; zero for the beginning
	To          uint64    // stream sequence at which the scan ends, included; zero for the end
	HeadersOnly bool      // without bodies: see Message.BodySize
	Batch       int       // messages in one batch, at most scanBatch; zero means scanBatch
}

// All yields the messages in the order of the stream, until To, the end of the stream or an error. It requests the next
// batch when the caller has taken the whole current batch. If the caller takes more than a minute for a batch, the
// server removes the consumer, and the scan fails.
//
// In a cluster, the consumer may run on another server than the one to which Conn is connected. The consumer's creation
// can be confirmed before the latter server knows the consumer's subscription. Then the latter answers a request with
// 503, and All repeats the request, for at most scanTimeout.
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
	name := s.Observer + "-" + rand.Text()
	info, err := s.create(ctx, name)
	if err != nil {
		return 0, err
	}
	s.remove(ctx, name)
	return info.NumPending, nil
}

// run calls take with each message until the end, until an error, or until take returns false.
func (s Scan) run(ctx context.Context, take func(Message) bool) error {
	name := s.Observer + "-" + rand.Text()
	if _, err := s.create(ctx, name); err != nil {
		return err
	}
	defer s.remove(ctx, name)
	b := batches{
		Scan: s, name: name, take: take, subject: s.APIPrefix + ".CONSUMER.MSG.NEXT." + s.Stream + "." + name,
		inbox: s.Conn.NewInbox() + rand.Text() + ".",
		msgs:  make(chan *nats.Msg, 2*scanBatch), // a batch, and control messages
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

// remove deletes the consumer. If the request fails, the server deletes the consumer after InactiveThreshold.
func (s Scan) remove(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = s.JetStream.DeleteConsumer(ctx, s.Stream, name)
}

func (s Scan) create(ctx context.Context, name string) (*jetstream.ConsumerInfo, error) {
	config := jetstream.ConsumerConfig{
		Name: name, Description: "delaybroker " + s.Observer, FilterSubjects: s.Filters,
		AckPolicy: jetstream.AckNonePolicy, HeadersOnly: s.HeadersOnly, MemoryStorage: true,
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
		c, err = createConsumer(ctx, s.JetStream, s.Stream, config)
		return err
	}
	err := jsapi.Retry(ctx, request)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil { // safe: the consumer has the same name
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
	name            string             // of the consumer
	take            func(Message) bool // reports whether the caller wants more messages
	subject         string             // of the requests
	inbox           string             // with the final dot; each batch appends its own token
	msgs            chan *nats.Msg
	lastConsumerSeq uint64 // consumer sequence of the last message read
}

// next reads one batch. Token distinguishes the batches in the inbox. More is false if the batch is empty, if it has
// reached To, or if the caller wants no more messages.
func (b *batches) next(ctx context.Context, token string) (more bool, err error) {
	bytesLeft := max(scanBytes, int(b.Conn.MaxPayload())+8<<10)
	batch := min(cmp.Or(b.Batch, scanBatch), scanBatch)
	request := body{Batch: batch, MaxBytes: bytesLeft, NoWait: true}
	if err := request.send(b.Conn, b.subject, b.inbox+token); err != nil {
		return false, err
	}
	silence := time.NewTimer(scanTimeout)
	defer silence.Stop()
	var retry <-chan time.Time // nil unless the last request has reached no server
	timeoutErr := errUnanswered
	for got := 0; got < batch && bytesLeft > 0; { // the server sends no report when the bytes are used up
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-silence.C:
			return false, timeoutErr
		case <-retry:
			retry = nil
			if err := request.send(b.Conn, b.subject, b.inbox+token); err != nil {
				return false, err
			}
		case m := <-b.msgs:
			if m.Subject == b.inbox+token { // a control message, which may be forged
				status, description := m.Header.Get("Status"), m.Header.Get("Description")
				switch limit, limited := batchLimit(description); {
				case status == "503" && got == 0:
					retry, timeoutErr = time.After(retryPause), errNoServer
				case limited && limit < batch && got == 0: // also for the next batches
					batch, b.Batch, request.Batch = limit, limit, limit
					if err := request.send(b.Conn, b.subject, b.inbox+token); err != nil {
						return false, err
					}
				case status == "":
				case status == "404", status == "408",
					got > 0 && status == "409": // if the consumer is gone, the next batch fails
					return got > 0, nil
				default:
					return false, fmt.Errorf("the consumer of the scan ended (%s %s); try again", status, description)
				}
				continue
			}
			s, ok := parseStored(m, b.inbox, b.Stream, b.name)
			if !ok { // also a control message for an earlier batch, which ends nothing
				continue
			}
			if s.consumerSeq != b.lastConsumerSeq+1 {
				return false, errLost
			}
			b.lastConsumerSeq = s.consumerSeq
			got++
			bytesLeft -= m.Size()
			if b.To > 0 && s.Sequence > b.To || !b.take(s) || b.To > 0 && s.Sequence == b.To {
				return false, nil
			}
			silence.Reset(scanTimeout)
		}
	}
	return true, nil
}
