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

// A target is where the messages of a turn arrive.
type target interface {
	// arrived is how many have, copies included.
	arrived(ctx context.Context) (int, error)
	// note adds all of them to the ledger.
	note(ctx context.Context, l *Ledger, turn uint32) error
}

// A stored target is a stream, which knows itself when a message came.
type stored struct {
	stream  jetstream.Stream
	subject string // of the arrivals in it
	others  int    // messages that were published to it otherwise
}

func (s *stored) arrived(ctx context.Context) (int, error) {
	info, err := s.stream.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("look at the target: %w", err)
	}
	// Nothing else is stored there, so its last sequence counts. To have it count by subject would cost it more.
	return max(0, int(info.State.LastSeq)-s.others), nil
}

func (s *stored) note(ctx context.Context, l *Ledger, turn uint32) error {
	return ReadStream(ctx, s.stream, s.subject, func(m jetstream.Msg, stored time.Time) {
		stamp, ours := readStamp(m.Data())
		l.hear(turn, stamp, ours, Arrival{At: stored, Promised: promised(m.Headers())})
	})
}

// hear counts a message of a target.
func (l *Ledger) hear(turn uint32, s stamp, ours bool, a Arrival) {
	if !ours || s.turn != turn {
		l.Foreign()
		return
	}
	a.Number, a.Due = s.number, s.due
	l.Note(a)
}

// promised is zero where no broker says when it is due.
func promised(h nats.Header) time.Time {
	due, _ := time.Parse(time.RFC3339Nano, h.Get(message.HeaderDue))
	return due
}

// ReadStream reads what a stream has on a subject, in order, with the time at which each message was stored.
func ReadStream(
	ctx context.Context, s jetstream.Stream, subject string, read func(m jetstream.Msg, stored time.Time),
) error {
	consumer, err := s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{FilterSubjects: []string{subject}})
	if err != nil {
		return fmt.Errorf("read %s: %w", s.CachedInfo().Config.Name, err)
	}
	left := consumer.CachedInfo().NumPending
	if left == 0 {
		return nil
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(2000))
	if err != nil {
		return fmt.Errorf("read %s: %w", s.CachedInfo().Config.Name, err)
	}
	defer messages.Stop()
	stop := context.AfterFunc(ctx, messages.Stop)
	defer stop()
	for ; left > 0; left-- {
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

// A heard target is plain subscribers, one for each subject. A message arrives when they get it.
type heard struct {
	subs     []*nats.Subscription
	messages chan *nats.Msg
	offset   time.Duration // from our clock to the server's

	listening sync.WaitGroup
	mu        sync.Mutex // guards arrivals
	arrivals  []heardMessage
}

type heardMessage struct {
	stamp   stamp
	ours    bool // it has a stamp
	arrival Arrival
}

// subscribe has room for all messages of a turn and their copies: what a slow subscriber loses would be our loss.
func subscribe(nc *nats.Conn, names Names, targets, count int, offset time.Duration) (*heard, error) {
	h := &heard{messages: make(chan *nats.Msg, 2*count), offset: offset}
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

func (h *heard) listen() {
	for m := range h.messages {
		at := Arrival{At: time.Now().Add(h.offset), Received: true, Promised: promised(m.Header)}
		stamp, ours := readStamp(m.Data)
		h.mu.Lock()
		h.arrivals = append(h.arrivals, heardMessage{stamp, ours, at})
		h.mu.Unlock()
	}
}

func (h *heard) arrived(context.Context) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.arrivals), nil
}

func (h *heard) note(_ context.Context, l *Ledger, turn uint32) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.arrivals {
		l.hear(turn, a.stamp, a.ours, a.arrival)
	}
	return nil
}

// end may be called more than once.
func (h *heard) end() {
	if h.messages == nil {
		return
	}
	for _, sub := range h.subs {
		_ = sub.Unsubscribe() // it ends with its connection, too
	}
	close(h.messages)
	h.listening.Wait()
	h.messages = nil
}
