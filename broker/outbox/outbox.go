package outbox

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	random "math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/wheel"
)

var (
	// ErrTimeout is returned when no answer came in time. What was published may or may not have arrived.
	ErrTimeout = errors.New("no answer in time")
	// ErrDisconnected is returned when the connection was lost before the answer. What was published may or may not have
	// arrived.
	ErrDisconnected = errors.New("disconnected before the answer")
	// ErrSilent is returned, where it was asked for, when the server has taken the message and a while later nobody has
	// answered. The function may go on waiting.
	ErrSilent = errors.New("taken by the server, and nobody answered")
	// ErrClosed is returned for what is outstanding when the box closes.
	ErrClosed = errors.New("closed before the answer")
)

// Offline reports whether a publish failed for want of a connection. It is worth repeating as soon as there is one.
func Offline(err error) bool {
	for _, e := range []error{
		ErrDisconnected, nats.ErrReconnectBufExceeded, nats.ErrConnectionReconnecting, nats.ErrDisconnected,
		nats.ErrConnectionClosed,
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

// Outbox is an inbox shared by many publishes. It is safe for concurrent use.
type Outbox struct {
	nc    *nats.Conn
	base  time.Time // deadlines are told by what has passed since, so that a step of the wall clock ends no wait
	inbox string    // with the final dot
	sub   *nats.Subscription

	mu        sync.Mutex // never held while publishing
	tokens    *random.ChaCha8
	calls     map[token]*call
	deadline  *wheel.Wheel[token]
	armed     time.Time // when Run wakes next; zero when nothing is outstanding
	listening []token   // published since the last flush, and want to hear of silence
	closed    bool

	rearm   chan struct{} // a deadline earlier than armed was added
	unheard chan struct{} // listening is no longer empty
}

// token is what a reply subject has behind the inbox, and the only proof of an answer: whoever was sent one message
// knows the inbox and that message's token, and the server puts its own answers to him on any subject he names. So
// nothing of one token follows from another.
type token [16]byte

const tokenChars = 22

// spelling is strict, so that a token has one.
var spelling = base64.RawURLEncoding.Strict()

// parseToken reads what follows the inbox in a subject; ok is false for what was never a token.
func parseToken(s string) (t token, ok bool) {
	if len(s) != tokenChars {
		return t, false
	}
	_, err := spelling.Decode(t[:], []byte(s))
	return t, err == nil
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

// New subscribes to an inbox below prefix ("_INBOX" unless permissions say otherwise). Every delivery shows a reply
// subject of it, so neither its name nor a token is to be guessed from another. Don't forget to Run it.
func New(nc *nats.Conn, prefix string) (*Outbox, error) {
	var seed [32]byte
	rand.Read(seed[:])
	b := &Outbox{
		nc: nc, base: time.Now(), inbox: prefix + "." + rand.Text() + ".",
		tokens: random.NewChaCha8(seed), calls: make(map[token]*call), deadline: wheel.New[token](),
		rearm: make(chan struct{}, 1), unheard: make(chan struct{}, 1),
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
func (b *Outbox) LastError() error { return b.nc.LastError() }

func (b *Outbox) now() time.Time { return b.base.Round(0).Add(time.Since(b.base)) }

// Publish sends m, whose Reply it sets, and calls f when there is an answer or none came for the time given.
func (b *Outbox) Publish(m *nats.Msg, wait time.Duration, f Func) {
	b.publish(m, wait, f, false)
}

// PublishListening is Publish that also tells f, with ErrSilent, that the server has taken the message and nobody has
// answered for a while.
func (b *Outbox) PublishListening(m *nats.Msg, wait time.Duration, f Func) {
	b.publish(m, wait, f, true)
}

func (b *Outbox) publish(m *nats.Msg, wait time.Duration, f Func, listening bool) {
	t, ok := b.add(b.now().Add(wait), f)
	if !ok {
		f(nil, ErrClosed)
		return
	}
	m.Reply = b.inbox + spelling.EncodeToString(t[:])
	if err := b.nc.PublishMsg(m); err != nil {
		b.tell(t, news{err: err})
		return
	}
	if listening { // only now: what is not yet published is not silent
		b.mu.Lock()
		b.listening = append(b.listening, t)
		b.mu.Unlock()
		signal(b.unheard)
	}
}

func (b *Outbox) add(deadline time.Time, f Func) (token, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return token{}, false
	}
	t := b.drawLocked()
	b.calls[t] = &call{f: f, handle: b.deadline.Add(deadline, t)}
	if b.armed.IsZero() || deadline.Before(b.armed) {
		b.armed = deadline
		signal(b.rearm)
	}
	return t, true
}

// drawLocked makes a token. ChaCha8 with a secret seed is as good here as to ask the system each time, and ten times as
// quick.
func (b *Outbox) drawLocked() (t token) {
	binary.LittleEndian.PutUint64(t[:8], b.tokens.Uint64())
	binary.LittleEndian.PutUint64(t[8:], b.tokens.Uint64())
	return t
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// receive is the subscription's call-back.
func (b *Outbox) receive(m *nats.Msg) {
	if t, ok := parseToken(strings.TrimPrefix(m.Subject, b.inbox)); ok {
		b.tell(t, news{answer: m})
	}
}

// tell calls the function of one publish, and forgets it unless it goes on waiting. What happens while the function
// runs is told to it afterwards, so that an answer is not lost to a silence.
func (b *Outbox) tell(t token, what news) {
	b.mu.Lock()
	c := b.calls[t]
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
			delete(b.calls, t)
			b.deadline.Remove(c.handle)
			b.mu.Unlock()
			return
		}
		if len(c.late) == 0 {
			c.busy = false
			if what.err != nil { // still silent: ask again, the function may learn something meanwhile
				b.listening = append(b.listening, t)
				signal(b.unheard)
			}
			b.mu.Unlock()
			return
		}
		what, c.late = c.late[0], c.late[1:]
		b.mu.Unlock()
	}
}

// Run minds the deadlines and the connection until ctx ends; what is outstanding then is told ErrClosed.
func (b *Outbox) Run(ctx context.Context) {
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
func (b *Outbox) expire(now time.Time) time.Duration {
	var late []token
	b.mu.Lock()
	for _, t := range b.deadline.Advance(now) {
		late = append(late, t)
	}
	next, ok := b.deadline.Next()
	b.armed = next
	b.mu.Unlock()
	for _, t := range late {
		b.tell(t, news{err: ErrTimeout})
	}
	if !ok {
		return 1<<63 - 1
	}
	return next.Sub(now)
}

func (b *Outbox) finishAll(err error) {
	b.mu.Lock()
	all := make([]token, 0, len(b.calls))
	for t := range b.calls {
		all = append(all, t)
	}
	b.mu.Unlock()
	for _, t := range all {
		b.tell(t, news{err: err})
	}
}

// listen finds out what nobody answers: it flushes, lingers, and tells those who are still waiting.
func (b *Outbox) listen(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.unheard:
		}
		b.mu.Lock()
		asked := b.listening
		b.listening = nil
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
		for _, t := range asked {
			b.tell(t, news{err: ErrSilent})
		}
	}
}
