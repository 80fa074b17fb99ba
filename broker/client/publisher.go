package client

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// DefaultWindow is the default number of messages that a Publisher has in flight.
const DefaultWindow = 256

// A Publisher publishes delayed messages without waiting for each answer. It keeps the order of one goroutine's calls,
// except for a message that it publishes again to the intake. A Publisher is safe for concurrent use. Close waits for
// the outstanding answers.
type Publisher struct {
	client    *Client
	slots     chan struct{} // one value for each message in flight
	flushLock chan struct{} // lock of the Flush that takes all slots; two Flushes would deadlock
	closed    chan struct{} // closed by the first Close
	closeOnce sync.Once     // closes closed

	mu          sync.Mutex // guards the fields below
	failedCount int        // messages since the last Flush that were not acknowledged
	firstErr    error      // the error of the first of these messages
}

// Publisher returns a publisher with at most window messages in flight. A full window blocks further calls. If window
// is not positive, DefaultWindow applies.
func (c *Client) Publisher(window int) *Publisher {
	if window <= 0 {
		window = DefaultWindow
	}
	return &Publisher{
		client: c, slots: make(chan struct{}, window), flushLock: make(chan struct{}, 1), closed: make(chan struct{}),
	}
}

// In publishes a message like Client.In, and does not wait for the answer. It blocks while the window is full. Ctx
// bounds only this wait. The caller must not change the body before the answer. After an error nothing was published.
func (p *Publisher) In(
	ctx context.Context, target string, delay time.Duration, body []byte, opts ...Option,
) (*Pending, error) {
	return p.publish(ctx, p.client.delayAddress(target, delay), body, opts)
}

// At publishes a message like Client.At, and does not wait for the answer: see In.
func (p *Publisher) At(
	ctx context.Context, target string, due time.Time, body []byte, opts ...Option,
) (*Pending, error) {
	return p.publish(ctx, p.client.timeAddress(target, due), body, opts)
}

// Level publishes a message like Client.Level, and does not wait for the answer: see In.
func (p *Publisher) Level(
	ctx context.Context, target, level string, body []byte, opts ...Option,
) (*Pending, error) {
	return p.publish(ctx, p.client.levelAddress(target, level), body, opts)
}

func (p *Publisher) publish(ctx context.Context, a address, body []byte, opts []Option) (*Pending, error) {
	d, err := p.client.draft(a, body, opts)
	if err != nil {
		return nil, err
	}
	if err := p.acquire(ctx); err != nil {
		return nil, err
	}
	future, err := p.client.store.PublishMsgAsync(d.msg, d.retries()...)
	if err != nil {
		<-p.slots
		return nil, explain(d, err, p.client.store.Refusal)
	}
	pending := &Pending{done: make(chan struct{})}
	go p.await(future, d, pending) // ends at the answer, at the latest after twice Config.Timeout; Close waits for it
	return pending, nil
}

func (p *Publisher) acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case p.slots <- struct{}{}:
	case <-p.closed:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("wait for one of %d messages in flight: %w", cap(p.slots), ctx.Err())
	}
	select {
	case <-p.closed:
		<-p.slots
		return ErrClosed
	default:
		return nil
	}
}

// await completes pending when the message is answered, and releases its slot.
func (p *Publisher) await(future jetstream.PubAckFuture, d *draft, pending *Pending) {
	defer func() { <-p.slots }()
	ack, err := answer(future)
	if d.fallsBack(err) {
		p.client.levels.recordMiss(d.guessedLevel, p.client.store.Now())
		if future, err = p.client.store.PublishMsgAsync(d.fallback); err == nil {
			ack, err = answer(future)
		}
	}
	pending.receipt, pending.err = p.client.receipt(d, ack, err)
	if pending.err != nil {
		p.mu.Lock()
		p.failedCount++
		if p.firstErr == nil {
			p.firstErr = pending.err
		}
		p.mu.Unlock()
	}
	close(pending.done)
}

func answer(future jetstream.PubAckFuture) (*jetstream.PubAck, error) {
	select {
	case ack := <-future.Ok():
		return ack, nil
	case err := <-future.Err():
		return nil, err
	}
}

// Flush waits for the answers to all earlier publishes. If messages since the last Flush were not acknowledged, Flush
// returns their number in an error that wraps the first of their errors. So a program may ignore each Pending.
func (p *Publisher) Flush(ctx context.Context) error {
	if err := p.drain(ctx); err != nil {
		return err
	}
	return p.failures()
}

// Close makes further calls fail with ErrClosed, and calls Flush. After an error that wraps ctx.Err(), Close may be
// called again.
func (p *Publisher) Close(ctx context.Context) error {
	p.closeOnce.Do(func() { close(p.closed) })
	return p.Flush(ctx)
}

// drain waits until no message is in flight, by taking all slots.
func (p *Publisher) drain(ctx context.Context) error {
	select {
	case p.flushLock <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	count := 0
	defer func() {
		for range count {
			<-p.slots
		}
		<-p.flushLock
	}()
	for ; count < cap(p.slots); count++ {
		select {
		case p.slots <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("%d messages have no answer yet: %w", len(p.slots)-count, ctx.Err())
		}
	}
	return nil
}

func (p *Publisher) failures() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	failedCount, firstErr := p.failedCount, p.firstErr
	p.failedCount, p.firstErr = 0, nil
	if failedCount == 0 {
		return nil
	}
	return fmt.Errorf("%d messages were not acknowledged, the first: %w", failedCount, firstErr)
}

// Pending is a message in flight.
type Pending struct {
	done    chan struct{} // closed by await, after it has set the fields below
	receipt Receipt
	err     error
}

// Done returns a channel that is closed at the answer or the failure of the publish.
func (p *Pending) Done() <-chan struct{} { return p.done }

// Wait waits for the answer, and returns the results of Client.In. An error that wraps ctx.Err() means that there is no
// answer yet.
func (p *Pending) Wait(ctx context.Context) (Receipt, error) {
	select {
	case <-p.done:
		return p.receipt, p.err
	case <-ctx.Done():
		return Receipt{}, fmt.Errorf("wait for the answer: %w", ctx.Err())
	}
}
