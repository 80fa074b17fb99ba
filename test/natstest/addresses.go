package natstest

import (
	"fmt"
	"math/rand"
	"net"
	"sync"
	"testing"
)

// given holds the ports that were handed out. A process may not listen on them yet.
var given struct {
	sync.Mutex
	ports map[int]bool
}

// FreeAddress returns one address of FreeAddresses. A broker can listen on it again after a restart.
func FreeAddress(t testing.TB) string {
	t.Helper()
	addresses, err := FreeAddresses(1)
	NoError(t, err)
	return addresses[0]
}

// FreeAddresses returns addresses whose ports are free. They lie below the range from which Linux takes the ports of
// outgoing connections. So no connection gets such a port while the process that listens on it is down.
func FreeAddresses(n int) ([]string, error) { return FreeAddressesOn("127.0.0.1", n) }

// FreeAddressesOn is like FreeAddresses, for another host address. A process that restarts servers needs a host address
// of its own, since the port of a server that is down looks free to other processes.
func FreeAddressesOn(host string, n int) ([]string, error) {
	given.Lock()
	defer given.Unlock()
	if given.ports == nil {
		given.ports = make(map[int]bool)
	}
	var found []string
	for tries := 0; len(found) < n && tries < 1000; tries++ {
		port := 10_000 + rand.Intn(20_000)
		if given.ports[port] {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", host, port))
		if err != nil {
			continue
		}
		l.Close()
		given.ports[port] = true
		found = append(found, l.Addr().String())
	}
	if len(found) < n {
		return nil, fmt.Errorf("no free ports below 30000")
	}
	return found, nil
}
