package natstest

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Reconfigure changes the configuration of a stream, as an operator would, without the broker.
func Reconfigure(t testing.TB, js jetstream.JetStream, stream string, change func(*jetstream.StreamConfig)) {
	t.Helper()
	s, err := js.Stream(context.Background(), stream)
	if err != nil {
		t.Fatalf("stream %s: %v", stream, err)
	}
	cfg := s.CachedInfo().Config
	change(&cfg)
	if _, err := js.UpdateStream(context.Background(), cfg); err != nil {
		t.Fatalf("change stream %s: %v", stream, err)
	}
}

// Tried is the user of BubbleAs with limited permissions.
const Tried = "tried"

// BubbleAs is Bubble with a server that has two users: the default user may do everything, and Tried has the given
// permissions.
func BubbleAs(t *testing.T, rights server.Permissions, f func(t *testing.T, s *Server)) {
	t.Helper()
	opts := server.Options{}
	SetUsers(&opts, rights)
	BubbleWith(t, opts, f)
}

// SetUsers sets the users of BubbleAs. A user's password is its name.
func SetUsers(opts *server.Options, rights server.Permissions) {
	opts.NoAuthUser = "all"
	opts.Users = []*server.User{
		{Username: "all", Password: "all"}, {Username: Tried, Password: Tried, Permissions: &rights},
	}
}

// ConnectAs is like Connect, as a user of SetUsers. The empty name is the default user.
func (s *Server) ConnectAs(user string) *nats.Conn {
	s.t.Helper()
	if user == "" {
		return s.Connect()
	}
	return s.Connect(nats.UserInfo(user, user))
}

// WantTook fails unless exactly this time has passed, under fake time.
func WantTook(t *testing.T, began time.Time, want time.Duration) {
	t.Helper()
	if took := time.Since(began); took != want {
		t.Errorf("took %s, want %s", took, want)
	}
}

// Denied returns the rights to everything but some subjects to publish on.
func Denied(subjects ...string) server.Permissions {
	return server.Permissions{Publish: &server.SubjectPermission{Deny: subjects}}
}
