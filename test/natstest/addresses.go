package natstest

import (
	"fmt"
	"math/rand"
	"net"
	"sync"
	"testing"
)

// given are the ports that were handed out, also those that no process listens on yet.
var given struct {
	sync.Mutex
	ports map[int]bool
}

// FreeAddress is one address of FreeAddresses. A broker can return to it after a restart.
func FreeAddress(t testing.TB) string {
	t.Helper()
	addresses, err := FreeAddresses(1)
	if err != nil {
		t.Fatal(err)
	}
	return addresses[0]
}

// FreeAddresses are ports that no process listens on, and that no outgoing connection will be given while the process
// that listens on them is down: they lie below the range that Linux takes those from.
func FreeAddresses(n int) ([]string, error) { return FreeAddressesOn("127.0.0.1", n) }

// FreeAddressesOn are such ports of another address. A process that restarts its servers needs one of its own beside
// others: a port that is free because a server is down just now looks free to them.
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
