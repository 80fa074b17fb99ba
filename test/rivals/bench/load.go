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
)

const (
	// maxOutstanding is the maximum number of unanswered publishes of a load. It bounds the queue of a server that is too
	// slow for Load.Rate.
	maxOutstanding = 20_000
	// publishInterval is the interval between two batches of a publisher.
	publishInterval = time.Millisecond
	// answerTimeout is the maximum time from a publisher's last publish until all its publishes are answered.
	answerTimeout = 10 * time.Second
)

// A Load describes the messages for one side. Their numbers begin with First.
type Load struct {
	Side   Side   `json:"side"`
	Prefix string `json:"prefix"`
	Turn   uint32 `json:"turn"`
	Count  int    `json:"count"`
	Size   int    `json:"size"`
	// Rate is the total rate of all publishers, in messages per second. If Rate is zero, the answers of the server
	// limit the rate.
	Rate int `json:"rate,omitempty"`
	// Delays are the delays of successive messages; after the last delay, the first follows again. A delay begins with
	// the publish. If Due is not zero, all plain messages are due at Due, and Delays has no effect.
	Delays     []Delay       `json:"delays"`
	Due        time.Time     `json:"due,omitzero"`
	Targets    int           `json:"targets"`          // number of target subjects
	Publishers int           `json:"publishers"`       // number of connections that publish
	Core       bool          `json:"core,omitempty"`   // the targets are plain subscribers
	Offset     time.Duration `json:"offset,omitempty"` // the server's clock minus the local clock
	First      int           `json:"first,omitempty"`  // number of the first message

	Change // the operation on named timers; zero for plain messages
}

// LoadResult is the result of a load.
type LoadResult struct {
	Rate       float64   `json:"rate"` // achieved, in messages per second
	LastAnswer time.Time `json:"last"` // time of the last answer, by the server's clock
	Acks       *Spread   `json:"acks"` // time from a publish to its answer
	// Sequences are the sequences of the stored messages, in the order of their numbers; nil unless Verb is Set.
	Sequences []uint64 `json:"sequences,omitempty"`
}

// publisher publishes every step-th message of a load, on its own connection.
type publisher struct {
	load  Load
	next  func(number int, now time.Time) *nats.Msg
	conn  *nats.Conn
	inbox string
	first int // the publisher publishes the messages first, first+step, first+2*step, and so on
	step  int

	// The index of a message is its position in the publisher's sequence of messages.
	publishTimes []atomic.Int64 // by index; the time of the publish in unix nanoseconds, zero after the answer
	// Before finished is closed, only the goroutine of the subscription uses acks and sequences.
	acks      *Lateness
	sequences []uint64 // by index; nil unless the load is a Set

	accepted atomic.Int64
	finished chan struct{} // closed when all messages of the publisher are accepted
	refusal  chan error    // the first refusal; capacity 1
}

// Run publishes the load and returns when all messages are accepted. It calls progress with the number of accepted
// messages about ten times a second. If a message is refused or gets no answer, Run returns an error with ErrRefused.
func (l Load) Run(
	ctx context.Context, connect func() (*nats.Conn, error), progress func(accepted int),
) (LoadResult, error) {
	names, err := NewNames(l.Prefix)
	if err != nil {
		return LoadResult{}, err
	}
	next := func(number int, now time.Time) *nats.Msg { return l.Message(names, l.First+number, now) }
	return l.RunWith(ctx, connect, next, progress)
}

// RunWith is like Run, and publishes the messages that next returns. The arguments of next are the message's number,
// from zero even if First is not zero, and the time by the server's clock. For several publishers, next must be safe
// for concurrent use.
func (l Load) RunWith(
	ctx context.Context, connect func() (*nats.Conn, error), next func(number int, now time.Time) *nats.Msg,
	progress func(accepted int),
) (LoadResult, error) {
	ctx, fail := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer fail(nil)
	var publishers []*publisher
	for i := range min(l.Publishers, l.Count) {
		p, err := l.publisher(next, i, connect)
		if err != nil {
			return LoadResult{}, err
		}
		defer p.conn.Close()
		publishers = append(publishers, p)
	}
	startTime := time.Now()
	for _, p := range publishers {
		running.Go(func() {
			if err := p.run(ctx, startTime); err != nil {
				fail(err)
			}
		})
	}
	accepted := func() (n int) {
		for _, p := range publishers {
			n += int(p.accepted.Load())
		}
		return n
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	acks := newLateness()
	sequences := make([]uint64, l.Count)
	for i, p := range publishers {
		for waiting := true; waiting; {
			select {
			case <-tick.C:
				progress(accepted())
			case <-ctx.Done():
				return LoadResult{}, context.Cause(ctx)
			case <-p.finished:
				acks.Add(p.acks)
				for index, sequence := range p.sequences {
					sequences[i+index*p.step] = sequence
				}
				waiting = false
			}
		}
	}
	progress(accepted())
	loaded := LoadResult{
		Rate: float64(l.Count) / time.Since(startTime).Seconds(), LastAnswer: time.Now().Add(l.Offset), Acks: acks.Spread(),
	}
	if l.Verb == Set {
		loaded.Sequences = sequences
	}
	return loaded, nil
}

func (l Load) publisher(
	next func(int, time.Time) *nats.Msg, i int, connect func() (*nats.Conn, error),
) (*publisher, error) {
	conn, err := connect()
	if err != nil {
		return nil, err
	}
	p := &publisher{
		load: l, next: next, conn: conn, inbox: conn.NewInbox() + ".", first: i, step: min(l.Publishers, l.Count),
		acks: newLateness(), finished: make(chan struct{}), refusal: make(chan error, 1),
	}
	p.publishTimes = make([]atomic.Int64, (l.Count-i+p.step-1)/p.step)
	if l.Verb == Set {
		p.sequences = make([]uint64, len(p.publishTimes))
	}
	sub, err := conn.Subscribe(p.inbox+"*", p.handleAnswer)
	if err == nil {
		err = sub.SetPendingLimits(-1, -1)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("subscribe to the answers: %w", err)
	}
	return p, nil
}

func (p *publisher) run(ctx context.Context, startTime time.Time) error {
	ticks := time.NewTicker(publishInterval)
	defer ticks.Stop()
	window := int64(max(1, p.load.window()/p.step))
	var lastPublish time.Time
	for index := 0; ; {
		end := len(p.publishTimes)
		if p.load.Rate > 0 {
			// The number of messages that all publishers together should have published by now.
			planned := int(time.Since(startTime) * time.Duration(p.load.Rate) / time.Second)
			end = min(end, (planned-p.first+p.step-1)/p.step)
		}
		for ; index < end && int64(index)-p.accepted.Load() < window; index++ {
			now := time.Now()
			m := p.next(p.first+index*p.step, now.Add(p.load.Offset))
			m.Reply = p.inbox + strconv.Itoa(index)
			p.publishTimes[index].Store(now.UnixNano())
			if err := p.conn.PublishMsg(m); err != nil {
				return fmt.Errorf("publish to %s: %w", m.Subject, err)
			}
			lastPublish = now
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.finished:
			return nil
		case err := <-p.refusal:
			return err
		case now := <-ticks.C:
			if index > 0 && now.Sub(lastPublish) > answerTimeout && p.accepted.Load() < int64(index) {
				return fmt.Errorf("%w: %d of %d publishes have no answer after %s",
					ErrRefused, int64(index)-p.accepted.Load(), index, answerTimeout)
			}
		}
	}
}

// handleAnswer runs on the goroutine of the subscription.
func (p *publisher) handleAnswer(m *nats.Msg) {
	now := time.Now().UnixNano()
	index, err := strconv.Atoi(strings.TrimPrefix(m.Subject, p.inbox))
	if err == nil && (index < 0 || index >= len(p.publishTimes)) {
		err = fmt.Errorf("an answer has the unknown index %d", index)
	}
	var sequence uint64
	if err == nil {
		sequence, err = p.load.parseAnswer(m)
	}
	if err != nil {
		select {
		case p.refusal <- fmt.Errorf("%w: %w", ErrRefused, err):
		default: // the first refusal ends the publisher
		}
		return
	}
	publishTime := p.publishTimes[index].Swap(0)
	if publishTime == 0 {
		return // a duplicate of an answer
	}
	p.acks.Record(time.Duration(now - publishTime))
	if p.sequences != nil {
		p.sequences[index] = sequence
	}
	if int(p.accepted.Add(1)) == len(p.publishTimes) {
		close(p.finished)
	}
}
