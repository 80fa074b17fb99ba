package doctor

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/config"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// A scene is a server under fake time, with its brokers and doctor's host.
type scene struct {
	t      *testing.T
	server *natstest.Server
	client *nats.Conn
	js     jetstream.JetStream
	cfg    broker.Config // of the next broker, and of doctor
	host   Host          // of doctor
	links  []Link        // of doctor
}

// A situation is a state of a scene.
type situation struct {
	name    string
	options server.Options
	rights  server.Permissions // of natstest.LimitedUser
	user    string             // doctor's user; empty for the user with all permissions
	set     func(sc *scene)
}

// play sets up the situation under fake time, and judges the findings of doctor.
func (s situation) play(t *testing.T, judge func(t *testing.T, found []Finding)) {
	t.Run(s.name, func(t *testing.T) {
		opts := s.options
		if opts.ServerName == "" {
			opts.ServerName = EmbeddedName // one replica is then no weakness, and the sync interval is known
		}
		natstest.SetUsers(&opts, s.rights)
		natstest.BubbleWith(t, opts, func(t *testing.T, server *natstest.Server) {
			sc := &scene{t: t, server: server, cfg: configOf(t, "1s 5s 5m")}
			sc.cfg.RetryLadder = harness.Ladder(t, "1s 30s")
			sc.cfg.Provision = true
			sc.host = Host{
				Version: "1", Client: nats.Version, Memory: config.Memory{Runtime: config.NoLimit},
				Sync: &Sync{Every: time.Second},
			}
			sc.client = sc.server.Connect()
			sc.js = sc.server.JetStream(sc.client)
			s.set(sc)
			i := harness.InspectAs(t, sc.server, sc.cfg, s.user)
			judge(t, Gather(t.Context(), i, sc.host, sc.links).Findings())
		})
	})
}

// process is a running broker of a scene.
type process struct {
	broker *broker.Broker
	cancel context.CancelFunc
	links  broker.Links
	done   chan struct{} // closed when Run has ended
	err    error         // of Run
}

// launch runs a broker until the scene ends, and does not wait for it.
func (sc *scene) launch(opts ...nats.Option) *process {
	sc.t.Helper()
	cfg := sc.cfg
	cfg.Log = slog.New(slog.NewTextHandler(sc.t.Output(), nil))
	connect := func() *nats.Conn { return sc.server.Connect(append(opts, nats.ReconnectBufSize(-1))...) }
	r := &process{links: broker.Links{Read: connect(), Write: connect(), Deliver: connect(), Control: connect()}}
	var err error
	if r.broker, err = broker.New(r.links, cfg); err != nil {
		sc.t.Fatal(err)
	}
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(context.Background())
	r.done = make(chan struct{})
	go func() {
		defer close(r.done)
		r.err = r.broker.Run(ctx)
	}()
	sc.t.Cleanup(r.stop)
	return r
}

// serve runs a broker until the scene ends, and waits until it is ready.
func (sc *scene) serve(opts ...nats.Option) *process {
	sc.t.Helper()
	r := sc.launch(opts...)
	select {
	case <-r.broker.Ready():
	case <-r.done:
		sc.t.Fatalf("the broker ended before it was ready: %v", r.err)
	}
	return r
}

// stop ends the broker as a signal does.
func (r *process) stop() {
	synctest.Wait() // a server that stops while it creates a stream leaves goroutines behind
	r.cancel()
	<-r.done
	r.close()
}

// crash ends the broker as kill -9 does.
func (r *process) crash() {
	r.close()
	r.stop()
}

func (r *process) close() {
	for _, nc := range []*nats.Conn{r.links.Read, r.links.Write, r.links.Deliver, r.links.Control} {
		nc.Close()
	}
}

// problems returns the warnings and the critical findings, one on each line.
func problems(found []Finding) string {
	var b strings.Builder
	for _, f := range found {
		if f.Severity > Fine {
			fmt.Fprintf(&b, "%s %s: %s ==> %s\n", f.Severity, f.Check, f.Detail, f.Advice)
		}
	}
	return b.String()
}
