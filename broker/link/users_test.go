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
		named, signed, keyed := s.Connect(nats.UserInfo("reader", "r")), s.Connect(), s.Connect()
		signed.Opts.UserJWT = func() (string, error) { return "e30.eyJzdWIiOiJVQUFBIn0.x", nil } // {} and {"sub":"UAAA"}
		keyed.Opts.Nkey = "UBBB"
		handler := func() (user, password string) { return "writer", "w" } // the settings use such a handler
		rotated := s.Connect(nats.UserInfoHandler(handler))
		got := Links{Read: named, Write: rotated, Deliver: signed, Control: keyed}.Users()
		if want := []string{"UAAA", "UBBB", "reader", "writer"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := (Links{Read: named, Write: named, Deliver: named, Control: s.Connect()}).Users(); got != nil {
			t.Errorf("with a connection without a user: got %q, want nil", got)
		}
	})
}
