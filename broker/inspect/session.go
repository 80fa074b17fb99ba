package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
	"delaybroker/broker/link"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/store"
)

const (
	// explainTimeout is the timeout of a request that is sent only to explain an error to the user.
	explainTimeout = time.Second
	// maxRefusals is the maximum number of stored refusals. Package doctor sends at most a few hundred requests.
	maxRefusals = 1000
)

// errNoJetStream is returned if JetStream is off, disabled for the account, or in another domain.
var errNoJetStream = errors.New("JetStream is off: start nats-server with -js, or enable it for this account," +
	" or set DELAY_JS_DOMAIN to the domain that has it")

// A Session sends requests on one connection, and ends a request that the server refuses.
type Session struct {
	Conn      *nats.Conn
	JetStream jetstream.JetStream

	api jsapi.Client

	mu           sync.Mutex              // guards the fields below
	refusals     []string                // the texts of the server's refusals
	inboxRefusal error                   // the server's refusal of the subscription to answers, or nil
	failRequest  context.CancelCauseFunc // ends the open request; nil if no request is open
}

// NewSession takes over the connection: it sets the error handler, and Close closes the connection. If NewSession
// fails, it closes the connection itself. APIPrefix is the prefix of the JetStream API, "$JS.API" for the user's own
// account.
func NewSession(conn *nats.Conn, apiPrefix string) (*Session, error) {
	js, err := jetstream.NewWithAPIPrefix(conn, apiPrefix)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("use JetStream: %w", err)
	}
	s := &Session{
		Conn: conn, JetStream: retryingClient{js},
		api: jsapi.Client{Conn: conn, API: apiPrefix, Timeout: jsapi.Timeout, Retries: true},
	}
	conn.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { s.note(err) })
	return s, nil
}

// retryingClient is a JetStream client that repeats two of its requests by [jsapi.Retry].
type retryingClient struct{ jetstream.JetStream }

func (r retryingClient) Stream(ctx context.Context, name string) (s jetstream.Stream, err error) {
	err = jsapi.Retry(ctx, func() (err error) {
		s, err = r.JetStream.Stream(ctx, name)
		return err
	})
	return s, err
}

func (r retryingClient) AccountInfo(ctx context.Context) (info *jetstream.AccountInfo, err error) {
	err = jsapi.Retry(ctx, func() (err error) {
		info, err = r.JetStream.AccountInfo(ctx)
		return err
	})
	return info, err
}

// APIPrefix returns the prefix of the JetStream API.
func (s *Session) APIPrefix() string { return s.api.API }

// Close closes the connection.
func (s *Session) Close() { s.Conn.Close() }

// Timers returns the store of the named timers under this policy.
func (s *Session) Timers(p message.Policy) *store.Timers {
	api := s.api
	api.Timeout = 0 // the store has its own timeouts
	publish := func(ctx context.Context, m *nats.Msg) jsapi.Reply {
		return api.Publish(ctx, p.Names.TimersStream(), m)
	}
	return &store.Timers{
		Timers: change.Timers{Policy: p, API: api, Publish: publish},
		Scan:   s.scan(),
	}
}

// note receives the connection's errors from nats.go.
func (s *Session) note(err error) {
	operation, ok := jsapi.RefusedOperation(err)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasPrefix(operation, "Subscription to "+link.Inbox(s.Conn)+".") {
		s.inboxRefusal = err
	}
	if len(s.refusals) < maxRefusals {
		s.refusals = append(s.refusals, operation)
	}
	if s.failRequest != nil {
		s.failRequest(err)
	}
}

// Refusals returns the first maxRefusals refusals of the server.
func (s *Session) Refusals() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refusals)
}

// WithRefusal returns a context that also ends when the server refuses a request. The refusal is the context's cause.
// Of nested contexts, a refusal ends the innermost.
func (s *Session) WithRefusal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, fail := context.WithCancelCause(ctx)
	s.mu.Lock()
	outer := s.failRequest
	s.failRequest = fail
	if s.inboxRefusal != nil {
		fail(s.inboxRefusal) // no answer could arrive
	}
	s.mu.Unlock()
	return ctx, func() {
		fail(nil)
		s.mu.Lock()
		s.failRequest = outer
		s.mu.Unlock()
	}
}

// Ask calls f with a context that ends when the server refuses a request, or after jsapi.Timeout. It does not call f if
// ctx has ended, or if the server has refused the subscription to answers.
func (s *Session) Ask(ctx context.Context, f func(ctx context.Context) error) error {
	return s.request(ctx, jsapi.Timeout, f)
}

// request is Ask with another timeout.
func (s *Session) request(ctx context.Context, timeout time.Duration, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ctx, cancelRefusal := s.WithRefusal(ctx)
	defer cancelRefusal()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := f(ctx); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	return nil
}

// RefusalOf returns the refusal that ended a context of [Session.WithRefusal], or nil.
func RefusalOf(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, nats.ErrPermissionViolation) {
		return cause
	}
	return nil
}

// Cause returns nil if err is nil. Otherwise it returns the refusal that ended a context of [Session.WithRefusal]. If
// no refusal ended the context, Cause returns err, with errNoJetStream if err shows that JetStream is missing.
func Cause(ctx context.Context, err error) error {
	if refused := RefusalOf(ctx); err != nil && refused != nil {
		return fmt.Errorf("%w; see delaybroker doctor", refused)
	}
	return explainNoJetStream(err)
}

// explainNoJetStream adds errNoJetStream to an error that shows that JetStream is missing.
func explainNoJetStream(err error) error {
	switch {
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrJetStreamNotEnabled),
		errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("%w (%w)", errNoJetStream, err)
	}
	return err
}

// CheckJetStream returns errNoJetStream if the account has no JetStream. Other errors do not prove that JetStream is
// missing, so CheckJetStream ignores them.
func (s *Session) CheckJetStream(ctx context.Context) error {
	err := explainNoJetStream(s.request(ctx, explainTimeout, func(ctx context.Context) error {
		_, err := s.JetStream.AccountInfo(ctx)
		return err
	}))
	if errors.Is(err, errNoJetStream) {
		return err
	}
	return nil
}

// Prefixes returns the prefixes of the brokers that have streams in the account. Without permission it returns none.
func (s *Session) Prefixes(ctx context.Context) []string {
	infos := make(map[string]*jetstream.StreamInfo)
	_ = s.request(ctx, explainTimeout, func(ctx context.Context) error { // an error only makes the list shorter
		for info := range s.JetStream.ListStreams(ctx).Info() {
			infos[info.Config.Name] = info
		}
		return nil
	})
	return streams.Prefixes(infos)
}

// Message requests a message from the stream's leader, because a replica that lags could return a deleted message. If
// the sequence has no message, it returns jetstream.ErrMsgNotFound.
func (s *Session) Message(ctx context.Context, stream string, sequence uint64) (message.Incoming, error) {
	m, err := s.api.Message(ctx, stream, sequence)
	if err != nil {
		return message.Incoming{}, err
	}
	in := m.Incoming(stream)
	in.KeysCurrent = true
	return in, nil
}

// ScanHeaders returns a scan of the headers of a stream. The observer becomes part of the consumer's name.
func (s *Session) ScanHeaders(stream, observer string) lane.Scan {
	scan := s.scan()
	scan.Stream, scan.Observer, scan.HeadersOnly = stream, observer, true
	return scan
}

// scan returns a scan of no stream yet.
func (s *Session) scan() lane.Scan {
	return lane.Scan{Conn: s.Conn, JetStream: s.JetStream, APIPrefix: s.api.API}
}

// Clock asks the leader of a stream for its time several times. It returns the leader's clock minus the local clock,
// and the maximum error of this difference, by the fastest answer. The error is nil if the leader has answered at all.
func (s *Session) Clock(ctx context.Context, stream string, attempts int) (offset, margin time.Duration, err error) {
	answered := false
	for range attempts {
		failure := s.Ask(ctx, func(ctx context.Context) error {
			sent := time.Now()
			info, err := s.JetStream.Stream(ctx, stream)
			if half := time.Since(sent) / 2; err == nil && (!answered || half < margin) {
				offset, margin, answered = info.CachedInfo().TimeStamp.Sub(sent.Add(half)), half, true
			}
			return err
		})
		err = cmp.Or(err, failure)
	}
	if answered {
		err = nil
	}
	return offset, margin, err
}
