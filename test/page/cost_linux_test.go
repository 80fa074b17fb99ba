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

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

const (
	costRate    = 10_000           // messages per second
	costViewers = 5                // number of event streams
	costTime    = 55 * time.Second // duration of a measurement with viewers; the page reads the streams once in it
)

// BenchmarkPage measures the CPU time of a broker with five viewers of its page, and without a viewer before and after
// that. It measures an idle broker, and a broker that delivers 10,000 messages a second. Under load, a repeated
// measurement differs by a percent. So the benchmark reports what the viewers add under load, and also what they add to
// the idle broker, both as a percentage of the broker's CPU time under load.
func BenchmarkPage(b *testing.B) {
	s := natstest.RunListening(b)
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
		const settle = 7 * time.Second // longer than the delays, and than the lifetime of the page's connections
		time.Sleep(settle)
		without = cpuDuring(b, broker.Pid, costTime/2)
		disconnect := connectViewers(b, address)
		with = cpuDuring(b, broker.Pid, costTime)
		disconnect()
		time.Sleep(settle)
		return without + cpuDuring(b, broker.Pid, costTime/2), with
	}
	percentOfCore := func(d time.Duration) float64 { return 100 * d.Seconds() / costTime.Seconds() }
	for b.Loop() {
		idle, watched := compare()
		stop := flood(nc)
		without, with := compare()
		stop()
		b.ReportMetric(percentOfCore(idle), "%core-idle")
		b.ReportMetric(percentOfCore(watched-idle), "%core-idle-5-more")
		b.ReportMetric(percentOfCore(without), "%core-loaded")
		b.ReportMetric(percentOfCore(with-without), "%core-loaded-5-more")
		b.ReportMetric(100*(with-without).Seconds()/without.Seconds(), "%of-the-broker")
		b.ReportMetric(100*(watched-idle).Seconds()/without.Seconds(), "%of-the-broker-by-idle")
	}
}

// flood publishes messages with a delay of a second, at costRate, until the caller calls stop.
func flood(nc *nats.Conn) (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		body := []byte(strings.Repeat("x", 256))
		const interval = 10 * time.Millisecond
		for tick := time.NewTicker(interval); ; {
			select {
			case <-done:
				tick.Stop()
				return
			case <-tick.C:
				for range costRate * int(interval) / int(time.Second) {
					_ = nc.Publish("delay.1s.orders.x", body) // a lost message does not change the result
				}
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}

// connectViewers opens costViewers event streams, and reads them until the caller calls disconnect.
func connectViewers(b *testing.B, address string) (disconnect func()) {
	b.Helper()
	var reading sync.WaitGroup
	var open []*http.Response
	for range costViewers {
		res, err := http.Get(fmt.Sprintf("http://%s/api/events", address))
		if err != nil || res.StatusCode != 200 {
			b.Fatalf("open an event stream: %v, %v", res, err)
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

// cpuDuring returns the CPU time that a process uses during the time d.
func cpuDuring(b *testing.B, pid int, d time.Duration) time.Duration {
	b.Helper()
	before := cpuTime(b, pid)
	time.Sleep(d)
	return cpuTime(b, pid) - before
}

// cpuTime returns the CPU time that the threads of a process have used. In /proc, it is the first number in the file
// schedstat of each thread, in nanoseconds.
func cpuTime(b *testing.B, pid int) (sum time.Duration) {
	b.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		b.Fatalf("list the threads of the process: got %d, %v", len(threads), err)
	}
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		natstest.NoError(b, err)
		var ns int64
		if _, err := fmt.Sscan(string(text), &ns); err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(ns)
	}
	return sum
}
