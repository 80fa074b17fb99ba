package tenants

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
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
	anew, began := make(chan struct{}, 1000), time.Now()
	stopLess := runReader(t, url, "delay-read-less", func() { anew <- struct{}{} })
	for range 2 { // it takes one consumer after the other, because the leader does not answer it
		select {
		case <-anew:
		case <-time.After(time.Minute):
			t.Fatalf("nothing breaks without %s", readOnCluster)
		}
	}
	took := time.Since(began)
	stopLess() // only one broker at a time is active, and reads
	withAll := make(chan struct{}, 1000)
	runReader(t, url, "delay-read", func() { withAll <- struct{}{} })
	select {
	case <-withAll:
		t.Error("the reader with all rights creates another consumer")
	case <-time.After(took):
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

// runReader runs a broker whose read connection has this user, until stop is called or the test ends. It calls anew
// when the reader creates another consumer.
func runReader(t *testing.T, url, reader string, anew func()) (stop func()) {
	t.Helper()
	cfg, err := (&stage{}).config()
	natstest.NoError(t, err)
	lines := harness.Listener{Phrase: "reading the lane was interrupted", Notify: anew}
	cfg.Log = slog.New(slog.NewTextHandler(lines, nil))
	_, stopBroker, err := runLinks(broker.Links{
		Read: dial(t, url, reader, "r"), Write: dial(t, url, "delay-write", "w"),
		Deliver: dial(t, url, "delay-deliver", "d"), Control: dial(t, url, "delay-control", "c"),
	}, cfg)
	natstest.NoError(t, err)
	stop = sync.OnceFunc(func() {
		if err := stopBroker(); err != nil && !errors.Is(err, broker.ErrGrace) {
			t.Errorf("stop the broker: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}
