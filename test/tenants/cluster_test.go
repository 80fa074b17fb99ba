package tenants

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestReadUserOnCluster: the reader's user needs the right readOnCluster. On a cluster, a reader at the end of a stream
// asks the leader whether the replica with the reader's consumer has all messages. Without an answer, the reader
// creates another consumer. The test needs real servers and real time.
func TestReadUserOnCluster(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	url := natstest.RunCluster(t, func() server.Options {
		opts := natstest.Options(t, tenantsConf)
		less := natstest.Options(t, tenantsConf,
			natstest.Grant{User: "delay-read", List: "publish", Subject: readOnCluster})
		for _, u := range less.Users {
			if u.Username == "delay-read" {
				u.Username = "delay-read-less"
				opts.Users = append(opts.Users, u)
			}
		}
		return opts
	}).URL
	cfg, err := (&stage{}).config()
	natstest.NoError(t, err)
	js, err := jetstream.New(dial(t, url, "provision", "s"))
	natstest.NoError(t, err)
	natstest.NoError(t, (&stage{}).provision(js, cfg))
	anew := make(chan string, 1000)
	for _, reader := range []string{"delay-read", "delay-read-less"} {
		runReader(t, url, reader, func() { anew <- reader })
	}
	// Both readers ask at the same intervals, and only one reader gets answers. The test waits for two new consumers of
	// the other reader. In this time, the reader with answers should create none.
	for range 2 {
		select {
		case reader := <-anew:
			if reader != "delay-read-less" {
				t.Fatal("the reader with all rights creates another consumer")
			}
		case <-time.After(time.Minute):
			t.Fatalf("nothing breaks without %s", readOnCluster)
		}
	}
}

func dial(t *testing.T, url, user, password string) *nats.Conn {
	t.Helper()
	inbox := strings.TrimSuffix(strings.TrimPrefix(user, "delay-"), "-less")
	nc, err := nats.Connect(url, nats.UserInfo(user, password), nats.CustomInboxPrefix("_INBOX_"+inbox),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	natstest.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// runReader runs a broker whose read connection has this user. It calls anew when the reader creates another consumer.
func runReader(t *testing.T, url, reader string, anew func()) {
	t.Helper()
	cfg, err := (&stage{}).config()
	natstest.NoError(t, err)
	lines := harness.Listener{Phrase: "reading the lane was interrupted", Notify: anew}
	cfg.Log = slog.New(slog.NewTextHandler(lines, nil))
	_, stop, err := runLinks(broker.Links{
		Read: dial(t, url, reader, "r"), Write: dial(t, url, "delay-write", "w"),
		Deliver: dial(t, url, "delay-deliver", "d"), Control: dial(t, url, "delay-control", "c"),
	}, cfg)
	natstest.NoError(t, err)
	t.Cleanup(func() {
		if err := stop(); err != nil && !errors.Is(err, broker.ErrGrace) {
			t.Errorf("stop the broker: %v", err)
		}
	})
}
