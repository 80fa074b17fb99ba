package links

import (
	"context"
	"log/slog"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/levels"
	"delaybroker/test/natstest"
)

// A silentNetwork is a network that may become silent. Then it transfers nothing, and closes no connection.
type silentNetwork struct {
	to     string
	silent atomic.Bool
}

func (s *silentNetwork) Dial(string, string) (net.Conn, error) {
	if s.silent.Load() {
		return nil, net.ErrClosed
	}
	out, err := net.Dial("tcp", s.to)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, err
	}
	far, err := l.Accept()
	if err != nil {
		return nil, err
	}
	_ = near.(*net.TCPConn).SetWriteBuffer(64 << 10) // a small buffer, so that a write blocks soon
	_ = far.(*net.TCPConn).SetReadBuffer(64 << 10)
	go s.copy(out, far)
	go s.copy(far, out)
	return near, nil
}

func (s *silentNetwork) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		for s.silent.Load() {
			time.Sleep(10 * time.Millisecond)
		}
		if _, e := to.Write(buf[:n]); e != nil || err != nil {
			return
		}
	}
}

// TestSilentLink makes the link for deliveries silent while the broker works. The sockets fill up, and publishes block.
// The broker soon closes that link. Meanwhile the lanes without deliveries continue.
func TestSilentLink(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	s := natstest.RunWith(t, server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true,
	}).Server()
	at, err := url.Parse(s.ClientURL())
	natstest.NoError(t, err)
	network, down := &silentNetwork{to: at.Host}, make(chan time.Time, 1)
	b := serveBroker(t, s.ClientURL(), network, down)
	nc, err := nats.Connect(s.ClientURL())
	natstest.NoError(t, err)
	defer nc.Close()
	body := make([]byte, 4<<10)
	network.silent.Store(true)
	defer network.silent.Store(false)
	for range 1000 {
		natstest.NoError(t, nc.Publish("delay.1s.orders.x", body))
	}
	start := time.Now()
	time.Sleep(2500 * time.Millisecond) // now the lane of 1s is blocked in a publish
	limited, stop := context.WithTimeout(t.Context(), 2*time.Second)
	defer stop()
	if err := b.Alive(limited); err == nil {
		t.Log("every loop runs")
	} else if got := len(err.(interface{ Unwrap() []error }).Unwrap()); got > 1 {
		t.Errorf("one link is silent, and %d loops do not run: %v", got, err)
	}
	select {
	case at := <-down:
		t.Logf("closed after %s", at.Sub(start).Round(time.Millisecond))
	case <-time.After(30 * time.Second): // shorter than nats.go's default of a minute
		t.Error("after half a minute of silence the link is still open")
	}
}

// serveBroker runs a broker with the program's options until the test ends. It delivers over the network. The channel
// down receives the time of the first disconnect of the link for deliveries.
func serveBroker(t *testing.T, to string, network *silentNetwork, down chan<- time.Time) *broker.Broker {
	t.Helper()
	d := Dialer{Log: slog.New(slog.DiscardHandler)}
	dial := func(name string, more ...nats.Option) *nats.Conn {
		nc, err := nats.Connect(
			to,
			append(append(d.options(name, new(login), new(refusal)), nats.ClosedHandler(nil)), more...)...)
		natstest.NoError(t, err)
		t.Cleanup(nc.Close)
		return nc
	}
	ladder, err := levels.Parse("1s 5s 10s 1m")
	natstest.NoError(t, err)
	b, err := broker.New(broker.Links{
		Read: dial("read"), Write: dial("write"), Control: dial("control"),
		Deliver: dial("deliver", nats.SetCustomDialer(network), nats.DisconnectErrHandler(func(*nats.Conn, error) {
			select {
			case down <- time.Now():
			default:
			}
		})),
	}, broker.Config{Provision: true, Ladder: ladder})
	natstest.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	<-b.Ready()
	return b
}
