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

// silence is a network that can go silent: it transports nothing any more, and drops no connection.
type silence struct {
	to   string
	held atomic.Bool
}

func (s *silence) Dial(string, string) (net.Conn, error) {
	if s.held.Load() {
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
	_ = near.(*net.TCPConn).SetWriteBuffer(64 << 10) // little fits before a write waits
	_ = far.(*net.TCPConn).SetReadBuffer(64 << 10)
	go s.carry(out, far)
	go s.carry(far, out)
	return near, nil
}

func (s *silence) carry(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		for s.held.Load() {
			time.Sleep(10 * time.Millisecond)
		}
		if _, e := to.Write(buf[:n]); e != nil || err != nil {
			return
		}
	}
}

// TestSilentLink makes the delivering link go silent during work. Its sockets are then full, and publishes wait. The
// link is soon given up. Meanwhile lanes without deliveries go on.
func TestSilentLink(t *testing.T) {
	t.Parallel()
	s := natstest.RunWith(t, server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true,
	}).Server()
	at, err := url.Parse(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	network, down := &silence{to: at.Host}, make(chan time.Time, 1)
	b := serveOver(t, s.ClientURL(), network, down)
	nc, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	body := make([]byte, 4<<10)
	network.held.Store(true)
	defer network.held.Store(false)
	for range 1000 {
		if err := nc.Publish("delay.1s.orders.x", body); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	time.Sleep(2500 * time.Millisecond) // now the lane of 1s waits in a publish
	turning, stop := context.WithTimeout(t.Context(), 2*time.Second)
	defer stop()
	if err := b.Alive(turning); err == nil {
		t.Log("every loop turns")
	} else if got := len(err.(interface{ Unwrap() []error }).Unwrap()); got > 1 {
		t.Errorf("one link is silent, and %d loops do not turn: %v", got, err)
	}
	select {
	case at := <-down:
		t.Logf("given up after %s", at.Sub(start).Round(time.Millisecond))
	case <-time.After(30 * time.Second): // nats.go's own minute would be over later
		t.Error("after half a minute of silence the link is not given up")
	}
}

// serveOver runs a broker until the test ends, with the options of the program. It delivers over the network. The
// channel down gets the time at which it first gives that link up.
func serveOver(t *testing.T, to string, network *silence, down chan<- time.Time) *broker.Broker {
	t.Helper()
	d := Dialer{Log: slog.New(slog.DiscardHandler)}
	dial := func(name string, more ...nats.Option) *nats.Conn {
		nc, err := nats.Connect(to, append(append(d.options(name, new(login)), nats.ClosedHandler(nil)), more...)...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	ladder, err := levels.Parse("1s 5s 10s 1m")
	if err != nil {
		t.Fatal(err)
	}
	b, err := broker.New(broker.Links{
		Read: dial("read"), Write: dial("write"), Control: dial("control"),
		Deliver: dial("deliver", nats.SetCustomDialer(network), nats.DisconnectErrHandler(func(*nats.Conn, error) {
			select {
			case down <- time.Now():
			default:
			}
		})),
	}, broker.Config{Provision: true, Ladder: ladder})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	<-b.Ready()
	return b
}
