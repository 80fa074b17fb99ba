package rivals_test

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

var maxPending = flag.Int("pending.max", 4_000_000, "maximum number of messages of BenchmarkPending")

// pendingRest is the time between the last publish and the measurement: the server writes and leaves its caches, and
// forgets ids, which it keeps for DELAY_DEDUP_WINDOW.
const pendingRest = 3 * time.Minute

// BenchmarkPending measures the memory of the servers for messages that wait in a level: for the first million, and for
// each further one up to 4, and up to -pending.max. No broker runs: messages that wait in a level are not read.
func BenchmarkPending(b *testing.B) {
	for _, c := range []struct {
		servers, targets int
		ids              bool
	}{{1, 1, false}, {1, 100, false}, {1, 100, true}, {1, 100_000, false}, {3, 100, false}, {3, 100, true}} {
		b.Run(fmt.Sprintf("servers=%d/targets=%d/ids=%t", c.servers, c.targets, c.ids), func(b *testing.B) {
			for b.Loop() {
				measurePending(b, c.servers, c.targets, c.ids)
			}
		})
	}
}

func measurePending(b *testing.B, servers, targets int, ids bool) {
	ps := startServers(b, servers)
	l := newLoad(b, ps[0].connect())
	s := l.stream(jetstream.StreamConfig{
		Name: "LEVEL", Subjects: []string{prefix + ".1d.>"}, Replicas: servers, AllowDirect: true,
		Duplicates: 30 * time.Second,
	})
	stored, before := 0, ps.memory()
	for _, count := range []int{1_000_000, 4_000_000, 16_000_000} {
		if count > *maxPending {
			return
		}
		first := stored
		l.run(0, count-stored, func(n int) *nats.Msg {
			m := &nats.Msg{Subject: prefix + ".1d.target." + strconv.Itoa(n%targets), Data: make([]byte, bodySize)}
			if ids {
				m.Header = nats.Header{nats.MsgIdHdr: {fmt.Sprint("reminder-", first+n)}}
			}
			return m
		})
		time.Sleep(pendingRest)
		info, err := s.Info(context.Background())
		natstest.NoError(b, err)
		if info.State.Msgs != uint64(count) {
			b.Fatalf("%d messages wait, want %d", info.State.Msgs, count)
		}
		after := ps.memory()
		b.ReportMetric(1e6*(after-before)/float64((count-stored)*servers), fmt.Sprintf("B/msg-to-%dM", count/1_000_000))
		stored, before = count, after
	}
}

// memory returns the resident memory of all processes, in megabytes.
func (ps processes) memory() (sum float64) {
	for _, p := range ps {
		sum += p.memory()
	}
	return sum
}
