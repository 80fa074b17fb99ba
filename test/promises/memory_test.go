package promises

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// backlog is the size of a backlog in TestMemoryOfABacklog. The long run, with 5 GiB:
//
//	go test ./test/promises -run TestMemoryOfABacklog -v -timeout 30m -memory.backlog 5120
//
// DELAYBROKER_BINARY may have the path of a script that enters a control group with a hard limit and then executes the
// broker.
var backlog = flag.Int("memory.backlog", 200,
	"mebibytes of overdue messages at the start of the broker in TestMemoryOfABacklog")

// TestMemoryOfABacklog starts a broker on many lanes whose messages became due while no broker ran. Except in the case
// of small messages, the messages have more bytes than the broker may hold in memory. The targets are healthy, silent,
// and refusing. The broker's memory stays within the limit of the deployment file for a sidecar or for a shared
// deployment, and the healthy target gets all its messages.
func TestMemoryOfABacklog(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		limit    int // in MiB
		lanes    int
		size     int // bytes of a message; 0 means from 100 bytes to 256 KiB
		maxCount int
	}{
		{"sidecar, small messages", 128, 8, 100, 60_000},
		{"sidecar, large messages", 128, 8, 32 << 10, 1 << 30},
		{"shared, mixed messages", 256, 32, 0, 1 << 30},
	} {
		t.Run(tt.name, func(t *testing.T) { // in parallel, they would take twice the processor time
			s := natstest.RunWith(t, server.Options{Host: "127.0.0.1", Port: -1, JetStream: true,
				StoreDir: t.TempDir()})
			var names []string
			for i := range tt.lanes {
				names = append(names, fmt.Sprintf("%dms", 1001+i))
			}
			env := []string{
				"NATS_URL=nats://" + s.Server().Addr().String(), "DELAY_PROVISION=create",
				"DELAY_LEVELS=" + strings.Join(names, ","),
				fmt.Sprintf("GOMEMLIMIT=%dMiB", tt.limit*9/10),
			}
			natstest.StartBroker(t, env...).Terminate()
			c := harness.NewClient(t, s)
			c.Target("ORDERS", "orders.>")
			c.SilentTarget("silent.>")
			refusing := jetstream.StreamConfig{Name: "FULL", Subjects: []string{"full.>"}, MaxMsgs: 1,
				Discard: jetstream.DiscardNew}
			c.Create(refusing)
			healthy := publishBacklog(c, names, tt.size, tt.maxCount)
			time.Sleep(2 * time.Second) // until the last message is overdue
			p := natstest.StartBroker(t, env...)
			started := time.Now()
			for arrived := uint64(0); arrived < healthy || time.Since(started) < 8*time.Second; {
				time.Sleep(250 * time.Millisecond)
				st := c.Stream("ORDERS")
				if arrived = st.CachedInfo().State.Msgs; time.Since(started) > 10*time.Minute {
					t.Fatalf("after %s, %d of %d have arrived", time.Since(started), arrived, healthy)
				}
			}
			peak := peakOf(t, p.Pid)
			t.Logf("%d MiB at the most, all messages for healthy targets delivered after %s", peak,
				time.Since(started).Round(time.Second))
			if peak > tt.limit {
				t.Errorf("the broker took %d MiB, want at most %d", peak, tt.limit)
			}
		})
	}
}

// publishBacklog publishes a backlog to the lanes in turn. A third of the backlog is for a healthy target, a third for
// a silent target, and a third for a target that refuses. It returns the number of messages for the healthy target.
func publishBacklog(c *harness.Client, lanes []string, size, maxCount int) (healthy uint64) {
	c.T.Helper()
	targets := []string{"orders.x", "silent.x", "full.x"}
	body := make([]byte, 256<<10)
	var last jetstream.PubAckFuture
	for n, left := 0, *backlog<<20; left > 0 && n < maxCount; n++ {
		length := size
		if length == 0 {
			length = []int{100, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10}[n%6]
		}
		m := &nats.Msg{Subject: "delay." + lanes[n/18%len(lanes)] + "." + targets[n/6%3], Data: body[:length],
			Header: nats.Header{}}
		if m.Header.Set("Trace", "one of some"); n/6%3 == 0 {
			healthy++
		} else {
			m.Header.Set(message.HeaderDeliver, "stream")
		}
		var err error
		if last, err = c.JS.PublishMsgAsync(m, jetstream.WithStallWait(natstest.Timeout)); err != nil {
			c.T.Fatal(err)
		}
		left -= length
	}
	<-last.Ok()
	<-c.JS.PublishAsyncComplete()
	return healthy
}

// peakOf returns the maximum resident memory of a process, in MiB.
func peakOf(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatalf("the broker is gone: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.Atoi(strings.Fields(text)[0])
			natstest.NoError(t, err)
			return kb >> 10
		}
	}
	t.Fatal("/proc does not report the peak memory of the process")
	return 0
}
