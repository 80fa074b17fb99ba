package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
)

// A session is a verb's way to NATS.
type session struct {
	nc        *nats.Conn
	js        jetstream.JetStream
	names     message.Names
	apiPrefix string // of JetStream, as in "$JS.API"
	api       jsapi.Client

	mu      sync.Mutex // guards what follows
	fail    context.CancelCauseFunc
	refused []error // the first that the server refused
}

// clientConfig is what the settings mean to every verb but serve, which would embed a server where these go to one.
type clientConfig struct {
	access    access
	names     message.Names
	policy    message.Policy // what the broker grants, if it has the same settings
	jsDomain  string
	apiPrefix string
}

// readClientConfig reads the environment and reports all problems at once, wrapping errConfig. It looks only at the
// settings that say how to reach the broker's subjects.
func readClientConfig() (clientConfig, error) {
	s, err := readSettings()
	if err != nil {
		return clientConfig{}, err
	}
	var p problems
	from := s.takeContext(&p, "NATS_CONTEXT", nats.DefaultURL)
	if s.NATSURL == "" {
		s.NATSURL = "nats://" + dialable(s.EmbeddedListen) // where serve, with the same settings, has its server
	}
	c := clientConfig{access: s.access(&p, from), jsDomain: s.JSDomain, apiPrefix: "$JS.API"}
	c.access.options = append(c.access.options, s.inbox(&p, from)...)
	var all problems
	b := s.brokerConfig(&all, false)
	p = append(p, all.of("DELAY_PREFIX", "DELAY_MAX_DELAY", "DELAY_JS_DOMAIN")...)
	c.names, _ = message.NewNames(s.Prefix) // its error is one of these
	c.policy = message.Policy{Names: c.names, Targets: b.Targets, HeaderTargets: b.HeaderTargets, MaxDelay: b.MaxDelay}
	switch {
	case s.JSDomain != "":
		c.apiPrefix = "$JS." + s.JSDomain + ".API"
	case from.JSAPIPrefix != "":
		c.apiPrefix = strings.TrimSuffix(from.JSAPIPrefix, ".")
	}
	return c, p.err()
}

// connect reaches the server that the settings name. The caller closes the session.
func (a *app) connect(ctx context.Context) (*session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a.warnOfNames()
	c, err := readClientConfig()
	if err != nil {
		return nil, err
	}
	s := &session{names: c.names, apiPrefix: c.apiPrefix}
	options := []nats.Option{
		nats.Name(fmt.Sprintf("delaybroker %s client", readBuild().name())),
		nats.MaxReconnects(-1),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // nil when it was us
				fmt.Fprintln(a.stderr, printable(fmt.Sprintf("disconnected from NATS, and trying to get back: %v", err), maxCell))
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) { fmt.Fprintln(a.stderr, "connected to NATS again, at "+serverOf(nc)) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { s.note(err) }),
	}
	if s.nc, err = nats.Connect(c.access.url, append(options, c.access.options...)...); err != nil {
		return nil, fmt.Errorf("connect to NATS at %s: %w", withoutUsers(c.access.url), err)
	}
	s.api = jsapi.Client{Conn: s.nc, API: c.apiPrefix}
	if s.js, err = jetstream.NewWithAPIPrefix(s.nc, c.apiPrefix); err != nil {
		s.close()
		return nil, fmt.Errorf("use JetStream: %w", err)
	}
	return s, nil
}

func (s *session) close() { s.nc.Close() }

// allowed is a context that ends when the server refuses something, with the refusal as its cause: the server says it
// apart from all answers, of which there is none. There is one such context at a time.
func (s *session) allowed(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, fail := context.WithCancelCause(ctx)
	s.mu.Lock()
	s.fail = fail
	s.mu.Unlock()
	return ctx, func() { fail(nil) }
}

func (s *session) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	const most = 10
	if len(s.refused) < most {
		s.refused = append(s.refused, err)
	}
	if s.fail != nil {
		s.fail(err)
	}
}

// heard is what the server has refused so far.
func (s *session) heard() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refused)
}

// stored asks the stream's leader for a message: a replica that lags would show what is gone. It returns
// jetstream.ErrMsgNotFound when the sequence holds nothing.
func (s *session) stored(ctx context.Context, stream string, sequence uint64) (message.Incoming, error) {
	ctx, cancel := context.WithTimeout(ctx, apiPatience)
	defer cancel()
	m, err := s.api.Message(ctx, stream, sequence)
	if err != nil {
		return message.Incoming{}, err
	}
	header, err := m.Header()
	return message.Incoming{
		Stream: stream, Sequence: sequence, At: m.Time, Subject: m.Subject, Header: message.Header(header), Undecodable: err != nil,
		Data: m.Data, KeysRead: true,
	}, nil
}

// dialable turns an address to listen on into one of the same program to connect to: ":8422" and "0.0.0.0:8422" are
// 127.0.0.1:8422.
func dialable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// withoutUsers is a list of servers for messages to people.
func withoutUsers(servers string) string {
	var shown []string
	for server := range strings.SplitSeq(servers, ",") {
		server = strings.TrimSpace(server)
		if !strings.Contains(server, "://") {
			server = "nats://" + server
		}
		if plain, err := withoutUser(server); err == nil {
			shown = append(shown, plain)
		}
	}
	return strings.Join(shown, ",")
}
