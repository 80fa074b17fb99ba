package engine

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/config"
	"delaybroker/broker/lane"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// TestFlightCost compares the accounted bytes of a message with its bytes on the heap, while the message is published
// to a target or into another lane.
func TestFlightCost(t *testing.T) {
	const delivery = 512 // bytes in the deliverer and the inbox: see TestDeliveryCost of package deliver
	policy := newPolicy(t)
	for _, tt := range []struct {
		body, headers int
		hop           bool
	}{
		{0, 0, false}, {100, 2, false}, {256, 4, false}, {256, 0, true}, {256, 4, true}, {1000, 20, false},
		{33 << 10, 0, true},
	} {
		const count = 1000
		fs := newFlights(nil)
		kept := make([]*flight, 0, count)
		before := natstest.Heap()
		for seq := range uint64(count) {
			s := storedMessage(t, policy, seq+1, tt.body, tt.headers, tt.hop)
			f := fs.begin(s, lane.Mark{})
			f.request, f.problem = policy.Parse(s.Incoming("DELAY_10s"))
			f.Header = nil
			fs.hold(f, f.nextAttempt())
			fs.setOverdue(f, f.nextAttempt(), true)
			f.sent = &publish{kind: hop, request: &f.request, subject: policy.Names.Hop("1m", f.request.Target)}
			kept = append(kept, f)
		}
		took := natstest.Heap() - before + count*delivery
		if took > fs.bytes {
			t.Errorf("a body of %d with %d headers takes %d bytes, and is accounted with %d",
				tt.body, tt.headers, took/count, fs.bytes/count)
		} else if fs.bytes > 2*took {
			t.Errorf("a body of %d with %d headers takes %d bytes, and is accounted with %d: that is more than twice",
				tt.body, tt.headers, took/count, fs.bytes/count)
		}
		runtime.KeepAlive(kept)
	}
}

// newPolicy returns the policy of a broker without keys.
func newPolicy(t *testing.T) message.Policy {
	t.Helper()
	names, err := message.NewNames("delay")
	if err != nil {
		t.Fatal(err)
	}
	return message.Policy{Names: names, MaxDelay: config.DefaultMaxDelay}
}

// hopKeys seal the hops of storedMessage.
var hopKeys = message.NewKeys([]string{"a secret of sixteen bytes"})

// storedMessage returns a message as nats.go returns it: the body is the end of the bytes that were read from the
// connection. If hop is true, the message also has the headers of a lane.
func storedMessage(t *testing.T, p message.Policy, seq uint64, body, headers int, hop bool) lane.Message {
	t.Helper()
	subject, header := "delay.10s.orders.x", message.Header{}
	for n := range headers {
		header[fmt.Sprintf("X-Name-%c", 'a'+n)] = []string{strings.Repeat("v", 20)}
	}
	if hop {
		r, problem := p.Parse(message.Incoming{
			Stream: "DELAY_10s", Sequence: seq, At: epoch.Stamp(), Subject: subject, Header: header,
		})
		if problem != nil {
			t.Fatal(problem)
		}
		subject, header = p.Names.Hop("10s", "orders.x"), r.HopHeader()
		hopKeys.SealMessage(subject, header, nil)
	}
	wire := []byte("NATS/1.0\r\n")
	for name, values := range header {
		wire = fmt.Appendf(wire, "%s: %s\r\n", name, values[0])
	}
	wire = append(wire, "\r\n"...)
	header, err := nats.DecodeHeadersMsg(wire)
	if err != nil {
		t.Fatal(err)
	}
	return lane.Message{
		Sequence: seq, At: epoch.Stamp(), Subject: strings.Clone(subject), Header: header, Size: len(wire) + body,
		Data: append(make([]byte, 0, len(wire)+body), wire...)[len(wire):][:body],
	}
}
