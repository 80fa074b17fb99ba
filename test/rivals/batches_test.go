package rivals_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
	"delaybroker/test/rivals/bench"
)

const (
	batchRound  = 40_000 // messages in a round
	batchWindow = 4096   // messages without an acknowledgement
)

// BenchmarkBatches measures the CPU time to store a message like a hop: with an acknowledgement for each message, as
// the broker publishes (flow=1), and in a fast batch of the server, with one acknowledgement for up to flow messages.
// They take turns.
func BenchmarkBatches(b *testing.B) {
	for _, servers := range []int{1, 3} {
		b.Run(fmt.Sprintf("servers=%d", servers), func(b *testing.B) {
			ps := startServers(b, servers)
			l := newLoad(b, ps[0].connect())
			for b.Loop() {
				for round := range 3 {
					for _, flow := range []int{1, 50, 500} {
						l.stream(jetstream.StreamConfig{
							Name: "HOPS", Subjects: []string{"hops.>"}, Replicas: servers, AllowBatchPublish: true, AllowDirect: true,
						})
						before, own := ps.cpu(), ownCPU(b)
						storeHops(b, l.nc, fmt.Sprint("round", round), flow)
						time.Sleep(time.Second) // the servers become idle
						b.Logf("flow=%d: CPU for a message: servers %s µs, publisher %.1f µs", flow,
							ps.cpu().since(before, batchRound), float64((ownCPU(b)-own).Microseconds())/batchRound)
						natstest.NoError(b, l.js.DeleteStream(context.Background(), "HOPS"))
					}
				}
			}
		})
	}
}

// ownCPU returns the CPU time of the benchmark's process.
func ownCPU(b *testing.B) time.Duration {
	u, err := bench.UsageOf(os.Getpid())
	natstest.NoError(b, err)
	return u.CPU
}

// storeHops publishes batchRound messages, and returns when all are stored.
func storeHops(b *testing.B, nc *nats.Conn, id string, flow int) {
	inbox := nc.NewInbox()
	acks := make(chan *nats.Msg, 2*batchWindow)
	sub, err := nc.ChanSubscribe(inbox+".>", acks)
	natstest.NoError(b, err)
	defer func() { _ = sub.Unsubscribe() }()
	body := make([]byte, 256)
	acked := 0
	wait := func() {
		if m := <-acks; flow == 1 {
			acked++
		} else {
			acked = max(acked, ackedBy(b, m.Data))
		}
	}
	for n := 1; n <= batchRound; n++ {
		for n-acked > batchWindow {
			wait()
		}
		m := &nats.Msg{Subject: "hops." + fmt.Sprint(n%10), Data: body, Header: nats.Header{
			nats.MsgIdHdr: {fmt.Sprint(id, ".", flow, ".", n)}, "Delay-Origin": {"about as long as a hop's header"},
		}}
		if flow == 1 {
			m.Reply = inbox + "." + fmt.Sprint(n)
		} else {
			operation := 1 // append
			switch n {
			case 1:
				operation = 0 // start
			case batchRound:
				operation = 2 // commit
			}
			m.Reply = fmt.Sprintf("%s.%s.%d.fail.%d.%d.$FI", inbox, id, flow, n, operation)
		}
		natstest.NoError(b, nc.PublishMsg(m))
	}
	for acked < batchRound {
		wait()
	}
}

// ackedBy returns the number of messages of a fast batch that are stored, by an answer of the server.
func ackedBy(b *testing.B, answer []byte) int {
	var a struct {
		Type  string `json:"type"`
		Seq   int    `json:"seq"`
		Count int    `json:"count"` // in the last answer
		Error any    `json:"error"`
	}
	if err := json.Unmarshal(answer, &a); err != nil || a.Error != nil || a.Type != "" && a.Type != "ack" {
		b.Fatalf("the server answered %s (%v)", answer, err)
	}
	return max(a.Seq, a.Count)
}
