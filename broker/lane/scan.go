package lane

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	scanBatch = 1000
	scanBytes = 4 << 20 // of one batch, unless one message may be larger
	// scanPatience is how long a scan waits for the next message, or to hear that there is none.
	scanPatience = 5 * time.Second
)

// Scan is one pass over what a stream holds, by somebody who looks on: an operator. As with [Reader], no stored message
// can end it, since a message is known by the reply subject that the server gives it. Unlike a Reader it gives up when
// something is lost; who wants the rest scans again.
type Scan struct {
	Conn      *nats.Conn
	JetStream jetstream.JetStream
	APIPrefix string // "$JS.API" unless a domain or an import says otherwise
	Stream    string
	For       string // who scans: begins the consumer's name

	Filters     []string  // subjects, which must not overlap; none for all
	From        uint64    // the first sequence; zero for the beginning
	Since       time.Time // likewise by time, where From is zero
	To          uint64    // the last sequence; zero for the end
	HeadersOnly bool      // bodies stay where they are; Nats-Msg-Size says how large they are
}

// All yields the messages in the order of the stream, until the end or an error. Another batch is asked for when the
// last one was taken, so who takes them may be slow: a minute for a thousand.
func (s Scan) All(ctx context.Context) iter.Seq2[Stored, error] {
	return func(yield func(Stored, error) bool) {
		if err := s.run(ctx, func(m Stored) bool { return yield(m, nil) }); err != nil {
			yield(Stored{}, err)
		}
	}
}

// run ends without an error when take returns false.
func (s Scan) run(ctx context.Context, take func(Stored) bool) error {
	name := s.For + "-" + rand.Text()
	if err := s.create(ctx, name); err != nil {
		return err
	}
	defer func() { // the threshold does it otherwise
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = s.JetStream.DeleteConsumer(ctx, s.Stream, name)
	}()
	b := batches{
		Scan: s, name: name, take: take, api: s.APIPrefix + ".CONSUMER.MSG.NEXT." + s.Stream + "." + name,
		// a batch, and what the server says
		inbox: s.Conn.NewInbox() + rand.Text() + ".", msgs: make(chan *nats.Msg, 2*scanBatch),
	}
	sub, err := s.Conn.ChanSubscribe(b.inbox+"*", b.msgs)
	if err != nil {
		return fmt.Errorf("subscribe to the inbox: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only on a closed connection
	for n := 1; ; n++ {
		if more, err := b.next(ctx, strconv.Itoa(n)); err != nil || !more {
			return err
		}
	}
}

func (s Scan) create(ctx context.Context, name string) error {
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
	ctx, cancel := context.WithTimeout(ctx, scanPatience)
	defer cancel()
	if _, err := s.JetStream.CreateConsumer(ctx, s.Stream, config); err != nil {
		return fmt.Errorf("create a consumer: %w", err)
	}
	return nil
}

// batches are what a scan asks for, one after the other.
type batches struct {
	Scan
	name  string // of the consumer
	take  func(Stored) bool
	api   string
	inbox string // with the final dot; each batch has its own token behind it
	msgs  chan *nats.Msg
	last  uint64 // number of the consumer's last message
}

// next takes one batch; more is false when there is nothing behind it, or nobody wants it.
func (b *batches) next(ctx context.Context, token string) (more bool, err error) {
	body, err := json.Marshal(struct {
		Batch    int  `json:"batch"`
		MaxBytes int  `json:"max_bytes"`
		NoWait   bool `json:"no_wait"`
	}{scanBatch, max(scanBytes, int(b.Conn.MaxPayload())+8<<10), true})
	if err != nil {
		return false, fmt.Errorf("bug: encode the request: %w", err)
	}
	if err := b.Conn.PublishRequest(b.api, b.inbox+token, body); err != nil {
		return false, fmt.Errorf("ask for messages: %w", err)
	}
	silence := time.NewTimer(scanPatience)
	defer silence.Stop()
	for got := 0; got < scanBatch; {
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-silence.C:
			return false, errUnanswered
		case m := <-b.msgs:
			if strings.HasPrefix(m.Subject, b.inbox) { // the server itself, or somebody who knows the inbox
				if over, err := b.over(m, token, got); over {
					return got > 0, err
				}
				continue
			}
			s, ok := parseStored(m, b.Stream, b.name)
			if !ok {
				continue
			}
			if s.consumer != b.last+1 {
				return false, errLost
			}
			b.last = s.consumer
			if got++; b.To > 0 && s.Sequence > b.To || !b.take(s) || b.To > 0 && s.Sequence == b.To {
				return false, nil
			}
			silence.Reset(scanPatience)
		}
	}
	return true, nil
}

// over reports whether the server says that a batch has ended, and whether that is an error after so many messages.
// What it says of an earlier batch does not count.
func (b *batches) over(m *nats.Msg, token string, got int) (bool, error) {
	status := m.Header.Get("Status")
	switch {
	case m.Subject != b.inbox+token, status == "":
		return false, nil
	case status == "404", status == "408", got > 0 && status == "409": // if that was the consumer's end, the next batch tells
		return true, nil
	}
	return true, fmt.Errorf("the server says %s %s", status, m.Header.Get("Description"))
}

var errUnanswered = errors.New("no answer from the consumer")
