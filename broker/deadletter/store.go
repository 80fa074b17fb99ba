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

// backoff is the time before a publish to a busy stream is repeated.
const backoff = 50 * time.Millisecond

// Store is the stream of dead letters. It is safe for concurrent use.
type Store struct {
	scan   lane.Scan // of the stream of dead letters
	policy message.Policy
	retry  string // name of the retry lane that gets the resent messages, such as 1s
	api    jsapi.Client

	mu    sync.Mutex // guards limit
	limit int64      // result of laneLimit; zero before the first successful call
}

// New returns the store of a broker's dead letters. Scan has the connection, and policy the names of the subjects and
// the allowed targets. Retry is the name of the shortest retry lane. New sends no request.
func New(scan lane.Scan, policy message.Policy, retry string) *Store {
	scan.Stream, scan.Observer = policy.Names.DeadStream(), "dead"
	api := jsapi.Client{Conn: scan.Conn, API: scan.APIPrefix, Timeout: jsapi.Timeout}
	return &Store{scan: scan, policy: policy, retry: retry, api: api}
}

// Now returns the time by the clock of the stream's leader. The timestamps of the letters are by the same clock.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	info, err := s.info(ctx, s.scan.Stream)
	if err != nil {
		return time.Time{}, err
	}
	return info.TimeStamp, nil
}

// Query selects the letters to list.
type Query struct {
	Filter
	HeadersOnly bool // read no bodies
	// Progress, if not nil, is called for every letter that List reads, with the number of letters so far and an
	// estimate of the total.
	Progress func(read, total uint64)
}

// List yields the selected letters that the stream has when the iteration begins, in the order of their sequences. It
// ends at the first error. An unreadable letter is not an error. List requests a batch after the caller has consumed
// the previous batch: see lane.Scan.
func (s *Store) List(ctx context.Context, q Query) iter.Seq2[Letter, error] {
	return func(yield func(Letter, error) bool) {
		info, err := s.info(ctx, s.scan.Stream)
		if err != nil {
			yield(Letter{}, err)
			return
		}
		if info.State.Msgs == 0 {
			return
		}
		scan := s.scan
		scan.Filters, scan.Since = q.subjects(s.policy.Names), q.minTimestamp()
		scan.To, scan.HeadersOnly = info.State.LastSeq, q.HeadersOnly
		if first, last := q.bounds(); last > 0 {
			scan.From, scan.To = first, min(last, info.State.LastSeq)
		}
		var read uint64
		for m, err := range scan.All(ctx) {
			if err != nil {
				yield(Letter{}, fmt.Errorf("read %s: %w", s.scan.Stream, err))
				return
			}
			read++
			if q.Progress != nil {
				q.Progress(read, read+m.Pending)
			}
			if l := newLetter(s.policy, s.scan.Stream, m, q.HeadersOnly); q.Match(l) && !yield(l, nil) {
				return
			}
		}
	}
}

// Resend publishes the message of a letter to the lane, and then removes the letter. A broker delivers the message when
// it is due. The letter must have its body. Now is the server's time. ErrAbsent means that the stream no longer has the
// letter, because another operator has resent or removed it, and that Resend did nothing. After ErrNotResendable,
// Resend did nothing either, and other letters may still be resent. After any other error the lane may already have the
// message, and the letter should be resent soon: see the package documentation.
func (s *Store) Resend(ctx context.Context, l Letter, c Resend, now time.Time) error {
	m, err := s.newMessage(l, c, now)
	if err != nil {
		return err
	}
	if err := s.checkPresent(ctx, l); err != nil {
		return err
	}
	if err := s.store(ctx, l.ID, m); err != nil {
		return err
	}
	if err := s.Remove(ctx, l); err != nil && !errors.Is(err, ErrAbsent) { // ErrAbsent: another operator has removed it
		return fmt.Errorf("the message was resent, but its letter was not removed: %w", err)
	}
	return nil
}

// DryRun returns the error that Resend would return for the letter and the change, and stores nothing. It does not
// detect that another operator has resent or removed the letter, or that the lane is full.
func (s *Store) DryRun(ctx context.Context, l Letter, c Resend, now time.Time) error {
	m, err := s.newMessage(l, c, now)
	if err != nil {
		return err
	}
	limit, err := s.laneLimit(ctx)
	if err != nil {
		return err
	}
	if int64(m.Size()-len(m.Subject)) > limit {
		return ErrTooLarge
	}
	return nil
}

// laneLimit returns the maximum size of a message in the lane, in bytes of headers and body. After a successful call,
// further calls send no request.
func (s *Store) laneLimit(ctx context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit > 0 {
		return s.limit, nil
	}
	info, err := s.info(ctx, s.policy.Names.RetryStream(s.retry))
	if err != nil {
		return 0, err
	}
	s.limit = s.scan.Conn.MaxPayload()
	if size := info.Config.MaxMsgSize; size > 0 {
		s.limit = min(s.limit, int64(size))
	}
	return s.limit, nil
}

// newMessage returns the sealed message that Resend publishes to the lane.
func (s *Store) newMessage(l Letter, c Resend, now time.Time) (*nats.Msg, error) {
	if l.Data == nil && l.Size > 0 {
		return nil, errors.New("bug: resend a letter without its body")
	}
	letter, err := l.resentMessage(s.policy, c, now)
	if err != nil {
		return nil, err
	}
	m := &nats.Msg{
		Subject: s.policy.Names.Retry(s.retry, letter.Target), Header: nats.Header(letter.ResentHeader()),
		Data: l.Data,
	}
	if c.Edit.Body != nil {
		m.Data = c.Edit.Body
	}
	// The id ends with its own seal, so no client can have used the id: see the package documentation.
	id := m.Header.Get("Nats-Msg-Id") + c.Edit.digest()
	m.Header.Set("Nats-Msg-Id", id+"/"+s.policy.Keys.Seal("resent", []byte(id)))
	s.policy.Keys.SealMessage(m.Subject, message.Header(m.Header), m.Data)
	return m, nil
}

// checkPresent returns ErrAbsent if the stream's leader no longer has the letter: see the package documentation.
func (s *Store) checkPresent(ctx context.Context, l Letter) error {
	m, err := s.api.Message(ctx, s.scan.Stream, l.Sequence)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound), err == nil && !m.Time.Equal(l.At): // the stream was created again
		return ErrAbsent
	case err != nil:
		return fmt.Errorf("request the letter: %w", err)
	}
	return nil
}

// store publishes a message to the lane, and returns nil only if an answer proves that the lane has stored the message,
// now or in an earlier resend. DelayID is the Delay-Id of the message.
func (s *Store) store(ctx context.Context, delayID string, m *nats.Msg) error {
	stream := s.policy.Names.RetryStream(s.retry)
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	for {
		reply := s.api.Publish(ctx, stream, m)
		switch reply.Outcome() {
		case jsapi.Stored:
			return nil
		case jsapi.Duplicate:
		case jsapi.TooLarge:
			return ErrTooLarge
		case jsapi.Unavailable:
			return fmt.Errorf("%w: nothing listens on %s", errNoStream, m.Subject)
		case jsapi.Busy:
			select {
			case <-ctx.Done():
				return fmt.Errorf("publish on %s: %w: %w", m.Subject, reply.Failure(), context.Cause(ctx))
			case <-time.After(backoff):
				continue
			}
		default:
			return fmt.Errorf("publish on %s: %w", m.Subject, reply.Failure())
		}
		// If the stored copy is gone, a broker has moved the message of an earlier resend. The copy can be another message
		// only if the brokers have no secret: the seal at the end of the Nats-Msg-Id is then empty.
		id, err := s.storedID(ctx, stream, reply.Ack.Sequence)
		if err != nil || id == "" || id == delayID {
			return err
		}
		m.Header.Set("Nats-Msg-Id", m.Header.Get("Nats-Msg-Id")+"+"+rand.Text())
	}
}

// storedID requests a message in the lane from the stream's leader, and returns the message's Delay-Id. It returns ""
// if the message is gone, and a text that is no Delay-Id if no seal proves that a broker wrote the message.
func (s *Store) storedID(ctx context.Context, stream string, sequence uint64) (string, error) {
	m, err := s.api.Message(ctx, stream, sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	in := m.Incoming(stream)
	id := message.ClaimOf(in.Header).ID
	if !in.Undecodable && id != "" && s.policy.Keys.Doubt(in) == nil {
		return id, nil
	}
	return "not written by a broker", nil
}

// Remove deletes one letter permanently. It returns ErrAbsent if the letter is already gone.
func (s *Store) Remove(ctx context.Context, l Letter) error {
	err := s.api.Delete(ctx, s.scan.Stream, l.Sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return ErrAbsent
	}
	return err
}

func (s *Store) info(ctx context.Context, name string) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	stream, err := s.scan.JetStream.Stream(ctx, name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, fmt.Errorf("%w: %s", errNoStream, name)
	case err != nil:
		return nil, fmt.Errorf("request the state of %s: %w", name, err)
	}
	return stream.CachedInfo(), nil
}
