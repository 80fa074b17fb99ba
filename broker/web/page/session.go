package page

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
)

// A session opens a connection when it is first used, and opens another after the connection was lost or closed. It is
// not safe for concurrent use.
type session struct {
	open      func(ctx context.Context) (*inspect.Inspector, error)
	inspector *inspect.Inspector // nil if no connection is open
}

// connect returns the inspector of the open connection. The session closes the inspector.
func (s *session) connect(ctx context.Context) (*inspect.Inspector, error) {
	if s.inspector != nil && s.inspector.Conn.IsConnected() {
		return s.inspector, nil
	}
	s.close()
	i, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	s.inspector = i
	_ = i.ReadKeys(ctx) // without the keys, the page cannot authenticate the other instances' reports
	return i, nil
}

func (s *session) close() {
	if s.inspector != nil {
		s.inspector.Close()
		s.inspector = nil
	}
}

// explain returns the text of an error for a viewer. If the page's user has no permission, the text names the remedy.
func explain(err error) string {
	sentence := text.Printable(err.Error(), 300)
	if errors.Is(err, nats.ErrPermissionViolation) {
		sentence += "; grant it to the page's user, or set DELAY_HTTP_CONTEXT to a user with the permissions in " +
			"test/permissions/page.conf"
	}
	return sentence
}

// fleet returns the reports of the instances except one. If reports may be missing, the string has the reason.
func (s *session) fleet(ctx context.Context, except string) ([]inspect.Member, string) {
	i, err := s.connect(ctx)
	if err != nil {
		return nil, "only this instance is shown: cannot connect: " + text.Printable(err.Error(), 300)
	}
	members, err := i.Fleet(ctx, except)
	if err != nil {
		s.close()
		return members, "the other instances cannot be queried: " + explain(err)
	}
	return members, ""
}
