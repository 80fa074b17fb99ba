package lane

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/test/natstest"
)

// wire is a connection that loses messages from the server.
type wire struct {
	server *natstest.Server
	// isLost reports whether a message gets lost. Head is its protocol line, body its headers and payload.
	isLost       atomic.Pointer[func(head, body string) bool]
	losesControl atomic.Bool // all control messages get lost
}

func (w *wire) set(lose func(head, body string) bool) { w.isLost.Store(&lose) }

// readOver starts a reader over the wire, and an owner that takes all items immediately.
func (r *rig) readOver(w *wire) *owner {
	r.t.Helper()
	return r.read(r.server.Connect(nats.SetCustomDialer(w)), 0)
}

func (w *wire) Dial(network, address string) (net.Conn, error) {
	up, err := w.server.Dial(network, address)
	if err != nil {
		return nil, err
	}
	client, down := net.Pipe()
	go func() { _, _ = io.Copy(up, down); up.Close() }()
	go func() { w.filter(down, up); down.Close() }()
	return client, nil
}

// filter copies the server's protocol, line by line and message by message.
func (w *wire) filter(down io.Writer, up io.Reader) {
	in := bufio.NewReader(up)
	for {
		head, err := in.ReadString('\n')
		if err != nil {
			return
		}
		var frame bytes.Buffer
		frame.WriteString(head)
		if strings.HasPrefix(head, "MSG ") || strings.HasPrefix(head, "HMSG ") {
			fields := strings.Fields(head)
			size, err := strconv.Atoi(fields[len(fields)-1])
			if err != nil {
				return
			}
			if _, err := io.CopyN(&frame, in, int64(size)+2); err != nil {
				return
			}
			if w.losesControl.Load() && strings.Contains(frame.String(), "NATS/1.0 ") {
				continue
			}
			if lose := w.isLost.Load(); lose != nil && (*lose)(head, frame.String()[len(head):]) {
				continue
			}
		}
		if _, err := down.Write(frame.Bytes()); err != nil {
			return
		}
	}
}

// isStored reports whether a protocol line belongs to a stored message.
func isStored(head string) bool { return strings.Contains(head, "$JS.ACK.") }

// TestLostInTheMiddle: messages in the middle get lost. The next consumer sequence shows the loss immediately.
func TestLostInTheMiddle(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		w := &wire{server: s}
		var first string // name of the first consumer
		var lostAgain bool
		w.set(func(head, body string) bool {
			if !isStored(head) {
				return false
			}
			consumer := strings.Split(head[strings.Index(head, "$JS.ACK."):], ".")[3]
			if first == "" {
				first = consumer
			}
			if consumer == first {
				return body == "5\r\n" || body == "6\r\n"
			}
			lost := body == "100\r\n" && !lostAgain
			lostAgain = lostAgain || lost
			return lost
		})
		o := r.readOver(w)
		start := time.Now()
		r.burst(1, 400)
		time.Sleep(200 * time.Millisecond)
		o.check(1, 400)
		o.checkEpochs("fresh", "same", "same")
		if took := time.Since(start); took > time.Second {
			t.Errorf("the reader took %s, want at most a second", took)
		}
	})
}

// TestHeartbeatShowsLoss: the last stored message gets lost. The next heartbeat shows the loss.
func TestHeartbeatShowsLoss(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		r.burst(1, 10)
		w := &wire{server: s}
		var done bool
		w.set(func(head, body string) bool {
			lost := isStored(head) && body == "10\r\n" && !done
			done = done || lost
			return lost
		})
		o := r.readOver(w)
		time.Sleep(time.Second - 1)
		o.check(1, 9)
		o.checkEpochs("fresh")
		time.Sleep(1400 * time.Millisecond) // less than the 2.5 s after which silence would show the loss
		o.check(1, 10)
		o.checkEpochs("fresh", "same")
	})
}

// TestLostAfterIdling: after an idle hour, a message arrives that announces more messages, and then all messages and
// heartbeats get lost. The reader must notice the loss soon: the slow heartbeat of an idle lane ends with the first
// message.
func TestLostAfterIdling(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		w := &wire{server: s}
		o := r.readOver(w)
		time.Sleep(time.Hour)
		var cut, lost bool
		w.set(func(head, body string) bool {
			if !isStored(head) {
				return lost && strings.Contains(body, "NATS/1.0 ")
			}
			lost = cut
			cut = cut || !strings.Contains(head, ".0 ") // the reply's last token is the number of messages that follow
			return lost
		})
		r.burst(1, 2000)
		time.Sleep(2500*time.Millisecond - 1)
		w.set(func(string, string) bool { return false })
		o.checkEpochs("fresh")
		if !lost {
			t.Fatal("nothing was lost")
		}
		time.Sleep(1 + minBackoff)
		o.check(1, 2000)
		o.checkEpochs("fresh", "same")
	})
}

// TestSilence: the consumer becomes silent at the tail of a lane. The reader asks the leader after a minute, and again
// after lagTimeout, and creates another consumer.
func TestSilence(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		w := &wire{server: s}
		r.publish(1, 3)
		o := r.readOver(w)
		o.check(1, 3)
		start := time.Now()
		w.set(func(head, body string) bool { return isStored(head) || strings.Contains(body, "NATS/1.0 ") })
		r.publish(4, 4)
		time.Sleep(maxWatch + lagTimeout - 1)
		o.checkEpochs("fresh")
		w.set(func(string, string) bool { return false })
		time.Sleep(51 * time.Millisecond)
		o.check(1, 4)
		o.checkEpochs("fresh", "same")
		if got, want := time.Since(start), maxWatch+lagTimeout+51*time.Millisecond-1; got != want {
			t.Errorf("the reader took %s, want %s", got, want)
		}
	})
}

// TestUndecodable: a stored message whose headers cannot be decoded is marked. Nats.go delivers such a message as if it
// had no headers.
func TestUndecodable(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		o := r.read(s.Connect(), 0)
		conn, err := s.Dial("", "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		send := func(protocol string) {
			if _, err := io.WriteString(conn, protocol); err != nil {
				t.Errorf("write: %v", err)
			}
		}
		headers := func(block, body string) {
			send("HPUB delay.30m.x " + strconv.Itoa(len(block)) + " " + strconv.Itoa(len(block)+len(body)) + "\r\n" + block +
				body + "\r\n")
		}
		send("CONNECT {\"verbose\":false,\"headers\":true}\r\n")
		headers("NATS/1.0\r\nDelay-Until 2100\r\n\r\n", "no colon")
		headers("no version\r\n\r\n", "no version")
		headers("NATS/1.0\r\n\r\n", "none")
		headers("NATS/1.0\r\nA: b\r\n\r\n", "good")
		headers("NATS/1.0\r\n: b\r\n\r\n", "")
		time.Sleep(time.Second)
		r.publish(1, 1)
		o.checkBodies("no colon", "no version", "none", "good", "", "1")
		for i, want := range []bool{true, true, false, false, false, false} {
			if got := o.stored[i].Undecodable; got != want {
				t.Errorf("%q: undecodable is %v, want %v; headers %v", o.got[i], got, want, o.stored[i].Header)
			}
		}
	})
}
