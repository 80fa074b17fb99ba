package link

import (
	"slices"
	"testing"

	"github.com/nats-io/nats.go"

	"delaybroker/test/natstest"
)

// TestUsers: Users returns the names and public keys of the users, or nil if one of them is unknown.
func TestUsers(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		byPassword, byJWT, byKey := s.Connect(nats.UserInfo("reader", "r")), s.Connect(), s.Connect()
		byJWT.Opts.UserJWT = func() (string, error) { return "e30.eyJzdWIiOiJVQUFBIn0.x", nil } // {} and {"sub":"UAAA"}
		byKey.Opts.Nkey = "UBBB"
		handler := func() (user, password string) { return "writer", "w" } // the settings use such a handler
		byHandler := s.Connect(nats.UserInfoHandler(handler))
		got := Links{Read: byPassword, Write: byHandler, Deliver: byJWT, Control: byKey}.Users()
		if want := []string{"UAAA", "UBBB", "reader", "writer"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		got = Links{Read: byPassword, Write: byPassword, Deliver: byPassword, Control: s.Connect()}.Users()
		if got != nil {
			t.Errorf("with a connection without a user: got %q, want nil", got)
		}
	})
}
