package doctor

import (
	"context"
	"encoding/json"
	"fmt"

	"delaybroker/broker/inspect"
	"delaybroker/broker/link"
)

// userInfo is the server's report of a user.
type userInfo struct {
	User        string      `json:"user"`
	Account     string      `json:"account"`
	Permissions permissions `json:"permissions"`
}

// suffix returns the user and account as text, or "" if they are unknown.
func (u *userInfo) suffix() string {
	if u == nil || u.User == "" {
		return ""
	}
	return fmt.Sprintf(" as %s in account %s", u.User, u.Account)
}

// askUser requests the session's own user from the server, and returns nil without a valid answer. A server without a
// system account does not answer. A client that may subscribe to the subject can forge an answer. So if the session's
// user has a name, askUser ignores an answer about any other user.
func askUser(ctx context.Context, s *inspect.Session) (user *userInfo) {
	_ = s.Ask(ctx, func(ctx context.Context) error {
		m, err := s.Conn.RequestWithContext(ctx, "$SYS.REQ.USER.INFO", nil)
		if err != nil {
			return err
		}
		var answer struct {
			Data *userInfo `json:"data"`
		}
		if err := json.Unmarshal(m.Data, &answer); err != nil {
			return err
		}
		if name := link.UserOf(s.Conn); name == "" || answer.Data != nil && answer.Data.User == name {
			user = answer.Data
		}
		return nil
	})
	return user
}

// linkUser describes the user of a link that has its own user.
type linkUser struct {
	link, setting string
	inbox         string
	user          *userInfo // nil if the server does not report the user
	err           error     // the reason for a failed connection
}

// ask connects as the link does, and requests the link's user from the server.
func (l Link) ask(ctx context.Context) linkUser {
	u := linkUser{link: l.Name, setting: l.Setting}
	nc, err := l.Connect()
	if err != nil {
		u.err = err
		return u
	}
	defer nc.Close()
	s, err := inspect.NewSession(nc, ownAPI) // any prefix fits: this session sends no request to JetStream
	if err != nil {
		u.err = err
		return u
	}
	u.inbox = link.Inbox(nc)
	u.user = askUser(ctx, s)
	return u
}
