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

// StreamTarget is a target that is a stream. The time of an arrival is the time of storage.
type StreamTarget struct {
	Stream  jetstream.Stream
	Subject string // of the arrivals
	// OtherMessages is the number of messages other than arrivals, such as schedules, that the stream stores during the
	// whole run.
	OtherMessages int
}

// Arrived returns the stream's last sequence minus OtherMessages. This is the number of arrivals if the stream has
// stored all OtherMessages, and otherwise a lower number.
func (s StreamTarget) Arrived(ctx context.Context) (int, error) {
	info, err := s.Stream.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the state of the target: %w", err)
	}
	return max(0, int(info.State.LastSeq)-s.OtherMessages), nil
}

// Note reads the stream and adds the arrivals to the ledger.
func (s StreamTarget) Note(ctx context.Context, l *Ledger, turn uint32) error {
	return ReadStream(ctx, s.Stream, s.Subject, func(m jetstream.Msg, stored time.Time) {
		stamp, stamped := ReadStamp(m.Data())
		l.addArrival(turn, stamp, stamped, Arrival{Time: stored, Promised: promisedTime(m.Headers())})
	})
}

// addArrival adds an arrival with the number and the due time of its stamp. A message without a stamp, or of another
// turn, counts as unknown.
func (l *Ledger) addArrival(turn uint32, s Stamp, stamped bool, a Arrival) {
	if !stamped || s.Turn != turn {
		l.tally.Unknown++
		return
	}
	a.Number, a.Due = s.Number, s.Due
	l.Note(a)
}

// promisedTime returns the due time in the header Delay-Due, or zero if the header is missing or invalid.
func promisedTime(h nats.Header) time.Time {
	due, _ := time.Parse(time.RFC3339Nano, h.Get(message.HeaderDue))
	return due
}

// ReadStream reads the messages on a subject of the stream, in order. It ends after the last message that was in the
// stream at the beginning.
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

// subscribers is a target of plain subscribers, one for each subject. The time of an arrival is the time of receipt.
type subscribers struct {
	subs     []*nats.Subscription
	messages chan *nats.Msg
	offset   time.Duration // the server's clock minus the local clock

	listener sync.WaitGroup
	mu       sync.Mutex // guards arrivals
	arrivals []receivedMessage
}

type receivedMessage struct {
	stamp   Stamp
	stamped bool // the payload begins with a Stamp
	arrival Arrival
}

// subscribe subscribes to the subjects of all targets. The client library drops a message if the buffer is full, and
// the run would count the message as lost. So the buffer has space for each message of a turn and for one duplicate of
// each.
func subscribe(nc *nats.Conn, names Names, targets, count int, offset time.Duration) (*subscribers, error) {
	s := &subscribers{messages: make(chan *nats.Msg, 2*count), offset: offset}
	s.listener.Go(s.listen)
	var err error
	for i := 0; i < targets && err == nil; i++ {
		var sub *nats.Subscription
		if sub, err = nc.ChanSubscribe(names.core(i), s.messages); err == nil {
			s.subs = append(s.subs, sub)
		}
	}
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("subscribe to the targets: %w", err)
	}
	return s, nil
}

func (s *subscribers) listen() {
	for m := range s.messages {
		arrival := Arrival{Time: time.Now().Add(s.offset), Received: true, Promised: promisedTime(m.Header)}
		stamp, stamped := ReadStamp(m.Data)
		s.mu.Lock()
		s.arrivals = append(s.arrivals, receivedMessage{stamp, stamped, arrival})
		s.mu.Unlock()
	}
}

// Arrived returns the number of received messages.
func (s *subscribers) Arrived(context.Context) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.arrivals), nil
}

// Note adds the received messages to the ledger.
func (s *subscribers) Note(_ context.Context, l *Ledger, turn uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.arrivals {
		l.addArrival(turn, r.stamp, r.stamped, r.arrival)
	}
	return nil
}

// close unsubscribes from all subjects. The end of the connection does the same, so close ignores errors.
func (s *subscribers) close() {
	for _, sub := range s.subs {
		_ = sub.Unsubscribe()
	}
	close(s.messages)
	s.listener.Wait()
}
