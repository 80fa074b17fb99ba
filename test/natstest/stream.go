package natstest

import (
	"context"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// Reconfigure changes the configuration of a stream, as an operator would behind a broker's back.
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

// BubbleAs is Bubble with a server that has two users: the default one may do everything, and user has these rights. A
// user's password is its name.
func BubbleAs(t *testing.T, user string, rights server.Permissions, f func(t *testing.T, s *Server)) {
	t.Helper()
	BubbleWith(t, server.Options{NoAuthUser: "all", Users: []*server.User{
		{Username: "all", Password: "all"}, {Username: user, Password: user, Permissions: &rights},
	}}, f)
}

// Denied returns the rights to everything but some subjects to publish on.
func Denied(subjects ...string) server.Permissions {
	return server.Permissions{Publish: &server.SubjectPermission{Deny: subjects}}
}
