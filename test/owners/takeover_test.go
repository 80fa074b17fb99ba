package owners

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/lease"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// takeOverEvents are events at the active broker or at the servers, each with the maximum lateness that it should
// cause. After an event with takesOver, the other broker is active.
var takeOverEvents = []struct {
	name      string
	takesOver bool
	aim       time.Duration
	begin     func(*testing.B, *duo)
	onCluster bool // the event is measured only on the cluster
}{
	{name: "killed", takesOver: true, aim: 1500 * time.Millisecond,
		begin: func(_ *testing.B, d *duo) { d.active.Crash() }},
	{name: "hung", takesOver: true, aim: 6 * time.Second,
		begin: func(b *testing.B, d *duo) { d.signal(b, syscall.SIGSTOP) }},
	{name: "cut in silence", takesOver: true, aim: 6 * time.Second,
		begin: func(_ *testing.B, d *duo) { d.link.freeze() }},
	{name: "stopped", takesOver: true, aim: 500 * time.Millisecond,
		begin: func(_ *testing.B, d *duo) { d.active.Terminate() }},
	{name: "paused for 2 s", aim: 2500 * time.Millisecond, begin: func(b *testing.B, d *duo) {
		d.signal(b, syscall.SIGSTOP)
		time.Sleep(2 * time.Second)
		d.signal(b, syscall.SIGCONT)
	}},
	{name: "joined by a third", aim: 500 * time.Millisecond, begin: func(b *testing.B, d *duo) { d.start(b, d.url) }},
	{name: "elections of DELAY_OWNERS", aim: 500 * time.Millisecond, onCluster: true,
		begin: func(b *testing.B, d *duo) { d.elect(b) }},
	{name: "its server restarts", aim: 6 * time.Second, onCluster: true, // an acknowledgement of the target may be lost
		begin: func(b *testing.B, d *duo) { d.servers.Restart(b, d.near, time.Second) }},
	{name: "another server restarts", aim: 6 * time.Second, onCluster: true,
		begin: func(b *testing.B, d *duo) { d.servers.Restart(b, (d.near+1)%3, time.Second) }},
}

// duo is two brokers in processes of their own. The first one is active, and connects through a cable.
type duo struct {
	client *harness.Client
	url    string
	env    []string
	link   *cable
	active *natstest.Process

	servers natstest.Cluster // empty with one server
	near    int              // the server at the end of the cable
}

func (d *duo) start(b *testing.B, url string) *natstest.Process {
	return natstest.StartBroker(b, append(d.env, "NATS_URL="+url, "DELAY_PROVISION=create")...)
}

// elect makes the leader of DELAY_OWNERS step down ten times.
func (d *duo) elect(b *testing.B) {
	led := make(map[string]bool)
	for range 10 {
		led[d.client.Stream("DELAY_OWNERS").CachedInfo().Cluster.Leader] = true
		request := &nats.Msg{Subject: "$JS.API.STREAM.LEADER.STEPDOWN.DELAY_OWNERS"}
		_, err := natstest.Request(d.client.NC, request, natstest.Timeout)
		natstest.NoError(b, err)
		time.Sleep(500 * time.Millisecond)
	}
	if len(led) < 2 {
		b.Errorf("the leader was always one of %v", led)
	}
}

func (d *duo) signal(b *testing.B, s syscall.Signal) { natstest.NoError(b, d.active.Signal(s)) }

// BenchmarkTakeOver measures what events at the active one of two brokers, or at the servers, cost on one server and on
// a cluster of three: the maximum lateness of a hundred messages a second. It fails if an instance takes over that
// should not, or if a message is lost. Run it on a quiet machine:
//
//	go test ./test/owners -run '^$' -bench TakeOver -benchtime 1x
func BenchmarkTakeOver(b *testing.B) {
	for _, servers := range []int{1, 3} {
		for _, e := range takeOverEvents {
			if e.onCluster && servers == 1 {
				continue
			}
			b.Run(fmt.Sprintf("%s/servers=%d", e.name, servers), func(b *testing.B) {
				for b.Loop() {
					late, takeOvers := measure(b, servers, e.begin)
					b.ReportMetric(float64(late.Milliseconds()), "max-ms-late")
					b.ReportMetric(float64(e.aim.Milliseconds()), "aim-ms")
					b.ReportMetric(0, "ns/op")
					if takeOvers != 0 != e.takesOver {
						b.Errorf("%d instances took over", takeOvers)
					}
				}
			})
		}
	}
}

// measure returns the maximum lateness of the messages, and the number of take-overs.
func measure(b *testing.B, servers int, begin func(*testing.B, *duo)) (late time.Duration, takeOvers uint64) {
	d := new(duo)
	if servers == 1 {
		d.url = natstest.RunListening(b).Server().ClientURL()
	} else {
		d.servers = natstest.RunCluster(b, func() server.Options { return server.Options{} })
		d.url = d.servers.URL
		d.env = []string{fmt.Sprint("DELAY_STREAM_REPLICAS=", servers)}
	}
	nc, err := nats.Connect(d.url)
	natstest.NoError(b, err)
	b.Cleanup(nc.Close)
	d.link = newCable(b, nc.ConnectedAddr())
	isNear := func(s *server.Server) bool { return s.ID() == nc.ConnectedServerId() }
	d.near = slices.IndexFunc(d.servers.Servers, isNear)
	d.active = d.start(b, "nats://"+d.link.Addr().String())
	d.start(b, d.url)
	c := harness.WrapConn(b, nc)
	d.client = c
	c.Create(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}, Replicas: servers})
	time.Sleep(7 * time.Second) // a stand-by believes "no responders" only 5 s after it has connected
	before, count := epoch(b, c), 0
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	publish := func(duration time.Duration) {
		for end := time.Now().Add(duration); time.Now().Before(end); count++ {
			<-ticker.C
			natstest.Await(b, "a message is stored", func() bool { return c.TryPublish("delay.1s.orders.x", "") == nil })
		}
	}
	publish(3 * time.Second)
	begun := make(chan struct{})
	go func() {
		defer close(begun)
		begin(b, d)
	}()
	publish(10 * time.Second)
	<-begun
	natstest.Await(b, "all messages have arrived", func() bool { return harness.Pending(c, "ORDERS") >= uint64(count) })
	for _, a := range c.Arrivals("ORDERS") {
		late = max(late, a.At.Sub(a.Due))
	}
	return late, epoch(b, c) - before
}

// epoch returns the epoch of the claim, which rises with each take-over.
func epoch(b *testing.B, c *harness.Client) uint64 {
	stream, err := c.JS.Stream(context.Background(), "DELAY_OWNERS")
	natstest.NoError(b, err)
	m, err := stream.GetLastMsgForSubject(context.Background(), "delaysys.owners.claim")
	natstest.NoError(b, err)
	claim, err := lease.ParseClaim(m.Data)
	natstest.NoError(b, err)
	return claim.Epoch
}
