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
	"delaybroker/broker/timer/store"
)

const (
	// Timeout is the timeout of a request to JetStream.
	Timeout = 5 * time.Second
	// glance is the timeout of a question whose answer only explains an error.
	glance = time.Second
	// mostRefusals bounds what is remembered of refusals. Gather asks some hundred questions at most.
	mostRefusals = 1000
)

// ErrNoJetStream is returned where nobody listens on the JetStream API: the server has none, or another domain.
var ErrNoJetStream = errors.New("JetStream is off: start nats-server with -js, or enable it for this account," +
	" or set DELAY_JS_DOMAIN to where it is")

// A Session asks questions on one connection. A question that the server refuses is not answered: the server says that
// it refused it apart from all answers, and the session ends the waiting.
type Session struct {
	Conn      *nats.Conn
	JetStream jetstream.JetStream

	api jsapi.Client

	mu      sync.Mutex              // guards what follows
	refused []string                // in the server's words, without the error they are part of
	noReply error                   // the refusal to subscribe to answers: then there is no point in asking
	fail    context.CancelCauseFunc // ends the question of now; nil before the first
}

// NewSession takes over the connection: its error handler, and closing it. The prefix is that of the JetStream API,
// "$JS.API" for the own account.
func NewSession(conn *nats.Conn, apiPrefix string) (*Session, error) {
	js, err := jetstream.NewWithAPIPrefix(conn, apiPrefix)
	if err != nil {
		return nil, fmt.Errorf("use JetStream: %w", err)
	}
	s := &Session{
		Conn: conn, JetStream: questions{js}, api: jsapi.Client{Conn: conn, API: apiPrefix, Retries: true},
	}
	conn.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { s.note(err) })
	return s, nil
}

// questions is JetStream for questions of nats.go's, which it repeats by [jsapi.Retry].
type questions struct{ jetstream.JetStream }

// Stream asks for a stream's info.
func (r questions) Stream(ctx context.Context, name string) (s jetstream.Stream, err error) {
	err = jsapi.Retry(ctx, func() (err error) {
		s, err = r.JetStream.Stream(ctx, name)
		return err
	})
	return s, err
}

// AccountInfo asks for the limits of the account.
func (r questions) AccountInfo(ctx context.Context) (info *jetstream.AccountInfo, err error) {
	err = jsapi.Retry(ctx, func() (err error) {
		info, err = r.JetStream.AccountInfo(ctx)
		return err
	})
	return info, err
}

// APIPrefix is the root of the JetStream API that is asked.
func (s *Session) APIPrefix() string { return s.api.API }

// Close closes the connection.
func (s *Session) Close() { s.Conn.Close() }

// Timers are the named timers under this policy.
func (s *Session) Timers(p message.Policy) *store.Timers {
	publish := func(ctx context.Context, m *nats.Msg) jsapi.Reply {
		return s.api.Publish(ctx, p.Names.TimersStream(), m)
	}
	return &store.Timers{
		Policy: p, API: s.api, Publish: publish,
		Scan: lane.Scan{Conn: s.Conn, JetStream: s.JetStream, APIPrefix: s.api.API},
	}
}

// note is called by nats.go for every error that belongs to no answer.
func (s *Session) note(err error) {
	what, ok := jsapi.Refused(err)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasPrefix(what, "Subscription to "+link.Inbox(s.Conn)+".") {
		s.noReply = err
	}
	if len(s.refused) < mostRefusals {
		s.refused = append(s.refused, what)
	}
	if s.fail != nil {
		s.fail(err)
	}
}

// Refusals are what the server has refused so far.
func (s *Session) Refusals() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refused)
}

// Allowed is a context that ends when the server refuses something, with the refusal as its cause. Of several such
// contexts, one within the other, the innermost ends; once it is over, the one around it is watched again.
func (s *Session) Allowed(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, fail := context.WithCancelCause(ctx)
	s.mu.Lock()
	around := s.fail
	s.fail = fail
	if s.noReply != nil {
		fail(s.noReply) // no answer would be heard
	}
	s.mu.Unlock()
	return ctx, func() {
		fail(nil)
		s.mu.Lock()
		s.fail = around
		s.mu.Unlock()
	}
}

// Ask asks a question with the usual timeout.
func (s *Session) Ask(ctx context.Context, f func(ctx context.Context) error) error {
	return s.question(ctx, Timeout, f)
}

// question runs f until it is answered, refused or takes too long.
func (s *Session) question(ctx context.Context, patience time.Duration, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ctx, cancelAllowed := s.Allowed(ctx)
	defer cancelAllowed()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := f(ctx); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	return nil
}

// Forbidden returns the refusal that ended the context, which is one of [Session.Allowed], or nil.
func Forbidden(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, nats.ErrPermissionViolation) {
		return cause
	}
	return nil
}

// Cause returns the refusal that ended the context, which is one of [Session.Allowed], or else err.
func Cause(ctx context.Context, err error) error {
	if refused := Forbidden(ctx); err != nil && refused != nil {
		return fmt.Errorf("%w; see delaybroker doctor", refused)
	}
	return withoutJetStream(err)
}

// withoutJetStream adds what it means that nobody listens on the JetStream API. The client library only says that there
// is no responder.
func withoutJetStream(err error) error {
	switch {
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrJetStreamNotEnabled),
		errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("%w (%w)", ErrNoJetStream, err)
	}
	return err
}

// HasJetStream returns an ErrNoJetStream where there is none. A server that refuses the question has it, as far as we
// know.
func (s *Session) HasJetStream(ctx context.Context) error {
	ctx, cancel := s.Allowed(ctx)
	defer cancel()
	ctx, cancelTimeout := context.WithTimeout(ctx, glance)
	defer cancelTimeout()
	_, err := s.JetStream.AccountInfo(ctx)
	if err = withoutJetStream(err); errors.Is(err, ErrNoJetStream) {
		return err
	}
	return nil
}

// Prefixes are those of the brokers that have streams here, or none where we may not ask.
func (s *Session) Prefixes(ctx context.Context) []string {
	ctx, cancel := s.Allowed(ctx)
	defer cancel()
	ctx, cancelTimeout := context.WithTimeout(ctx, glance)
	defer cancelTimeout()
	all := make(map[string]*jetstream.StreamInfo)
	for info := range s.JetStream.ListStreams(ctx).Info() {
		all[info.Config.Name] = info
	}
	return streams.Prefixes(all)
}

// Stored asks the stream's leader for a message: a replica that lags would show what is gone. It returns
// jetstream.ErrMsgNotFound when the sequence holds nothing.
func (s *Session) Stored(ctx context.Context, stream string, sequence uint64) (message.Incoming, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	m, err := s.api.Message(ctx, stream, sequence)
	if err != nil {
		return message.Incoming{}, err
	}
	in := m.Incoming(stream)
	in.KeysRead = true
	return in, nil
}

// Headers is a pass through the headers of a stream. The verb names its consumer.
func (s *Session) Headers(stream, verb string) lane.Scan {
	return lane.Scan{
		Conn: s.Conn, JetStream: s.JetStream, APIPrefix: s.api.API, Stream: stream, For: verb, HeadersOnly: true,
	}
}
