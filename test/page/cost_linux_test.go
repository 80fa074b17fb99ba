package page_test

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

const (
	costRate    = 10_000 // messages a second
	costViewers = 5
	costSpan    = 55 * time.Second // more than the page pauses between looks at the streams
)

// BenchmarkPage measures the CPU of a broker that does nothing, and of one that delivers 10,000 messages a second: each
// without a viewer of its page, with five, and without again. Under load two spans differ by a percent anyway, so that
// the page's share is told twice: by what it adds to the load, and by what it adds to a broker that does nothing.
func BenchmarkPage(b *testing.B) {
	s := natstest.RunWith(b, server.Options{Host: "127.0.0.1", Port: -1, JetStream: true})
	nc := s.Connect()
	target := jetstream.StreamConfig{
		Name: "T", Subjects: []string{"orders.>"}, MaxMsgs: 1000, Storage: jetstream.MemoryStorage,
	}
	if _, err := s.JetStream(nc).CreateStream(b.Context(), target); err != nil {
		b.Fatal(err)
	}
	address := natstest.FreeAddress(b)
	broker := natstest.StartBroker(b, "NATS_URL="+s.Server().ClientURL(), "DELAY_HTTP_ADDR="+address)
	compare := func() (without, with time.Duration) {
		const settle = 7 * time.Second // until as much comes out as goes in, and the page lingers no more
		time.Sleep(settle)
		without = spend(b, broker.Pid, costSpan/2)
		leave := look(b, address)
		with = spend(b, broker.Pid, costSpan)
		leave()
		time.Sleep(settle)
		return without + spend(b, broker.Pid, costSpan/2), with
	}
	core := func(d time.Duration) float64 { return 100 * d.Seconds() / costSpan.Seconds() }
	for b.Loop() {
		idle, watched := compare()
		stop := flood(nc)
		without, with := compare()
		stop()
		b.ReportMetric(core(idle), "%core-idle")
		b.ReportMetric(core(watched-idle), "%core-idle-5-more")
		b.ReportMetric(core(without), "%core-loaded")
		b.ReportMetric(core(with-without), "%core-loaded-5-more")
		b.ReportMetric(100*(with-without).Seconds()/without.Seconds(), "%of-the-broker")
		b.ReportMetric(100*(watched-idle).Seconds()/without.Seconds(), "%of-the-broker-by-idle")
	}
}

// flood publishes until it is stopped.
func flood(nc *nats.Conn) (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		body := []byte(strings.Repeat("x", 256))
		const each = 10 * time.Millisecond
		for tick := time.NewTicker(each); ; {
			select {
			case <-done:
				tick.Stop()
				return
			case <-tick.C:
				for range costRate * int(each) / int(time.Second) {
					_ = nc.Publish("delay.1s.orders.x", body) // what is missed is missed
				}
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}

// look opens the stream of events for all viewers, and reads what comes.
func look(b *testing.B, address string) (leave func()) {
	b.Helper()
	var reading sync.WaitGroup
	var open []*http.Response
	for range costViewers {
		res, err := http.Get(fmt.Sprintf("http://%s/api/events", address))
		if err != nil || res.StatusCode != 200 {
			b.Fatalf("look at the page: %v %v", res, err)
		}
		open = append(open, res)
		reading.Go(func() {
			lines := bufio.NewReader(res.Body)
			for {
				if _, err := lines.ReadString('\n'); err != nil {
					return
				}
			}
		})
	}
	return func() {
		for _, res := range open {
			res.Body.Close()
		}
		reading.Wait()
	}
}

// spend is how much CPU a process takes in a while.
func spend(b *testing.B, pid int, while time.Duration) time.Duration {
	b.Helper()
	before := cpu(b, pid)
	time.Sleep(while)
	return cpu(b, pid) - before
}

// cpu is how much a process has taken: the first number of each thread's schedstat, in nanoseconds.
func cpu(b *testing.B, pid int) (sum time.Duration) {
	b.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		b.Fatalf("the process has no threads: %v", err)
	}
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			b.Fatal(err)
		}
		var ns int64
		if _, err := fmt.Sscan(string(text), &ns); err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(ns)
	}
	return sum
}
