package promises

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// slowDialer is a nats.CustomDialer. What the client receives arrives late by the delay, as from a server with a slow
// disk.
type slowDialer struct {
	*natstest.Server
	delay time.Duration
}

func (d slowDialer) Dial(network, address string) (net.Conn, error) {
	c, err := d.Server.Dial(network, address)
	if err != nil {
		return nil, err
	}
	reader, writer := io.Pipe()
	type chunk struct {
		data []byte
		at   time.Time
	}
	chunks := make(chan chunk, 1<<16)
	go func() {
		defer close(chunks)
		for {
			data := make([]byte, 32<<10)
			n, err := c.Read(data)
			if err != nil {
				return
			}
			chunks <- chunk{data[:n], time.Now().Add(d.delay)}
		}
	}()
	go func() {
		for c := range chunks {
			time.Sleep(time.Until(c.at))
			if _, err := writer.Write(c.data); err != nil {
				break
			}
		}
		for range chunks {
		}
		_ = writer.CloseWithError(io.EOF)
	}()
	return slowConn{c, reader}, nil
}

type slowConn struct {
	net.Conn
	received *io.PipeReader
}

func (c slowConn) Read(p []byte) (int, error) { return c.received.Read(p) }

func (c slowConn) Close() error {
	_ = c.received.Close()
	return c.Conn.Close()
}

// TestSlowServer: each answer of the server takes long. Each message arrives once, and no instance takes over. The
// lateness is that of the few answers for which a message waits.
func TestSlowServer(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{100 * time.Millisecond, 400 * time.Millisecond} {
		natstest.Subtest(t, delay.String(), func(t *testing.T, s *natstest.Server) {
			t.Cleanup(func() { time.Sleep(2 * delay) }) // the goroutines of the dialer end
			cfg := broker.Config{Leaser: harness.Together, Timers: true, Log: harness.NoLog}
			opt := nats.SetCustomDialer(slowDialer{s, delay})
			active, standBy := harness.StartBroker(t, s, cfg, opt), harness.StartBroker(t, s, cfg, opt)
			time.Sleep(20 * time.Second)
			c := harness.NewClient(t, s)
			c.Target("ORDERS", "orders.>")
			in := c.Subscribe("ui.>")
			const count = 100
			for i := range count {
				c.Publish("delay.5s.orders.x", fmt.Sprint(i))
				c.Publish("delay.30s.ui.x", fmt.Sprint(i))
				c.Publish(fmt.Sprintf("delaytimer.k%d.orders.t", i), "", "Delay-For", "10s")
				time.Sleep(50 * time.Millisecond)
			}
			time.Sleep(2 * time.Minute)
			all := append(c.Arrivals("ORDERS"), in.Arrivals()...)
			harness.CheckCount(t, all, 3*count)
			for _, a := range all { // a timer is read, its firing is stored, and both wait for the leader's time
				if late := a.At.Sub(a.Due); late > 4*delay {
					t.Fatalf("%s on %s is late by %s, want at most the time of four answers", a.Body, a.Subject, late)
				}
			}
			harness.CheckActive(t, 0, active, standBy)
			c.CheckNoDead()
		})
	}
}
