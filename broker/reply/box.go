package reply

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/wheel"
)

var (
	// ErrTimeout is returned when no answer came in time. What was published may or may not have arrived.
	ErrTimeout = errors.New("no answer in time")
	// ErrDisconnected is returned when the connection was lost before the answer. What was published may or may not
	// have arrived.
	ErrDisconnected = errors.New("disconnected before the answer")
	// ErrSilent is returned, where it was asked for, when the server has taken the message and a while later nobody
	// has answered. The function may go on waiting.
	ErrSilent = errors.New("taken by the server, and nobody answered")
	// ErrClosed is returned for what is outstanding when the box closes.
	ErrClosed = errors.New("closed before the answer")
)

// Offline reports whether a publish failed for want of a connection. It is worth repeating as soon as there is one.
func Offline(err error) bool {
	for _, e := range []error{
		ErrDisconnected, nats.ErrReconnectBufExceeded, nats.ErrConnectionReconnecting, nats.ErrDisconnected, nats.ErrConnectionClosed,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// linger is how long after a flush an answer may still come before the silence means something. A refusal by a full
// stream was seen after the flush had returned, in 140 of 2,000 tries.
const linger = 50 * time.Millisecond

const flushTimeout = 10 * time.Second

// Func hears what became of a publish: exactly one of answer and err is set. To return true goes on waiting, which it
// may do for an answer that means nothing to it, and for ErrSilent. It is called from the box's goroutines and must not
// block.
type Func func(answer *nats.Msg, err error) (wait bool)

// Box is an inbox shared by many publishes. It is safe for concurrent use.
type Box struct {
	nc    *nats.Conn
	base  time.Time // deadlines are told by what has passed since, so that a step of the wall clock ends no wait
	inbox string    // with the final dot
	sub   *nats.Subscription

	mu       sync.Mutex // never held while publishing
	calls    map[uint64]*call
	last     uint64 // number of the last call
	deadline *wheel.Wheel[uint64]
	armed    time.Time // when Run wakes next; zero when nothing is outstanding
	curious  []uint64  // published since the last flush, and want to hear of silence
	closed   bool

	rearm chan struct{} // a deadline earlier than armed was added
	hush  chan struct{} // curious is no longer empty
}

type call struct {
	f      Func
	handle wheel.Handle
	busy   bool   // f is running
	late   []news // what happened meanwhile, in order
}

type news struct {
	answer *nats.Msg
	err    error
}

// NewBox subscribes to an inbox below prefix ("_INBOX" unless permissions say otherwise). Every delivery shows a reply
// subject of it, so its name is not to be guessed from another's. Don't forget to Run it.
func NewBox(nc *nats.Conn, prefix string) (*Box, error) {
	b := &Box{
		nc: nc, base: time.Now(), inbox: prefix + "." + rand.Text() + ".",
		calls: make(map[uint64]*call), deadline: wheel.New[uint64](),
		rearm: make(chan struct{}, 1), hush: make(chan struct{}, 1),
	}
	sub, err := nc.Subscribe(b.inbox+"*", b.receive)
	if err != nil {
		return nil, err
	}
	// Every answer belongs to a publish that its owner counts, so the bound is theirs.
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return nil, err
	}
	b.sub = sub
	return b, nil
}

// LastError is the last asynchronous error of the connection, which its error handler may not have been told yet.
func (b *Box) LastError() error { return b.nc.LastError() }

func (b *Box) now() time.Time { return b.base.Round(0).Add(time.Since(b.base)) }

// Publish sends m, whose Reply it sets, and calls f when there is an answer or none came for the time given.
func (b *Box) Publish(m *nats.Msg, wait time.Duration, f Func) {
	b.publish(m, wait, f, false)
}

// PublishCurious is Publish that also tells f, with ErrSilent, that the server has taken the message and nobody has
// answered for a while.
func (b *Box) PublishCurious(m *nats.Msg, wait time.Duration, f Func) {
	b.publish(m, wait, f, true)
}

func (b *Box) publish(m *nats.Msg, wait time.Duration, f Func, curious bool) {
	n, ok := b.add(b.now().Add(wait), f)
	if !ok {
		f(nil, ErrClosed)
		return
	}
	m.Reply = b.inbox + strconv.FormatUint(n, 36)
	if err := b.nc.PublishMsg(m); err != nil {
		b.tell(n, news{err: err})
		return
	}
	if curious { // only now: what is not yet published is not silent
		b.mu.Lock()
		b.curious = append(b.curious, n)
		b.mu.Unlock()
		signal(b.hush)
	}
}

func (b *Box) add(deadline time.Time, f Func) (uint64, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, false
	}
	b.last++
	b.calls[b.last] = &call{f: f, handle: b.deadline.Add(deadline, b.last)}
	if b.armed.IsZero() || deadline.Before(b.armed) {
		b.armed = deadline
		signal(b.rearm)
	}
	return b.last, true
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// receive is the subscription's call-back.
func (b *Box) receive(m *nats.Msg) {
	n, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, b.inbox), 36, 64)
	if err == nil {
		b.tell(n, news{answer: m})
	}
}

// tell calls the function of one publish, and forgets it unless it goes on waiting. What happens while the function
// runs is told to it afterwards, so that an answer is not lost to a silence.
func (b *Box) tell(n uint64, what news) {
	b.mu.Lock()
	c := b.calls[n]
	if c == nil {
		b.mu.Unlock()
		return
	}
	if c.busy {
		c.late = append(c.late, what)
		b.mu.Unlock()
		return
	}
	c.busy = true
	b.mu.Unlock()
	for {
		wait := c.f(what.answer, what.err)
		b.mu.Lock()
		if !wait || what.answer == nil && !errors.Is(what.err, ErrSilent) {
			delete(b.calls, n)
			b.deadline.Remove(c.handle)
			b.mu.Unlock()
			return
		}
		if len(c.late) == 0 {
			c.busy = false
			if what.err != nil { // still silent: ask again, the function may learn something meanwhile
				b.curious = append(b.curious, n)
				signal(b.hush)
			}
			b.mu.Unlock()
			return
		}
		what, c.late = c.late[0], c.late[1:]
		b.mu.Unlock()
	}
}

// Run minds the deadlines and the connection until ctx ends; what is outstanding then is told ErrClosed.
func (b *Box) Run(ctx context.Context) {
	status := b.nc.StatusChanged(nats.RECONNECTING, nats.DISCONNECTED, nats.CLOSED)
	var flusher sync.WaitGroup
	flusher.Go(func() { b.listen(ctx) })
	defer func() {
		flusher.Wait()
		b.nc.RemoveStatusListener(status)
		_ = b.sub.Unsubscribe() // fails only on a closed connection
		b.mu.Lock()
		b.closed = true
		b.mu.Unlock()
		b.finishAll(ErrClosed)
	}()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(b.expire(b.now()))
		select {
		case <-ctx.Done():
			return
		case <-status:
			b.finishAll(ErrDisconnected)
		case <-b.rearm:
		case <-timer.C:
		}
	}
}

// expire tells everything whose deadline has passed, and returns how long until the next.
func (b *Box) expire(now time.Time) time.Duration {
	var late []uint64
	b.mu.Lock()
	for _, n := range b.deadline.Advance(now) {
		late = append(late, n)
	}
	next, ok := b.deadline.Next()
	b.armed = next
	b.mu.Unlock()
	for _, n := range late {
		b.tell(n, news{err: ErrTimeout})
	}
	if !ok {
		return 1<<63 - 1
	}
	return next.Sub(now)
}

func (b *Box) finishAll(err error) {
	b.mu.Lock()
	all := make([]uint64, 0, len(b.calls))
	for n := range b.calls {
		all = append(all, n)
	}
	b.mu.Unlock()
	for _, n := range all {
		b.tell(n, news{err: err})
	}
}

// listen finds out what nobody answers: it flushes, lingers, and tells those who are still waiting.
func (b *Box) listen(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.hush:
		}
		b.mu.Lock()
		asked := b.curious
		b.curious = nil
		b.mu.Unlock()
		started := time.Now()
		flush, cancel := context.WithTimeout(ctx, flushTimeout)
		err := b.nc.FlushWithContext(flush)
		cancel()
		if err != nil {
			continue // disconnected: Run tells them; or too slow: their deadlines do
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(linger, 2*time.Since(started))):
		}
		for _, n := range asked {
			b.tell(n, news{err: ErrSilent})
		}
	}
}
