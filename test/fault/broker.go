//go:build linux

package fault

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"delaybroker/test/natstest"
)

// ladder is short, so that a run is: a message of 7.5 s passes the level of two seconds three times.
const ladder = "1s,2s"

// broker is the command, with a way of its own to each server.
type broker struct {
	*process
	http  string
	links []*proxy
}

// newBroker prepares a broker below dir; it does not run yet.
func newBroker(dir, binary string, number int, c cluster) (*broker, error) {
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
	ports, err := natstest.FreeAddresses(1)
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
			"NATS_URL=" + strings.Join(urls, ","), "DELAY_PROVISION=create", "DELAY_LEVELS=" + ladder,
			"DELAY_HTTP_ADDR=" + b.http, "DELAY_LOG_FORMAT=json", "DELAY_LOG_LEVEL=debug",
		},
	}
	return b, nil
}

// run starts it and waits until it is ready.
func (b *broker) run() error {
	if err := b.start(); err != nil {
		return err
	}
	return b.awaitReady()
}

func (b *broker) awaitReady() error {
	err := await(patience, func() error {
		if !b.running() {
			return nil // waiting does not help
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
