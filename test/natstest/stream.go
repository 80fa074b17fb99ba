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

// TimersStream creates the stream of timers, with the default names. It returns a connection for the timers under test,
// and a client for tests to publish with.
func (s *Server) TimersStream() (*nats.Conn, jetstream.JetStream) {
	s.t.Helper()
	nc := s.Connect()
	js := s.JetStream(nc)
	cfg := jetstream.StreamConfig{Name: "DELAY_TIMERS", Subjects: []string{"delaytimer.>"}}
	if _, err := js.CreateStream(context.Background(), cfg); err != nil {
		s.t.Fatal(err)
	}
	return nc, js
}

// LimitedUser is the name of the user with limited permissions: see BubbleAs.
const LimitedUser = "limited"

// BubbleAs is like Bubble, with a server that has two users: the default user has all rights, and LimitedUser has these
// rights.
func BubbleAs(t *testing.T, rights server.Permissions, f func(t *testing.T, s *Server)) {
	t.Helper()
	opts := server.Options{}
	SetUsers(&opts, rights)
	BubbleWith(t, opts, f)
}

// SetUsers sets the two users of BubbleAs. The password of each user is the name of the user.
func SetUsers(opts *server.Options, rights server.Permissions) {
	opts.NoAuthUser = "all"
	opts.Users = []*server.User{
		{Username: "all", Password: "all"}, {Username: LimitedUser, Password: LimitedUser, Permissions: &rights},
	}
}

// ConnectAs is like Connect, as a user whose password is the name of the user. The empty name is the default user.
func (s *Server) ConnectAs(user string) *nats.Conn {
	s.t.Helper()
	if user == "" {
		return s.Connect()
	}
	return s.Connect(nats.UserInfo(user, user))
}

// CheckElapsed fails the test unless exactly this duration has passed since began. It is for fake time.
func CheckElapsed(t *testing.T, began time.Time, want time.Duration) {
	t.Helper()
	if took := time.Since(began); took != want {
		t.Errorf("took %s, want %s", took, want)
	}
}

// DenyPublish returns all rights except the right to publish on these subjects.
func DenyPublish(subjects ...string) server.Permissions {
	return server.Permissions{Publish: &server.SubjectPermission{Deny: subjects}}
}
