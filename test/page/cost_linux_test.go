package page_test

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"strconv"
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

// BenchmarkPage measures the CPU of a broker that delivers 10,000 messages a second, in turns without a viewer of its
// page and with five.
func BenchmarkPage(b *testing.B) {
	s := natstest.RunWith(b, server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: b.TempDir()})
	nc := s.Connect()
	target := jetstream.StreamConfig{
		Name: "T", Subjects: []string{"orders.>"}, MaxMsgs: 1000, Storage: jetstream.MemoryStorage,
	}
	if _, err := s.JetStream(nc).CreateStream(b.Context(), target); err != nil {
		b.Fatal(err)
	}
	address := natstest.FreeAddress(b)
	broker := natstest.StartBroker(b, "NATS_URL="+s.Server().ClientURL(), "DELAY_HTTP_ADDR="+address)
	for b.Loop() {
		stop := flood(nc)
		time.Sleep(5 * time.Second) // until as much comes out as goes in
		without := spend(b, broker.Pid)
		leave := look(b, address)
		with := spend(b, broker.Pid)
		leave()
		time.Sleep(7 * time.Second) // it lingers
		stop()
		b.ReportMetric(100*without.Seconds()/costSpan.Seconds(), "%core-without")
		b.ReportMetric(100*with.Seconds()/costSpan.Seconds(), "%core-with-5")
		b.ReportMetric(100*(with.Seconds()/without.Seconds()-1), "%of-the-broker")
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
func spend(b *testing.B, pid int) time.Duration {
	b.Helper()
	before := cpu(b, pid)
	time.Sleep(costSpan)
	return cpu(b, pid) - before
}

// cpu is how much a process has taken: the 14th and 15th field of its stat, in hundredths of a second.
func cpu(b *testing.B, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		b.Fatal(err)
	}
	system, err := strconv.Atoi(fields[12])
	if err != nil {
		b.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}
