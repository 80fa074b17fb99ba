package deadletter

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
	"delaybroker/broker/message"
)

// backoff is the time before a retry after a stream reported that it was busy.
const backoff = 50 * time.Millisecond

// Config is the configuration of a store.
type Config struct {
	Conn      *nats.Conn
	JetStream jetstream.JetStream
	APIPrefix string         // "$JS.API", or another prefix of the JetStream API for a domain or an import
	Policy    message.Policy // names the subjects, and decides which targets are allowed
	Lane      string         // level of the retry lane for resent messages, the shortest one
}

// Store is the stream of dead letters. It is safe for concurrent use.
type Store struct {
	cfg    Config
	api    jsapi.Client
	stream string

	mu    sync.Mutex // guards limit
	limit int64      // result of laneLimit; zero until it is known
}

// New returns the store of a broker's dead letters. It sends no request.
func New(cfg Config) *Store {
	return &Store{
		cfg: cfg, api: jsapi.Client{Conn: cfg.Conn, API: cfg.APIPrefix, Timeout: jsapi.Timeout},
		stream: cfg.Policy.Names.DeadStream(),
	}
}

// Now returns the time by the clock of the stream's leader, which stamps the letters.
func (b *Store) Now(ctx context.Context) (time.Time, error) {
	info, err := b.info(ctx, b.stream)
	if err != nil {
		return time.Time{}, err
	}
	return info.TimeStamp, nil
}

// Query selects the letters to list.
type Query struct {
	Filter
	HeadersOnly bool // read no bodies
	// Progress, if set, is called for every letter, with the number of letters so far and an estimate of the total.
	Progress func(read, total uint64)
}

// List yields the selected letters that are stored when List begins, in the order of their sequences. It ends at the
// first error. An unreadable letter is not an error. List requests the next batch after the caller has consumed the
// last batch: see lane.Scan.
func (b *Store) List(ctx context.Context, q Query) iter.Seq2[Letter, error] {
	return func(yield func(Letter, error) bool) {
		info, err := b.info(ctx, b.stream)
		if err != nil {
			yield(Letter{}, err)
			return
		}
		if info.State.Msgs == 0 {
			return
		}
		scan := lane.Scan{
			Conn: b.cfg.Conn, JetStream: b.cfg.JetStream, APIPrefix: b.cfg.APIPrefix, Stream: b.stream, For: "dead",
			Filters: q.subjects(b.cfg.Policy.Names), Since: q.since(), To: info.State.LastSeq, HeadersOnly: q.HeadersOnly,
		}
		if first, last := q.bounds(); last > 0 {
			scan.From, scan.To = first, min(last, info.State.LastSeq)
		}
		var read uint64
		for m, err := range scan.All(ctx) {
			if err != nil {
				yield(Letter{}, fmt.Errorf("read %s: %w", b.stream, err))
				return
			}
			read++
			if q.Progress != nil {
				q.Progress(read, read+m.Behind)
			}
			if l := newLetter(b.cfg.Policy, b.stream, m, q.HeadersOnly); q.Match(l) && !yield(l, nil) {
				return
			}
		}
	}
}

// Resend publishes the message of a letter to the lane, so that a broker delivers the message when it is due, and then
// removes the letter. The letter must have been listed with its body. Now is the server's time. ErrAbsent means that
// the letter was resent or removed after it was listed, and that Resend did nothing. ErrNotResendable means that this
// letter cannot be resent; other letters can. After any other error the lane may already have the message, and the
// letter should be resent soon: see the package documentation.
func (b *Store) Resend(ctx context.Context, l Letter, c Change, now time.Time) error {
	m, err := b.resent(l, c, now)
	if err != nil {
		return err
	}
	if err := b.checkPresent(ctx, l); err != nil {
		return err
	}
	if err := b.store(ctx, l.ID, m); err != nil {
		return err
	}
	if err := b.Remove(ctx, l); err != nil && !errors.Is(err, ErrAbsent) { // ErrAbsent: another operator has removed it
		return fmt.Errorf("the message is resent, but its letter was not removed: %w", err)
	}
	return nil
}

// DryRun returns the error that Resend would return for the letter and the change, and stores nothing. It does not
// detect that another operator has resent or removed the letter.
func (b *Store) DryRun(ctx context.Context, l Letter, c Change, now time.Time) error {
	m, err := b.resent(l, c, now)
	if err != nil {
		return err
	}
	limit, err := b.laneLimit(ctx)
	if err != nil {
		return err
	}
	if int64(m.Size()-len(m.Subject)) > limit {
		return ErrTooLarge
	}
	return nil
}

// laneLimit returns the size of the largest message that the lane accepts, in bytes of headers and body. It sends one
// request.
func (b *Store) laneLimit(ctx context.Context) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limit > 0 {
		return b.limit, nil
	}
	info, err := b.info(ctx, b.cfg.Policy.Names.RetryStream(b.cfg.Lane))
	if err != nil {
		return 0, err
	}
	b.limit = b.cfg.Conn.MaxPayload()
	if size := info.Config.MaxMsgSize; size > 0 {
		b.limit = min(b.limit, int64(size))
	}
	return b.limit, nil
}

// resent returns the message that Resend publishes to the lane, with its seal.
func (b *Store) resent(l Letter, c Change, now time.Time) (*nats.Msg, error) {
	if l.Data == nil && l.Size > 0 {
		return nil, errors.New("bug: resend a letter without its body")
	}
	resent, err := l.Resent(b.cfg.Policy, c, now)
	if err != nil {
		return nil, err
	}
	m := &nats.Msg{
		Subject: b.cfg.Policy.Names.Retry(b.cfg.Lane, resent.Target), Header: nats.Header(resent.ResentHeader()),
		Data: l.Data,
	}
	if c.Edit.Body != nil {
		m.Data = c.Edit.Body
	}
	// The id ends with its own seal, so no client can have used the id: see the package documentation.
	id := m.Header.Get("Nats-Msg-Id") + c.Edit.digest()
	m.Header.Set("Nats-Msg-Id", id+"/"+b.cfg.Policy.Keys.Seal("resent", []byte(id)))
	b.cfg.Policy.Keys.SealMessage(m.Subject, message.Header(m.Header), m.Data, time.Now())
	return m, nil
}

// checkPresent returns ErrAbsent if the stream's leader no longer has the letter. Without this check, the message would
// be delivered twice if another operator has resent the letter before the lane's duplicate window began.
func (b *Store) checkPresent(ctx context.Context, l Letter) error {
	m, err := b.api.Message(ctx, b.stream, l.Sequence)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound), err == nil && !m.Time.Equal(l.At): // the stream was created again
		return ErrAbsent
	case err != nil:
		return fmt.Errorf("request the letter: %w", err)
	}
	return nil
}

// store publishes a message to the lane, until the answer proves that the lane has stored it now or earlier. DelayID is
// the Delay-Id of the message.
func (b *Store) store(ctx context.Context, delayID string, m *nats.Msg) error {
	stream := b.cfg.Policy.Names.RetryStream(b.cfg.Lane)
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	for {
		reply := b.api.Publish(ctx, stream, m)
		switch reply.Outcome() {
		case jsapi.Stored:
			return nil
		case jsapi.Duplicate:
		case jsapi.TooLarge:
			return ErrTooLarge
		case jsapi.Unavailable:
			return fmt.Errorf("%w: nothing listens on %s", ErrNoStream, m.Subject)
		case jsapi.Busy:
			select {
			case <-ctx.Done():
				return fmt.Errorf("publish on %s: %w: %w", m.Subject, reply.Problem(), context.Cause(ctx))
			case <-time.After(backoff):
				continue
			}
		default:
			return fmt.Errorf("publish on %s: %w", m.Subject, reply.Problem())
		}
		// No other message can have this Nats-Msg-Id. So if the stored copy is gone, an earlier resend of this letter has
		// succeeded, and a broker has moved the message.
		id, err := b.idAt(ctx, stream, reply.Ack.Sequence)
		if err != nil || id == "" || id == delayID {
			return err
		}
		m.Header.Set("Nats-Msg-Id", m.Header.Get("Nats-Msg-Id")+"+"+rand.Text())
	}
}

// idAt requests a message in a lane from the stream's leader, and returns the Delay-Id of the message. It returns "" if
// the message is gone. If no broker wrote the message, idAt returns a text that no Delay-Id equals.
func (b *Store) idAt(ctx context.Context, stream string, sequence uint64) (string, error) {
	m, err := b.api.Message(ctx, stream, sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	in := m.Incoming(stream)
	id := nats.Header(in.Header).Get(message.HeaderID)
	if !in.Undecodable && id != "" && b.cfg.Policy.Keys.DoubtMessage(in) == nil {
		return id, nil
	}
	return "not written by a broker", nil
}

// Remove deletes one letter permanently. It returns ErrAbsent if the letter is already gone.
func (b *Store) Remove(ctx context.Context, l Letter) error {
	err := b.api.Delete(ctx, b.stream, l.Sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return ErrAbsent
	}
	return err
}

func (b *Store) info(ctx context.Context, stream string) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	s, err := b.cfg.JetStream.Stream(ctx, stream)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, fmt.Errorf("%w: %s", ErrNoStream, stream)
	case err != nil:
		return nil, fmt.Errorf("state of %s: %w", stream, err)
	}
	return s.CachedInfo(), nil
}
