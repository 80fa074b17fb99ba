package bench

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
)

const (
	// readAhead is the maximum number of messages in the pipeline's queue, as in the memory of a broker's lane.
	readAhead = 32 << 10
	// commitInterval is the interval between two purges of delivered messages, as in a broker.
	commitInterval = 100 * time.Millisecond
)

// A pipeline is the bare pipeline: see the package documentation. A refused publish ends the pipeline.
type pipeline struct {
	Prefix string        `json:"prefix"`
	Core   bool          `json:"core,omitempty"`   // deliver to plain subscribers, which do not answer
	Offset time.Duration `json:"offset,omitempty"` // lower bound of the server's clock minus the local clock

	names      Names
	conn       *nats.Conn
	inbox      string // subject of the answers
	source     jetstream.Stream
	unanswered chan uint64   // source sequences of the unanswered publishes, in order; the capacity bounds their number
	delivered  atomic.Uint64 // all messages up to this source sequence have arrived
}

func (p *pipeline) run(ctx context.Context, dialer Dialer, ready func() error) (err error) {
	if p.names, err = NewNames(p.Prefix); err != nil {
		return err
	}
	readConn, js, err := dialer.jetStream()
	if err != nil {
		return err
	}
	defer readConn.Close()
	if p.conn, err = dialer.Connect(); err != nil {
		return err
	}
	defer p.conn.Close()
	if p.source, err = js.Stream(ctx, p.names.sourceStream()); err != nil {
		return fmt.Errorf("find the source: %w", err)
	}
	ctx, fail := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer fail(nil)
	if err := p.listen(fail); err != nil {
		return fmt.Errorf("subscribe to the answers: %w", err)
	}
	queue := make(chan jetstream.Msg, readAhead)
	reader, err := p.read(ctx, queue)
	if err != nil {
		return fmt.Errorf("read the source: %w", err)
	}
	defer reader.Stop()
	running.Go(func() { p.commit(ctx, fail) })
	if err := ready(); err != nil {
		return err
	}
	if err := p.forward(ctx, queue); err != nil {
		return err
	}
	if cause := context.Cause(ctx); cause != context.Canceled {
		return cause
	}
	return nil
}

// listen subscribes to the answers, which arrive in the order of the publishes.
func (p *pipeline) listen(fail func(error)) error {
	p.unanswered, p.inbox = make(chan uint64, maxOutstanding), p.conn.NewInbox()
	sub, err := p.conn.Subscribe(p.inbox, func(m *nats.Msg) {
		if _, err := parseAck(m); err != nil {
			fail(fmt.Errorf("%w: %w", ErrRefused, err))
			return
		}
		p.delivered.Store(<-p.unanswered)
	})
	if err != nil {
		return err
	}
	return sub.SetPendingLimits(-1, -1)
}

// read fills the queue until ctx ends or the caller stops the returned consumer.
func (p *pipeline) read(ctx context.Context, queue chan<- jetstream.Msg) (jetstream.ConsumeContext, error) {
	consumer, err := p.source.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return nil, err
	}
	return consumer.Consume(func(m jetstream.Msg) {
		select {
		case queue <- m:
		case <-ctx.Done():
		}
	}, jetstream.PullMaxMessages(readAhead/8))
}

// forward publishes the messages in the queue, each when it is due, until ctx ends.
func (p *pipeline) forward(ctx context.Context, queue <-chan jetstream.Msg) error {
	for {
		var m jetstream.Msg
		select {
		case m = <-queue:
		case <-ctx.Done():
			return nil
		}
		meta, err := m.Metadata()
		if err != nil {
			return fmt.Errorf("read the source: %w", err)
		}
		stamp, ok := ReadStamp(m.Data())
		if !ok {
			return fmt.Errorf("read the source: a message of %d bytes is too short for a stamp", len(m.Data()))
		}
		if wait := time.Until(stamp.Due.Add(-p.Offset)); wait > 0 {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return nil
			}
		}
		out := p.delivery(m, meta, stamp.Due)
		if p.Core {
			if err := p.publishCore(out, meta.Sequence.Stream, len(queue) == 0); err != nil {
				return err
			}
			continue
		}
		out.Reply = p.inbox
		select {
		case p.unanswered <- meta.Sequence.Stream:
		case <-ctx.Done():
			return nil
		}
		if err := p.conn.PublishMsg(out); err != nil {
			return fmt.Errorf("publish to %s: %w", out.Subject, err)
		}
	}
}

// delivery returns the message that a broker would deliver.
func (p *pipeline) delivery(m jetstream.Msg, meta *jetstream.MsgMetadata, due time.Time) *nats.Msg {
	root := strings.TrimSuffix(p.names.targets(), ">")
	if p.Core {
		root = strings.TrimSuffix(p.names.coreTargets(), ">")
	}
	subject := root + strings.TrimPrefix(m.Subject(), strings.TrimSuffix(p.names.sources(), "*"))
	id := meta.Stream + "-" + strconv.FormatUint(meta.Sequence.Stream, 10) + "-" +
		strconv.FormatInt(meta.Timestamp.UnixNano(), 10)
	return &nats.Msg{Subject: subject, Data: m.Data(), Header: nats.Header{
		jetstream.MsgIDHeader:  {id},
		message.HeaderID:       {id},
		message.HeaderDue:      {due.UTC().Format(time.RFC3339Nano)},
		message.HeaderAccepted: {meta.Timestamp.UTC().Format(time.RFC3339Nano)},
	}}
}

// publishCore publishes a message to plain subscribers. A message counts as delivered when the server has received it.
// A flush confirms this for all earlier messages, so publishCore flushes only at intervals, or if flush is true.
func (p *pipeline) publishCore(m *nats.Msg, sequence uint64, flush bool) error {
	if err := p.conn.PublishMsg(m); err != nil {
		return fmt.Errorf("publish to %s: %w", m.Subject, err)
	}
	if flush || sequence%(maxOutstanding/4) == 0 {
		if err := p.conn.Flush(); err != nil {
			return fmt.Errorf("flush the deliveries: %w", err)
		}
		p.delivered.Store(sequence)
	}
	return nil
}

func (p *pipeline) commit(ctx context.Context, fail func(error)) {
	var purged uint64
	tick := time.NewTicker(commitInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		delivered := p.delivered.Load()
		if delivered == purged {
			continue
		}
		if err := p.source.Purge(ctx, jetstream.WithPurgeSequence(delivered+1)); err != nil && ctx.Err() == nil {
			fail(fmt.Errorf("purge the source: %w", err))
			return
		}
		purged = delivered
	}
}
