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

// buildPrograms builds them into dir: the server from the module that the tests use, the broker from this tree.
func buildPrograms(dir string) (programs, error) {
	p := programs{server: filepath.Join(dir, "nats-server"), broker: filepath.Join(dir, "delaybroker")}
	if err := build(p.server, "github.com/nats-io/nats-server/v2"); err != nil {
		return p, err
	}
	return p, build(p.broker, "delaybroker/cmd/delaybroker")
}

func build(binary, pkg string, args ...string) error {
	args = append(append([]string{"build", "-o", binary}, args...), pkg)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", pkg, err, out)
	}
	return nil
}
