package link

import (
	"slices"
	"testing"

	"github.com/nats-io/nats.go"

	"delaybroker/test/natstest"
)

// TestUsers: each user has the server's name for it. An unknown user has none.
func TestUsers(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		as := func(opts ...nats.Option) *nats.Conn { return s.Connect(opts...) }
		jwt := func() (string, error) { return "e30.eyJzdWIiOiJVQUFBIn0.x", nil } // {} and {"sub":"UAAA"}
		named, signed := as(nats.UserInfo("reader", "r")), as()
		signed.Opts.UserJWT = jwt
		keyed := as()
		keyed.Opts.Nkey = "UBBB"
		rotated := as(nats.UserInfoHandler(func() (user, password string) { return "writer", "w" })) // as the settings do
		got := Links{Read: named, Write: rotated, Deliver: signed, Control: keyed}.Users()
		if want := []string{"UAAA", "UBBB", "reader", "writer"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := (Links{Read: named, Write: named, Deliver: named, Control: as()}).Users(); got != nil {
			t.Errorf("got %q of a connection without a user, want none", got)
		}
	})
}
