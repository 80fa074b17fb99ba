package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/layout"
)

// errNoJetStream is returned by verbs where nobody listens on the JetStream API: the server has none, or another domain.
var errNoJetStream = errors.New("JetStream is off: start nats-server with -js, or enable it for this account," +
	" or set DELAY_JS_DOMAIN to where it is")

// withoutJetStream says what it means that nobody listens on the JetStream API. To the client library it is a question like
// any other that nobody takes.
func withoutJetStream(err error) error {
	switch {
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrJetStreamNotEnabled),
		errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("%w (%w)", errNoJetStream, err)
	}
	return err
}

// prefixes are those of the brokers that have streams here, or none where we may not ask.
func (s *session) prefixes(ctx context.Context) []string {
	ctx, cancel := s.allowed(ctx)
	defer cancel()
	ctx, cancelTimeout := context.WithTimeout(ctx, lookTimeout)
	defer cancelTimeout()
	all := make(map[string]*jetstream.StreamInfo)
	for info := range s.js.ListStreams(ctx).Info() {
		all[info.Config.Name] = info
	}
	return layout.Prefixes(all)
}

// hasJetStream asks. A server that refuses the question has it, as far as we know.
func (s *session) hasJetStream(ctx context.Context) error {
	ctx, cancel := s.allowed(ctx)
	defer cancel()
	ctx, cancelTimeout := context.WithTimeout(ctx, lookTimeout)
	defer cancelTimeout()
	_, err := s.js.AccountInfo(ctx)
	if err = withoutJetStream(err); errors.Is(err, errNoJetStream) {
		return err
	}
	return nil
}
