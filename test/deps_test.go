package test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestImportsPointDown keeps the packages apart: what is pure stays pure, and the server and the settings stay in the
// command, so that the engine can be used without them.
func TestImportsPointDown(t *testing.T) {
	t.Parallel()
	const server, env, tint, cobra, client, prometheus = "github.com/nats-io/nats-server/", "github.com/kelseyhightower/envconfig", "github.com/lmittmann/tint", "github.com/spf13/", "github.com/nats-io/nats.go", "github.com/prometheus/"
	for _, rule := range []struct {
		pkg  string
		must []string // not to depend on
		why  string
	}{
		{"delaybroker/wheel", []string{client, server, "delaybroker/levels", "delaybroker/broker"}, "the wheel orders by time and knows nothing else"},
		{"delaybroker/levels", []string{client, server, "delaybroker/wheel", "delaybroker/broker", "delaybroker/levels/lane"}, "levels is arithmetic"},
		{"delaybroker/levels/lane", []string{server, "delaybroker/broker"}, "a lane does not know what is decided about its messages"},
		{"delaybroker/levels/owners", []string{server, "delaybroker/broker", "delaybroker/levels/lane"}, "ownership knows lanes by name"},
		{"delaybroker/broker", []string{prometheus}, "the engine counts, and broker/metrics shows"},
		{"delaybroker/cmd/...", []string{prometheus + "prometheus"}, "Prometheus itself is for tests of rules"},
		{"delaybroker/broker/message", []string{client, server, "delaybroker/levels/lane", "delaybroker/wheel"}, "the contract is pure"},
		{"delaybroker/broker/...", []string{server, env, tint, cobra, "delaybroker/cmd", "delaybroker/test"}, "the engine is a library"},
		{"delaybroker/levels/...", []string{server, env, tint, cobra, "delaybroker/cmd", "delaybroker/test"}, "the engine is a library"},
	} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", rule.pkg).Output()
		if err != nil {
			t.Fatalf("go list %s: %v", rule.pkg, err)
		}
		for dep := range strings.FieldsSeq(string(out)) {
			for _, not := range rule.must {
				if dep == not || strings.HasPrefix(dep, strings.TrimSuffix(not, "/")+"/") {
					t.Errorf("%s depends on %s: %s", rule.pkg, dep, rule.why)
				}
			}
		}
	}
}
