package acks

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"maps"
	random "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/wheel"
)

// Func handles a result of a publish: exactly one of answer and err is not nil. If Func returns true after an answer or
// after ErrSilent, the publish stays pending, and the inbox calls Func with the next result. After any other error, the
// publish has ended. Func is called on any goroutine, even by Publish before it returns, so Func must not block. For
// one publish, only one goroutine at a time calls Func.
type Func func(answer *nats.Msg, err error) (pending bool)

// Inbox receives the answers to many publishes. It is safe for concurrent use.
type Inbox struct {
	nc    *nats.Conn
	base  time.Time // the time of New, for the method now
	inbox string    // with the final dot
	sub   *nats.Subscription

	mu         sync.Mutex // never held while publishing
	tokens     *random.ChaCha8
	calls      map[token]*call
	deadlines  *wheel.Wheel[token]
	silences   *wheel.Wheel[batch] // the confirmed publishes, by the time at which a missing answer counts as silence
	nextWake   time.Time           // when Run wakes up without a signal; zero: never
	flushQueue []token             // publishes whose arrival at the server the next flush confirms
	closed     bool

	rearmSignal chan struct{} // capacity 1; has a value if nextWake became earlier
	flushSignal chan struct{} // capacity 1; has a value if flushQueue is not empty
}

// token is the last part of a reply subject, and the only proof that an answer belongs to a publish. A recipient of a
// message knows the inbox and the token of that message. A recipient can also choose the reply subject of its own
// publish to a stream, and the server sends the stream's answer there. So a token must not reveal another token.
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
	f         Func
	deadline  time.Time
	handle    wheel.Handle // of the deadline
	confirmed bool         // a flush has confirmed the publish
	running   bool         // a goroutine calls f
	queue     []result     // results that came while f ran, in order
}

type result struct {
	answer *nats.Msg
	err    error
}

// New returns an inbox below prefix, such as "_INBOX", and subscribes to it. The inbox has a random name: every
// recipient of a message learns the reply subject, and must not be able to compute the name of another inbox. The
// caller must call Run.
func New(nc *nats.Conn, prefix string) (*Inbox, error) {
	var seed [32]byte
	rand.Read(seed[:])
	b := &Inbox{
		nc: nc, base: time.Now(), inbox: prefix + "." + rand.Text() + ".",
		tokens: random.NewChaCha8(seed), calls: make(map[token]*call),
		deadlines: wheel.New[token](), silences: wheel.New[batch](),
		rearmSignal: make(chan struct{}, 1), flushSignal: make(chan struct{}, 1),
	}
	sub, err := nc.Subscribe(b.inbox+"*", b.receive)
	if err != nil {
		return nil, err
	}
	// No limit is needed: a publish usually has one answer, and the callers bound the number of publishes.
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return nil, err
	}
	b.sub = sub
	return b, nil
}

// LastError returns the last asynchronous error of the connection, even before the connection's error handler gets it.
func (b *Inbox) LastError() error { return b.nc.LastError() }

// now returns the time for deadlines: base plus the monotonic time since base, so that no step of the wall clock
// affects a deadline.
func (b *Inbox) now() time.Time { return b.base.Round(0).Add(time.Since(b.base)) }

// Publish sets the Reply of m, sends m, and calls f with the answer or an error, such as ErrTimeout after the timeout.
// Publish keeps no reference to m.
func (b *Inbox) Publish(m *nats.Msg, timeout time.Duration, f Func) {
	b.publish(m, timeout, f, false)
}

// PublishReportingSilence is like Publish, but also calls f with ErrSilent, perhaps several times, while the publish is
// pending.
func (b *Inbox) PublishReportingSilence(m *nats.Msg, timeout time.Duration, f Func) {
	b.publish(m, timeout, f, true)
}

func (b *Inbox) publish(m *nats.Msg, timeout time.Duration, f Func, reportSilence bool) {
	t, ok := b.add(b.now().Add(timeout), f)
	if !ok {
		f(nil, ErrClosed)
		return
	}
	var reply [64]byte // enough for an inbox below "_INBOX"
	m.Reply = string(encoding.AppendEncode(append(reply[:0], b.inbox...), t[:]))
	if err := b.nc.PublishMsg(m); err != nil {
		b.deliver(t, result{err: err})
		return
	}
	if reportSilence { // only now: a flush before the publish would not prove that the server took the message
		b.mu.Lock()
		b.flushQueue = append(b.flushQueue, t)
		b.mu.Unlock()
		signal(b.flushSignal)
	}
}

func (b *Inbox) add(deadline time.Time, f Func) (token, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return token{}, false
	}
	t := b.newTokenLocked()
	b.calls[t] = &call{f: f, deadline: deadline, handle: b.deadlines.Add(deadline, t)}
	b.wakeLocked(deadline)
	return t, true
}

// wakeLocked makes Run wake up at the given time, or earlier.
func (b *Inbox) wakeLocked(at time.Time) {
	if b.nextWake.IsZero() || at.Before(b.nextWake) {
		b.nextWake = at
		signal(b.rearmSignal)
	}
}

// newTokenLocked returns a random token. ChaCha8 with a secret seed is as safe as the random numbers of the system, and
// ten times as fast.
func (b *Inbox) newTokenLocked() (t token) {
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
	silent := false // ErrSilent was reported
	for {
		silent = silent || errors.Is(res.err, ErrSilent)
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
			if silent { // it is reported again after another flush
				b.flushQueue = append(b.flushQueue, t)
				signal(b.flushSignal)
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
		if next := b.expire(b.now()); next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(next.Sub(b.now()))
		}
		select {
		case <-ctx.Done():
			return
		case <-status:
			b.finishAll(ErrDisconnected)
		case <-b.rearmSignal:
		case <-timer.C:
		}
	}
}

// expire reports the silences whose time has come. Then it ends each publish whose deadline has passed: its Func gets
// ErrTimeout. It returns the time at which it must be called again, or zero if there is no such time.
func (b *Inbox) expire(now time.Time) (next time.Time) {
	var silent []batch
	var expired []token
	b.mu.Lock()
	for _, s := range b.silences.Advance(now) {
		silent = append(silent, s)
	}
	for _, t := range b.deadlines.Advance(now) {
		expired = append(expired, t)
	}
	next, ok := b.deadlines.Next()
	if silence, found := b.silences.Next(); found && (!ok || silence.Before(next)) {
		next = silence
	}
	b.nextWake = next
	b.mu.Unlock()
	for _, s := range silent {
		silence := result{err: &Silence{s.confirmedAt}}
		for _, t := range s.publishes {
			b.deliver(t, silence)
		}
	}
	for _, t := range expired {
		b.deliver(t, result{err: ErrTimeout})
	}
	return next
}

func (b *Inbox) finishAll(err error) {
	b.mu.Lock()
	tokens := slices.Collect(maps.Keys(b.calls))
	b.mu.Unlock()
	for _, t := range tokens {
		b.deliver(t, result{err: err})
	}
}
