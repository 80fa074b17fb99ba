package acks

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

// Func handles a result of a publish: exactly one of answer and err is set. If Func returns true after an answer or
// after ErrSilent, the publish stays pending, and the inbox calls Func with the next result. After any other error, the
// publish has ended. The inbox calls Func on its own goroutines, so Func must not block. For one publish, only one
// goroutine at a time calls Func.
type Func func(answer *nats.Msg, err error) (pending bool)

// Inbox is an inbox shared by many publishes. It is safe for concurrent use.
type Inbox struct {
	nc    *nats.Conn
	base  time.Time // deadlines are computed from base and monotonic times, so that no step of the wall clock affects them
	inbox string    // with the final dot
	sub   *nats.Subscription

	mu        sync.Mutex // never held while publishing
	tokens    *random.ChaCha8
	calls     map[token]*call
	deadlines *wheel.Wheel[token]
	nextWake  time.Time // when Run wakes up next; zero if no publish is in flight
	unflushed []token   // publishes since the last flush that wait for ErrSilent
	closed    bool

	rearm       chan struct{} // capacity 1; has a value if a deadline before nextWake was added
	flushWanted chan struct{} // capacity 1; has a value if unflushed is not empty
}

// token is the last part of a reply subject, and the only proof that an answer belongs to a publish. A recipient of a
// message knows the inbox and the token of that message, and can make the server publish answers to any subject. So no
// token can be computed from another.
type token [16]byte

const tokenChars = 22

// encoding encodes tokens. It is strict, so each token has only one encoded form.
var encoding = base64.RawURLEncoding.Strict()

// parseToken parses the last part of a reply subject. If this part is not a token, ok is false.
func parseToken(s string) (t token, ok bool) {
	if len(s) != tokenChars {
		return t, false
	}
	_, err := encoding.Decode(t[:], []byte(s))
	return t, err == nil
}

// call is a publish without a final result.
type call struct {
	f       Func
	handle  wheel.Handle
	running bool     // a goroutine calls f
	queue   []result // results that came meanwhile, in order
}

// result is the result of a publish: an answer or an error.
type result struct {
	answer *nats.Msg
	err    error
}

// New returns an inbox below prefix, such as "_INBOX", and subscribes to it. The inbox has a random name: every
// recipient of a message knows the reply subject, and must not learn the name of another inbox from it. The caller must
// call Run.
func New(nc *nats.Conn, prefix string) (*Inbox, error) {
	var seed [32]byte
	rand.Read(seed[:])
	b := &Inbox{
		nc: nc, base: time.Now(), inbox: prefix + "." + rand.Text() + ".",
		tokens: random.NewChaCha8(seed), calls: make(map[token]*call), deadlines: wheel.New[token](),
		rearm: make(chan struct{}, 1), flushWanted: make(chan struct{}, 1),
	}
	sub, err := nc.Subscribe(b.inbox+"*", b.receive)
	if err != nil {
		return nil, err
	}
	// No limit is needed: there is one answer for each publish, and the callers bound the number of publishes.
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return nil, err
	}
	b.sub = sub
	return b, nil
}

// LastError returns the last asynchronous error of the connection. The connection's error handler may not have been
// called yet.
func (b *Inbox) LastError() error { return b.nc.LastError() }

// now returns base plus the monotonic time since base, as a wall time.
func (b *Inbox) now() time.Time { return b.base.Round(0).Add(time.Since(b.base)) }

// Publish sets the Reply of m, sends m, and calls f with the answer, or with ErrTimeout after wait. Publish keeps no
// reference to m.
func (b *Inbox) Publish(m *nats.Msg, wait time.Duration, f Func) {
	b.publish(m, wait, f, false)
}

// PublishReportingSilence is like Publish, but also calls f with ErrSilent when the server has taken the message and no
// answer has come for 50 ms.
func (b *Inbox) PublishReportingSilence(m *nats.Msg, wait time.Duration, f Func) {
	b.publish(m, wait, f, true)
}

func (b *Inbox) publish(m *nats.Msg, wait time.Duration, f Func, reportSilence bool) {
	t, ok := b.add(b.now().Add(wait), f)
	if !ok {
		f(nil, ErrClosed)
		return
	}
	var reply [64]byte // long enough for an inbox below "_INBOX"
	m.Reply = string(encoding.AppendEncode(append(reply[:0], b.inbox...), t[:]))
	if err := b.nc.PublishMsg(m); err != nil {
		b.deliver(t, result{err: err})
		return
	}
	if reportSilence { // after the publish: a flush before the publish would not prove that the server took the message
		b.mu.Lock()
		b.unflushed = append(b.unflushed, t)
		b.mu.Unlock()
		signal(b.flushWanted)
	}
}

func (b *Inbox) add(deadline time.Time, f Func) (token, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return token{}, false
	}
	t := b.drawLocked()
	b.calls[t] = &call{f: f, handle: b.deadlines.Add(deadline, t)}
	if b.nextWake.IsZero() || deadline.Before(b.nextWake) {
		b.nextWake = deadline
		signal(b.rearm)
	}
	return t, true
}

// drawLocked returns a new token. For tokens, ChaCha8 with a secret seed is as safe as random numbers from the system,
// and ten times as fast.
func (b *Inbox) drawLocked() (t token) {
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

// receive is the callback of the subscription.
func (b *Inbox) receive(m *nats.Msg) {
	if t, ok := parseToken(strings.TrimPrefix(m.Subject, b.inbox)); ok {
		b.deliver(t, result{answer: m})
	}
}

// deliver calls the Func of a publish with a result, and removes the publish unless it stays pending. A result that
// comes while the Func runs is queued, so that no answer is lost while the Func handles ErrSilent.
func (b *Inbox) deliver(t token, res result) {
	b.mu.Lock()
	c := b.calls[t]
	if c == nil {
		b.mu.Unlock()
		return
	}
	if c.running {
		c.queue = append(c.queue, res)
		b.mu.Unlock()
		return
	}
	c.running = true
	b.mu.Unlock()
	for {
		pending := c.f(res.answer, res.err)
		b.mu.Lock()
		if !pending || res.answer == nil && !errors.Is(res.err, ErrSilent) {
			delete(b.calls, t)
			b.deadlines.Remove(c.handle)
			b.mu.Unlock()
			return
		}
		if len(c.queue) == 0 {
			c.running = false
			if res.err != nil { // no answer yet: the Func gets ErrSilent again after the next flush
				b.unflushed = append(b.unflushed, t)
				signal(b.flushWanted)
			}
			b.mu.Unlock()
			return
		}
		res, c.queue = c.queue[0], c.queue[1:]
		b.mu.Unlock()
	}
}

// Run watches the deadlines and the connection until ctx ends. Then all publishes that are still pending get ErrClosed.
func (b *Inbox) Run(ctx context.Context) {
	status := b.nc.StatusChanged(nats.RECONNECTING, nats.DISCONNECTED, nats.CLOSED)
	var flusher sync.WaitGroup
	flusher.Go(func() { b.flushLoop(ctx) })
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

// expire ends the publishes whose deadline has passed with ErrTimeout, and returns the time until the next deadline.
func (b *Inbox) expire(now time.Time) time.Duration {
	var late []token
	b.mu.Lock()
	for _, t := range b.deadlines.Advance(now) {
		late = append(late, t)
	}
	next, ok := b.deadlines.Next()
	b.nextWake = next
	b.mu.Unlock()
	for _, t := range late {
		b.deliver(t, result{err: ErrTimeout})
	}
	if !ok {
		return 1<<63 - 1
	}
	return next.Sub(now)
}

// finishAll ends all publishes with an error.
func (b *Inbox) finishAll(err error) {
	b.mu.Lock()
	all := make([]token, 0, len(b.calls))
	for t := range b.calls {
		all = append(all, t)
	}
	b.mu.Unlock()
	for _, t := range all {
		b.deliver(t, result{err: err})
	}
}
