package page

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
)

// A session is a connection for requests. It opens on first use, and again after an error.
type session struct {
	open func(ctx context.Context) (*inspect.Inspector, error)
	by   *inspect.Inspector // nil while it is closed
}

func (s *session) take(ctx context.Context) (*inspect.Inspector, error) {
	if s.by != nil && s.by.Conn.IsConnected() {
		return s.by, nil
	}
	s.close()
	i, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	s.by = i
	_ = i.ReadKeys(ctx) // without the keys, the page shows answers as unproven
	return i, nil
}

func (s *session) close() {
	if s.by != nil {
		s.by.Close()
		s.by = nil
	}
}

// explain returns the text of an error for a viewer. If the page's user lacks a permission, the text names the remedy.
func explain(err error) string {
	sentence := text.Printable(err.Error(), 300)
	if errors.Is(err, nats.ErrPermissionViolation) {
		sentence += "; grant it to the page's user, or set DELAY_HTTP_CONTEXT (page.conf has the rights)"
	}
	return sentence
}

// fleet returns the reports of all instances, and the reason if instances may be missing.
func (s *session) fleet(ctx context.Context, more broker.QueryOptions) ([]inspect.Member, string) {
	i, err := s.take(ctx)
	if err != nil {
		return nil, "only this instance is shown: " + text.Printable(err.Error(), 300)
	}
	members, err := i.Fleet(ctx, more)
	if err != nil {
		s.close()
		return members, "the other instances cannot be queried: " + explain(err)
	}
	return members, ""
}
