//go:build linux

package fault

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// programs are the commands of a run.
type programs struct {
	server string
	broker string
}

// buildPrograms builds them into dir: the server from the module that the tests use, the broker from this tree, unless
// another one is given.
func buildPrograms(dir, broker string) (programs, error) {
	p := programs{server: filepath.Join(dir, "nats-server"), broker: broker}
	if err := build(p.server, "github.com/nats-io/nats-server/v2"); err != nil {
		return p, err
	}
	if p.broker == "" {
		p.broker = filepath.Join(dir, "delaybroker")
		return p, build(p.broker, "delaybroker/cmd/delaybroker")
	}
	var err error
	p.broker, err = filepath.Abs(p.broker) // it runs elsewhere
	return p, err
}

func build(binary, pkg string, args ...string) error {
	args = append(append([]string{"build", "-o", binary}, args...), pkg)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", pkg, err, out)
	}
	return nil
}
