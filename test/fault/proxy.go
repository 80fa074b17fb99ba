//go:build linux

package fault

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
)

// proxy forwards connections to one address. It can hold the data back, as a silent network does: TCP delivers the data
// when the network returns. It can also drop its connections and refuse new ones.
type proxy struct {
	to       string
	listener net.Listener
	running  sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond // signals a change of state
	state   proxyState
	usual   proxyState // between faults
	open    map[net.Conn]bool
	held    atomic.Int64 // bytes that arrived while the proxy held data back
	killed  atomic.Int64 // dropped connections; a forwarded connection counts twice
}

type proxyState int

const (
	passing proxyState = iota
	holding
	refusing
	closed
)

func newProxy(to string) (*proxy, error) {
	l, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		return nil, fmt.Errorf("listen for a proxy: %w", err)
	}
	p := &proxy{to: to, listener: l, open: make(map[net.Conn]bool)}
	p.changed = sync.NewCond(&p.mu)
	p.running.Go(p.accept)
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// set changes the state of the proxy, for open connections, too.
func (p *proxy) set(s proxyState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = s
	if s == refusing || s == closed {
		for c := range p.open {
			p.killed.Add(1)
			c.Close()
		}
	}
	p.changed.Broadcast()
}

// setUsual sets the state, also for later calls of restore.
func (p *proxy) setUsual(s proxyState) {
	p.mu.Lock()
	p.usual = s
	p.mu.Unlock()
	p.set(s)
}

func (p *proxy) restore() {
	p.mu.Lock()
	s := p.usual
	p.mu.Unlock()
	p.set(s)
}

// close drops all connections and waits for the proxy's goroutines.
func (p *proxy) close() {
	p.listener.Close()
	p.set(closed)
	p.running.Wait()
}

func (p *proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.running.Go(func() { p.carry(in) })
	}
}

// carry forwards data between a connection and a new connection to the address, until either ends.
func (p *proxy) carry(in net.Conn) {
	if !p.adopt(in) {
		return
	}
	defer p.drop(in)
	if !p.pass(0) {
		return
	}
	out, err := net.Dial("tcp", p.to)
	if err != nil || !p.adopt(out) {
		return
	}
	defer p.drop(out)
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		both.Go(func() {
			defer in.Close()
			defer out.Close()
			buffer := make([]byte, 32<<10)
			for {
				n, err := way[0].Read(buffer)
				if n > 0 && !p.pass(n) {
					return
				}
				if n > 0 {
					if _, err := way[1].Write(buffer[:n]); err != nil {
						return
					}
				}
				if err != nil {
					return
				}
			}
		})
	}
	both.Wait()
}

// pass waits while the proxy holds n bytes back. It reports whether the proxy may forward the bytes.
func (p *proxy) pass(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == holding {
		p.held.Add(int64(n))
	}
	for p.state == holding {
		p.changed.Wait()
	}
	return p.state == passing
}

func (p *proxy) adopt(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == refusing || p.state == closed {
		c.Close()
		return false
	}
	p.open[c] = true
	return true
}

func (p *proxy) drop(c net.Conn) {
	c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}
