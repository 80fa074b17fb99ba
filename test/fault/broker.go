//go:build linux

package fault

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"delaybroker/test/fault/history"
	"delaybroker/test/natstest"
)

// broker is a delaybroker process, with its own proxy to each server.
type broker struct {
	*process
	http   string
	links  []*proxy
	events *history.Log // records the starts, unless it is nil
}

// newBroker prepares a broker below dir. It does not start the broker.
func newBroker(dir, binary string, number int, c cluster, levels string) (*broker, error) {
	b := &broker{}
	var urls []string
	for _, s := range c {
		p, err := newProxy(s.address)
		if err != nil {
			return nil, err
		}
		b.links = append(b.links, p)
		urls = append(urls, "nats://"+p.address())
	}
	ports, err := natstest.FreeAddressesOn(loopback, 1)
	if err != nil {
		return nil, err
	}
	b.http = ports[0]
	name := fmt.Sprintf("b%d", number)
	home := filepath.Join(dir, name)
	if err := os.Mkdir(home, 0o755); err != nil {
		return nil, err
	}
	b.process = &process{
		name: name, command: []string{binary}, log: filepath.Join(home, "log"),
		env: []string{
			"NATS_URL=" + strings.Join(urls, ","), "DELAY_PROVISION=create", "DELAY_LEVELS=" + levels,
			"DELAY_HTTP_ADDR=" + b.http, "DELAY_LOG_FORMAT=json", "DELAY_LOG_LEVEL=debug",
		},
	}
	return b, nil
}

// run starts the broker and waits until it is ready.
func (b *broker) run() error {
	began := time.Now()
	if err := b.start(); err != nil {
		return err
	}
	if err := b.awaitReady(); err != nil {
		return err
	}
	if b.events != nil {
		b.events.Add(history.Event{Op: history.Ready, Text: b.name, Delay: time.Since(began)})
	}
	return nil
}

// stayAt lets the broker reach only the server s. If s is nil, the broker reaches all servers.
func (b *broker) stayAt(s *server) {
	for _, p := range b.links {
		if s == nil || p.to == s.address {
			p.setUsual(passing)
		} else {
			p.setUsual(refusing)
		}
	}
}

func (b *broker) awaitReady() error {
	err := await(timeout, func() error {
		if !b.running() {
			return nil // the broker has ended: stop waiting
		}
		return get("http://" + b.http + "/readyz")
	})
	if err == nil && !b.running() {
		err = fmt.Errorf("it ended: %w", b.err)
	}
	if err != nil {
		return fmt.Errorf("%s is not ready: %w", b.name, err)
	}
	return nil
}

func (b *broker) end() {
	b.process.end()
	for _, p := range b.links {
		p.close()
	}
}
