package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
)

// A Target is the destination of a turn's messages.
type Target interface {
	// Arrived returns the number of arrivals, duplicates included.
	Arrived(ctx context.Context) (int, error)
	// Note adds all arrivals to the ledger.
	Note(ctx context.Context, l *Ledger, turn uint32) error
}

// Stored is a stream as a target. The stream has the time of each arrival.
type Stored struct {
	Stream  jetstream.Stream
	Subject string // of the arrivals
	Others  int    // messages of the stream that are not arrivals, once the turn's schedules are stored, too
}

// Arrived returns the number of arrivals: the stream's last sequence without Others. A count by subject would cost the
// server more.
func (s Stored) Arrived(ctx context.Context) (int, error) {
	info, err := s.Stream.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the state of the target: %w", err)
	}
	return max(0, int(info.State.LastSeq)-s.Others), nil
}

// Note reads the stream and adds the arrivals.
func (s Stored) Note(ctx context.Context, l *Ledger, turn uint32) error {
	return ReadStream(ctx, s.Stream, s.Subject, func(m jetstream.Msg, stored time.Time) {
		stamp, ours := ReadStamp(m.Data())
		l.addArrival(turn, stamp, ours, Arrival{At: stored, Promised: promised(m.Headers())})
	})
}

// addArrival adds an arrival to the ledger. A message of another turn counts as unknown.
func (l *Ledger) addArrival(turn uint32, s Stamp, ours bool, a Arrival) {
	if !ours || s.Turn != turn {
		l.tally.Unknown++
		return
	}
	a.Number, a.Due = s.Number, s.Due
	l.Note(a)
}

// promised returns the due time that a broker wrote into the headers, or zero if it is missing.
func promised(h nats.Header) time.Time {
	due, _ := time.Parse(time.RFC3339Nano, h.Get(message.HeaderDue))
	return due
}

// ReadStream calls read for each message that the stream now has on the subject, in order, with its time of storage.
func ReadStream(
	ctx context.Context, s jetstream.Stream, subject string, read func(m jetstream.Msg, stored time.Time),
) error {
	consumer, err := s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{FilterSubjects: []string{subject}})
	if err != nil {
		return fmt.Errorf("read %s: %w", s.CachedInfo().Config.Name, err)
	}
	remaining := consumer.CachedInfo().NumPending
	if remaining == 0 {
		return nil
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(2000))
	if err != nil {
		return fmt.Errorf("read %s: %w", s.CachedInfo().Config.Name, err)
	}
	defer messages.Stop()
	stop := context.AfterFunc(ctx, messages.Stop)
	defer stop()
	for ; remaining > 0; remaining-- {
		m, err := messages.Next()
		if errors.Is(err, jetstream.ErrMsgIteratorClosed) && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var meta *jetstream.MsgMetadata
		if err == nil {
			meta, err = m.Metadata()
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", s.CachedInfo().Config.Name, err)
		}
		read(m, meta.Timestamp)
	}
	return nil
}

// subscribers is a target with one plain subscriber for each subject. A message arrives when a subscriber receives it.
type subscribers struct {
	subs     []*nats.Subscription
	messages chan *nats.Msg
	offset   time.Duration // the server's clock minus the local clock

	listening sync.WaitGroup
	mu        sync.Mutex // guards arrivals
	arrivals  []received
}

type received struct {
	stamp   Stamp
	ours    bool // the payload begins with a Stamp
	arrival Arrival
}

// subscribe subscribes with a buffer for all messages of a turn and a duplicate of each. If the client library dropped
// a message, the run would count it as lost.
func subscribe(nc *nats.Conn, names Names, targets, count int, offset time.Duration) (*subscribers, error) {
	h := &subscribers{messages: make(chan *nats.Msg, 2*count), offset: offset}
	h.listening.Go(h.listen)
	var err error
	for i := 0; i < targets && err == nil; i++ {
		var sub *nats.Subscription
		if sub, err = nc.ChanSubscribe(names.core(i), h.messages); err == nil {
			h.subs = append(h.subs, sub)
		}
	}
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		h.end()
		return nil, fmt.Errorf("subscribe to the targets: %w", err)
	}
	return h, nil
}

func (h *subscribers) listen() {
	for m := range h.messages {
		at := Arrival{At: time.Now().Add(h.offset), Received: true, Promised: promised(m.Header)}
		stamp, ours := ReadStamp(m.Data)
		h.mu.Lock()
		h.arrivals = append(h.arrivals, received{stamp, ours, at})
		h.mu.Unlock()
	}
}

// Arrived returns the number of messages that the subscribers received.
func (h *subscribers) Arrived(context.Context) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.arrivals), nil
}

// Note adds the messages that the subscribers received.
func (h *subscribers) Note(_ context.Context, l *Ledger, turn uint32) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.arrivals {
		l.addArrival(turn, a.stamp, a.ours, a.arrival)
	}
	return nil
}

// end unsubscribes. It may be called more than once.
func (h *subscribers) end() {
	if h.messages == nil {
		return
	}
	for _, sub := range h.subs {
		_ = sub.Unsubscribe() // the end of the connection unsubscribes too
	}
	close(h.messages)
	h.listening.Wait()
	h.messages = nil
}
