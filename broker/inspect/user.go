package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/nats-io/nats.go"
)

// userInfo is what the server says of a user.
type userInfo struct {
	User        string      `json:"user"`
	Account     string      `json:"account"`
	Permissions permissions `json:"permissions"`
}

// suffix is who a user is, if that is known.
func (u *userInfo) suffix() string {
	if u == nil || u.User == "" {
		return ""
	}
	return fmt.Sprintf(" as %s in account %s", u.User, u.Account)
}

// askUser asks the server who we are. Servers without a system account do not answer.
func (s *Session) askUser(ctx context.Context) (user *userInfo, err error) {
	err = s.question(ctx, Patience, func(ctx context.Context) error {
		m, err := s.Conn.RequestWithContext(ctx, "$SYS.REQ.USER.INFO", nil)
		if err != nil {
			return err
		}
		var answer struct {
			Data *userInfo `json:"data"`
		}
		if err := json.Unmarshal(m.Data, &answer); err != nil {
			return fmt.Errorf("decode who we are: %w", err)
		}
		user = answer.Data
		return nil
	})
	return user, err
}

// linkUser is who a link is that has a user of its own.
type linkUser struct {
	link, from string
	inbox      string
	user       *userInfo // nil when the server does not say
	err        error     // of the connection
}

// ask connects as the link does, and asks the server who that is.
func (l Link) ask(ctx context.Context) linkUser {
	u := linkUser{link: l.Name, from: l.From}
	nc, err := l.Connect()
	if err != nil {
		u.err = err
		return u
	}
	s, err := NewSession(nc, "$JS.API") // which is not asked
	if err != nil {
		nc.Close()
		u.err = err
		return u
	}
	defer s.Close()
	u.inbox = s.inbox()
	u.user, _ = s.askUser(ctx) // not known then
	return u
}

// ServerOf is where a connection leads, without credentials. It is empty while there is none.
func ServerOf(nc *nats.Conn) string {
	server, err := WithoutUser(nc.ConnectedUrl())
	if err != nil {
		return nc.ConnectedAddr()
	}
	return server
}

// WithoutUser is a server's URL for logs. A token stands where a user would, so the user is left out too.
func WithoutUser(server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", errors.New("not a URL")
	}
	u.User = nil
	return u.String(), nil
}
