package owners

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker/lease"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// takeOverEvents are events at the active broker, each with the maximum lateness that it should cause. After an event
// with takesOver, the other broker is active.
var takeOverEvents = []struct {
	name      string
	takesOver bool
	aim       time.Duration
	begin     func(*testing.B, *duo)
}{
	{"killed", true, 1500 * time.Millisecond, func(_ *testing.B, d *duo) { d.active.Crash() }},
	{"hung", true, 6 * time.Second, func(b *testing.B, d *duo) { d.signal(b, syscall.SIGSTOP) }},
	{"cut in silence", true, 6 * time.Second, func(_ *testing.B, d *duo) { d.link.freeze() }},
	{"stopped", true, 500 * time.Millisecond, func(_ *testing.B, d *duo) { d.active.Terminate() }},
	{"paused for 2 s", false, 2500 * time.Millisecond, func(b *testing.B, d *duo) {
		d.signal(b, syscall.SIGSTOP)
		time.Sleep(2 * time.Second)
		d.signal(b, syscall.SIGCONT)
	}},
	{"joined by a third", false, 500 * time.Millisecond, func(b *testing.B, d *duo) { d.start(b, d.url) }},
}

// duo is two brokers in processes of their own. The first one is active, and connects through a cable.
type duo struct {
	url    string
	env    []string
	link   *cable
	active *natstest.Process
}

func (d *duo) start(b *testing.B, url string) *natstest.Process {
	return natstest.StartBroker(b, append(d.env, "NATS_URL="+url, "DELAY_PROVISION=create")...)
}

func (d *duo) signal(b *testing.B, s syscall.Signal) { natstest.NoError(b, d.active.Signal(s)) }

// BenchmarkTakeOver measures what events at the active one of two brokers cost, on one server and on a cluster of
// three: the maximum lateness of a hundred messages a second. It fails if an instance takes over that should not, or if
// a message is lost. Run it on a quiet machine: go test ./test/owners -run '^$' -bench TakeOver -benchtime 1x
func BenchmarkTakeOver(b *testing.B) {
	for _, servers := range []int{1, 3} {
		for _, e := range takeOverEvents {
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
		d.url = natstest.RunCluster(b, func() server.Options { return server.Options{} }).URL
		d.env = []string{fmt.Sprint("DELAY_STREAM_REPLICAS=", servers)}
	}
	nc, err := nats.Connect(d.url)
	natstest.NoError(b, err)
	b.Cleanup(nc.Close)
	d.link = newCable(b, nc.ConnectedAddr())
	d.active = d.start(b, "nats://"+d.link.Addr().String())
	d.start(b, d.url)
	c := harness.WrapConn(b, nc)
	c.Target("ORDERS", "orders.>")
	time.Sleep(7 * time.Second) // a stand-by believes "no responders" only 5 s after it has connected
	before, count := epoch(b, c), 0
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	publish := func(duration time.Duration) {
		for end := time.Now().Add(duration); time.Now().Before(end); count++ {
			<-ticker.C
			c.Publish("delay.1s.orders.x", "")
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
