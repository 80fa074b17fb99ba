package house

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// layers are the layers of the project, lowest first. A package may import packages of lower layers, and packages of
// its own layer that exceptions names.
var layers = [][]string{
	{
		"levels", "wheel", "broker/message", "broker/batch", "broker/ratelog", "broker/leader", "broker/stats/history",
		"broker/timer/timetable", "broker/text",
	},
	{"broker/jsapi", "broker/timer/entry", "broker/timer"},
	{"broker/timer/change"},
	{"broker/client", "broker/client/clienttest"},
	{"broker/acks", "broker/streams", "broker/lane", "broker/lease", "broker/pause", "broker/timer/store"},
	{
		"broker/deliver", "broker/deadletter", "broker/journal", "broker/link", "broker/fault", "broker/timer/service",
		"broker/timer/role",
	},
	{"broker/config", "broker/streams/provision", "broker/stats", "broker/timer/schedules"},
	{"broker/engine", "broker/stats/metrics", "broker/inspect"},
	{"broker/operation"},
	{"broker"},
	{"broker/doctor", "broker/trace"},
	{
		"cmd/delaybroker/embedded", "cmd/delaybroker/links", "cmd/delaybroker/terminal", "cmd/delaybroker/publisher",
		"cmd/delaybroker/nack", "cmd/delaybroker/spelling", "cmd/delaybroker/capacity", "broker/web", "broker/web/page",
	},
	{"cmd/delaybroker/settings", "cmd/delaybroker/schedules"},
	{"cmd/delaybroker/process", "cmd/delaybroker/demo"},
	{"cmd/delaybroker"},
}

// exceptions has the packages of its own layer that a package may import, each with the reason.
var exceptions = map[string]map[string]string{
	"broker/message": {
		"levels": "a request names a level or a duration",
	},
	"broker/timer/timetable":   {"levels": "an interval is a duration"},
	"broker/client/clienttest": {"broker/client": "the fake is below the real client"},
	"broker/timer":             {"broker/timer/entry": "the state of a timer is its last entry"},
	"broker/timer/store":       {"broker/lane": "a list is a scan through a stream"},
	"broker/streams/provision": {"broker/config": "the streams are those of a configuration"},
	"broker/text":              {"levels": "a duration is written as in a setting"},
	"broker/lane":              {"broker/streams": "streams has the limits of a reader's consumer"},
}

// TestImportsPointDown checks the imports of each package against layers and exceptions.
func TestImportsPointDown(t *testing.T) {
	t.Parallel()
	layerOf := make(map[string]int)
	for layer, packages := range layers {
		for _, pkg := range packages {
			layerOf[pkg] = layer
		}
	}
	out := list(t, "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "delaybroker/...")
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		pkg := strings.TrimPrefix(words[0], "delaybroker/")
		if strings.HasPrefix(pkg, "test") {
			continue // tests may use anything
		}
		layer, known := layerOf[pkg]
		if !known {
			t.Errorf("%s is in no layer: add it to layers", pkg)
			continue
		}
		for _, path := range words[1:] {
			below, ours := strings.CutPrefix(path, "delaybroker/")
			if !ours {
				continue
			}
			if at, known := layerOf[below]; !known || at > layer || at == layer && exceptions[pkg][below] == "" {
				t.Errorf("%s (layer %d) imports %s (layer %d)", pkg, layer, below, at)
			}
		}
	}
}

// The prefixes of the import paths of some dependencies.
const (
	ofClients = "github.com/nats-io/nats.go"
	ofServers = "github.com/nats-io/nats-server/"
	ofMetrics = "github.com/prometheus/"
	ofSpans   = "go.opentelemetry.io/"
)

// ofCommands are the prefixes of dependencies that only commands may have.
var ofCommands = []string{
	ofServers, "github.com/kelseyhightower/envconfig", "github.com/lmittmann/tint", "github.com/spf13/",
}

// foreign has the dependencies that a package must not have, directly or indirectly, with the reason.
var foreign = []struct {
	pkg       string
	forbidden []string // prefixes of import paths
	reason    string
}{
	{
		"delaybroker/wheel",
		[]string{ofClients, ofServers, "delaybroker/levels", "delaybroker/broker"},
		"the wheel orders by time and knows nothing else",
	},
	{
		"delaybroker/levels",
		[]string{ofClients, ofServers, "delaybroker/wheel", "delaybroker/broker"},
		"levels is arithmetic",
	},
	{
		"delaybroker/cmd/delaybroker/capacity",
		[]string{ofClients, ofServers, "delaybroker/wheel", "delaybroker/broker/message"},
		"sizing is arithmetic",
	},
	{"delaybroker/broker/message", []string{ofClients, ofServers, "delaybroker/wheel"}, "the contract is pure"},
	{
		"delaybroker/broker/timer",
		[]string{ofClients, ofServers, "delaybroker/wheel"},
		"the state machine of timers is pure",
	},
	{
		"delaybroker/broker/timer/timetable",
		[]string{ofClients, ofServers, "delaybroker/wheel", "delaybroker/broker/message"},
		"a time table is arithmetic",
	},
	{
		"delaybroker/broker/ratelog",
		[]string{ofClients, ofServers, "delaybroker/levels", "delaybroker/wheel", "delaybroker/broker/message"},
		"a log needs the standard library",
	},
	{
		"delaybroker/broker/leader",
		[]string{ofClients, ofServers, "delaybroker/wheel", "delaybroker/broker/message"},
		"a clock is arithmetic",
	},
	{
		"delaybroker/broker/deliver",
		[]string{"delaybroker/broker/lane", "delaybroker/broker/lease"},
		"a target is reached without knowing lanes",
	},
	{
		"delaybroker/broker/lease",
		[]string{"delaybroker/broker/lane", "delaybroker/broker/streams"},
		"ownership knows lanes by name",
	},
	{
		"delaybroker/broker/timer/store",
		[]string{"delaybroker/broker/lease", "delaybroker/broker/deliver", "delaybroker/broker/timer/service"},
		"a change is a publish, which needs no broker",
	},
	{
		"delaybroker/broker/timer/role",
		[]string{
			"delaybroker/wheel", "delaybroker/broker/lease", "delaybroker/broker/acks", "delaybroker/broker/engine",
			"delaybroker/broker/timer/service",
		},
		"the worker carries out what is decided about timers",
	},
	{
		"delaybroker/broker/config",
		[]string{"delaybroker/broker/lane", "delaybroker/broker/streams"},
		"a configuration is checked without streams",
	},
	{
		"delaybroker/broker/streams/provision",
		[]string{"delaybroker/broker/lane", "delaybroker/broker/pause", "delaybroker/broker/stats/metrics"},
		"streams are made without reading them",
	},
	{
		"delaybroker/broker/engine",
		[]string{"delaybroker/broker/timer/service", "delaybroker/broker/timer/schedules"},
		"a lane is worked without requests about timers",
	},
	{"delaybroker/broker", []string{ofMetrics}, "the engine counts, and broker/stats/metrics shows"},
	{"delaybroker/broker", []string{ofSpans}, "the engine says how messages end, and broker/trace makes spans of it"},
	{
		"delaybroker/broker",
		[]string{"delaybroker/test/rivals/bench", "github.com/HdrHistogram/"},
		"what is measured does not know of the measuring",
	},
	{
		"delaybroker/test/rivals/bench",
		[]string{"delaybroker/wheel", "delaybroker/broker/lane", "delaybroker/broker/lease", "delaybroker/broker/deliver"},
		"the measuring knows the contract, not the engine",
	},
	{
		"delaybroker/broker/doctor",
		[]string{ofMetrics, "github.com/jedib0t/", "golang.org/x/term"},
		"what the verbs know is printed by the command",
	},
	{"delaybroker/broker/...", ofCommands, "the engine is a library"},
	{
		"delaybroker/cmd/delaybroker/terminal",
		[]string{ofServers, "github.com/spf13/", "github.com/kelseyhightower/envconfig"},
		"what draws knows neither flags nor settings",
	},
	{
		"delaybroker/cmd/delaybroker/process",
		[]string{"github.com/spf13/"},
		"what serves knows no verbs",
	},
	{"delaybroker/cmd/...", []string{ofMetrics + "prometheus"}, "Prometheus itself is for tests of rules"},
}

// TestForeignImports: pure packages do not depend on NATS, and the engine has no dependency that only commands need.
func TestForeignImports(t *testing.T) {
	t.Parallel()
	for _, rule := range foreign {
		for dep := range strings.FieldsSeq(list(t, "-deps", rule.pkg)) {
			if i := slices.IndexFunc(rule.forbidden, func(not string) bool {
				return dep == not || strings.HasPrefix(dep, strings.TrimSuffix(not, "/")+"/")
			}); i >= 0 {
				t.Errorf("%s depends on %s: %s", rule.pkg, dep, rule.reason)
			}
		}
	}
}

// TestClientIsLight: package client depends only on nats.go, the contract, and their dependencies. It depends neither
// on the server nor on the engine.
func TestClientIsLight(t *testing.T) {
	t.Parallel()
	allowed := []string{"delaybroker/broker/client", "delaybroker/broker/message", "delaybroker/broker/jsapi",
		"delaybroker/levels", "delaybroker/broker/leader", "delaybroker/broker/timer", "delaybroker/broker/timer/change",
		"delaybroker/broker/timer/entry", "delaybroker/broker/timer/timetable"}
	nats := strings.Fields(list(t, "-deps", "github.com/nats-io/nats.go/jetstream"))
	for dep := range strings.FieldsSeq(list(t, "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}",
		"delaybroker/broker/client")) {
		if !slices.Contains(allowed, dep) && !slices.Contains(nats, dep) {
			t.Errorf("broker/client depends on %s: its users would too", dep)
		}
	}
}

// list returns the output of go list.
func list(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list %v: %v", args, err)
	}
	return string(out)
}
