package natstest

import (
	"net"
	"sync/atomic"
	"time"
)

// Staller is a nats.CustomDialer whose connections can stall: they stay open, and deliver no bytes to the client.
type Staller struct {
	server *Server
	gate   atomic.Pointer[chan struct{}] // while connections stall, their reads wait until it is closed
	// BothWays makes stalled connections also keep the client's bytes, until the first write after the stall.
	BothWays bool
}

// Staller returns a dialer for connections to the server.
func (s *Server) Staller() *Staller { return &Staller{server: s} }

// Dial connects to the running server.
func (d *Staller) Dial(network, address string) (net.Conn, error) {
	c, err := d.server.Dial(network, address)
	if err != nil {
		return nil, err
	}
	return &stallingConn{Conn: c, dialer: d}, nil
}

// Stall lets the connections stall for a time, and returns when they deliver again.
func (d *Staller) Stall(length time.Duration) {
	gate := make(chan struct{})
	d.gate.Store(&gate)
	time.Sleep(length)
	d.gate.Store(nil)
	close(gate)
}

type stallingConn struct {
	net.Conn
	dialer *Staller
	kept   []byte // only nats.go writes, under its lock
}

func (c *stallingConn) Write(p []byte) (int, error) {
	if c.dialer.BothWays && c.dialer.gate.Load() != nil {
		c.kept = append(c.kept, p...)
		return len(p), nil
	}
	if len(c.kept) > 0 {
		if _, err := c.Conn.Write(c.kept); err != nil {
			return 0, err
		}
		c.kept = nil
	}
	return c.Conn.Write(p)
}

func (c *stallingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if gate := c.dialer.gate.Load(); gate != nil {
		<-*gate
	}
	return n, err
}
