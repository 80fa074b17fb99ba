package tenants

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/streams"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// withoutCreate has a user of the broker without the rights to create and change streams, and a user with all rights.
func withoutCreate() server.Options {
	return server.Options{Users: []*server.User{
		{Username: "all", Password: "a"},
		{Username: "broker", Password: "b", Permissions: &server.Permissions{Publish: &server.SubjectPermission{
			Allow: []string{">"}, Deny: []string{"$JS.API.STREAM.CREATE.>", "$JS.API.STREAM.UPDATE.>"},
		}}},
	}}
}

// provisionAll creates the streams for a ladder. It returns a client with all rights.
func provisionAll(t *testing.T, s *natstest.Server, ladderOf string) *harness.Client {
	t.Helper()
	cfg := broker.Config{Ladder: harness.Ladder(t, ladderOf), Leaser: harness.Together}
	harness.StartBroker(t, s, cfg, nats.UserInfo("all", "a")).Stop()
	return harness.WrapConn(t, s.Connect(nats.UserInfo("all", "a")))
}

// TestRightsToCreateAreNotNeeded: a broker whose configuration allows new streams, but whose user may not create any,
// serves the existing streams. If the streams need no change, the broker sends no request to change them. If the levels
// differ, the streams keep their subjects, and one log line names the missing right.
func TestRightsToCreateAreNotNeeded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, ladder string
		refused      int
	}{
		{"the same levels", "1s 5s 1m", 0},
		{"one level less", "1s 1m", 1},
	} {
		natstest.SubtestWith(t, tt.name, withoutCreate(), func(t *testing.T, s *natstest.Server) {
			c := provisionAll(t, s, "1s 5s 1m")
			in := c.Subscribe("orders.>")
			log := harness.NewCountingLog()
			began := time.Now()
			harness.StartBroker(
				t,
				s,
				broker.Config{Ladder: harness.Ladder(t, tt.ladder), Leaser: harness.Together, Log: slog.New(log)},
				nats.UserInfo("broker", "b"),
			)
			if took := time.Since(began); took > time.Second {
				t.Errorf("ready after %s, want immediately", took)
			}
			if got := log.CountPrefix("the streams need a change, but the broker's user may not"); got != tt.refused {
				t.Errorf("logged %d times that a right is missing, want %d", got, tt.refused)
			}
			c.Publish("delay.5s.orders.x", "")
			time.Sleep(10 * time.Second)
			if got := in.Arrivals(); len(got) != 1 || !got[0].At.Equal(got[0].Due) {
				t.Errorf("got %+v, want one message at its due time", got)
			}
		})
	}
}

// TestRightsToCreateAreNamed: streams are missing, and the user has no right to create them. The broker does not start,
// and its error immediately names the streams and the right. Only the stream of owners may be missing.
func TestRightsToCreateAreNamed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		gone  string
		fails bool
	}{{"DELAY_5s", true}, {"DELAY_OWNERS", false}} {
		natstest.SubtestWith(t, tt.gone, withoutCreate(), func(t *testing.T, s *natstest.Server) {
			c := provisionAll(t, s, "1s 5s 1m")
			c.Remove(tt.gone)
			log := harness.NewCountingLog()
			began := time.Now()
			b := harness.LaunchBroker(t, s,
				broker.Config{Ladder: harness.Ladder(t, "1s 5s 1m"), Leaser: harness.Together, Log: slog.New(log)},
				nats.UserInfo("broker", "b"))
			if !tt.fails {
				<-b.Broker.Ready()
				if log.CountPrefix("the stream with which instances agree on the active one is") != 1 {
					t.Error("the log does not say that a stream is missing")
				}
				b.Crash() // a clean stop would wait for the stream
				return
			}
			var err error
			select {
			case err = <-b.Done:
			case <-time.After(time.Minute):
				t.Fatal("the broker still tries after a minute")
			}
			b.Ended = true
			b.Close()
			if took := time.Since(began); took > time.Second {
				t.Errorf("ended after %s, want immediately", took)
			}
			if !errors.Is(err, streams.ErrMissingStreams) || !errors.Is(err, streams.ErrForbidden) {
				t.Errorf("got %v, want ErrMissingStreams and ErrForbidden", err)
			}
			for _, want := range []string{"1 of 10: DELAY_5s", "Publish to $JS.API.STREAM.CREATE.DELAY_5s"} {
				if !strings.Contains(fmt.Sprint(err), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
		})
	}
}
