//go:build linux

package fault

import (
	"path/filepath"

	"delaybroker/test/natstest"
)

// programs has the paths of the binaries of a run.
type programs struct {
	server string
	broker string
}

// buildPrograms builds the binaries into dir. The server is from the module that the tests use. The broker is from this
// tree, unless the path of another binary is given.
func buildPrograms(dir, broker string) (programs, error) {
	p := programs{server: filepath.Join(dir, "nats-server"), broker: broker}
	if err := natstest.Build(p.server, "github.com/nats-io/nats-server/v2"); err != nil {
		return p, err
	}
	if p.broker == "" {
		p.broker = filepath.Join(dir, "delaybroker")
		return p, natstest.Build(p.broker, "delaybroker/cmd/delaybroker")
	}
	var err error
	p.broker, err = filepath.Abs(p.broker) // the process runs in another directory
	return p, err
}
