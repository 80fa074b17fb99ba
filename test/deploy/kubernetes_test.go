package deploy

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"

	"delaybroker/test/natstest"
)

// kustomizations are the directories to apply, and the one to copy. .ci/run renders the Helm chart, and names the
// directories of the result in TEST_CHARTS. The tests check them like the kustomizations.
var kustomizations = append([]string{"cluster", "statefulset", "roles", "standalone", "sidecar", "example"},
	filepath.SplitList(os.Getenv("TEST_CHARTS"))...)

// objects are the objects of a kustomization, as JSON.
type objects []json.RawMessage

var rendering struct {
	once sync.Once
	all  map[string]objects
	err  error
}

// renderedObjects renders all kustomizations once, and returns the objects of one. Without the tool render it skips the
// test. An object that is invalid in
// Kubernetes is an error of render.
func renderedObjects(t *testing.T, dir string) objects {
	t.Helper()
	natstest.Tool(t, "render")
	rendering.once.Do(func() {
		out, err := render(t, kustomizations...)
		if err != nil {
			rendering.err = err
			return
		}
		rendering.err = json.Unmarshal(out, &rendering.all)
	})
	if rendering.err != nil {
		t.Fatalf("render: %v", rendering.err)
	}
	return rendering.all[dir]
}

// render runs the program in the directory render, which has its own module.
func render(t *testing.T, dirs ...string) ([]byte, error) {
	t.Helper()
	cmd := exec.Command(natstest.Tool(t, "render"), dirs...)
	cmd.Dir = "kubernetes"
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, errs.String())
	}
	return out, nil
}

// decodeKinds decodes the objects of these kinds.
func decodeKinds[T any](t *testing.T, all objects, kinds ...string) []T {
	t.Helper()
	var found []T
	for _, raw := range all {
		var head struct{ Kind string }
		var object T
		natstest.NoError(t, yaml.Unmarshal(raw, &head))
		if !slices.Contains(kinds, head.Kind) {
			continue
		}
		if err := yaml.Unmarshal(raw, &object); err != nil {
			t.Fatalf("%s: %v", head.Kind, err)
		}
		found = append(found, object)
	}
	return found
}

// brokerWorkload returns the Deployment or StatefulSet of the broker.
func brokerWorkload(t *testing.T, dir string) workload {
	t.Helper()
	all := decodeKinds[workload](t, renderedObjects(t, dir), "Deployment", "StatefulSet")
	if len(all) != 1 {
		t.Fatalf("%s has %d workloads, want one", dir, len(all))
	}
	return all[0]
}

// TestMisspeltKeysAreRefused: render refuses objects with misspelt keys, values of another type, and unknown kinds. The
// other tests of this package rely on that.
func TestMisspeltKeysAreRefused(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	for name, object := range map[string]string{
		"key":   "{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {clusterip: None}}",
		"value": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {replicas: many}}",
		"kind":  "{apiVersion: v1, kind: Servize, metadata: {name: x}}",
		"rule": "{apiVersion: monitoring.coreos.com/v1, kind: PrometheusRule, metadata: {name: x}," +
			" spec: {groups: [{name: y, rules: [{alarm: z}]}]}}",
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{"object.yaml": object, "kustomization.yaml": "resources: [object.yaml]"} {
			natstest.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
		}
		cmd := exec.Command(natstest.Tool(t, "render"), dir)
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("an unknown %s is rendered:\n%s", name, out)
		}
	}
}

// TestPodMonitors: one PodMonitor selects the pods of each kustomization, with the port of their metrics.
func TestPodMonitors(t *testing.T) {
	t.Parallel()
	found := make(map[string]int)
	for _, m := range decodeKinds[struct {
		Spec struct {
			JobLabel string `yaml:"jobLabel"`
			Selector labelSelector
			Ports    []struct{ Port, Path string } `yaml:"podMetricsEndpoints"`
		}
	}](t, renderedObjects(t, "example"), "PodMonitor") {
		for _, dir := range kustomizations {
			d := brokerWorkload(t, dir)
			labels := d.Spec.Template.Metadata.Labels
			if !selects(m.Spec.Selector.MatchLabels, labels) {
				continue
			}
			found[dir]++
			if len(m.Spec.Ports) != 1 || containerPorts(d)[m.Spec.Ports[0].Port] != 8422 || m.Spec.Ports[0].Path != "/metrics" ||
				labels[m.Spec.JobLabel] == "" {
				t.Errorf("%s: %+v, and the pods have %v", dir, m.Spec, containerPorts(d))
			}
		}
	}
	for _, dir := range kustomizations {
		if found[dir] != 1 {
			t.Errorf("%s is scraped by %d monitors, want one", dir, found[dir])
		}
	}
}

var update = flag.Bool("update", false, "write prometheusrule.yaml")

// TestPrometheusRule: the rules for the Prometheus operator are those of alerts.yaml, which TestAlerts checks.
func TestPrometheusRule(t *testing.T) {
	t.Parallel()
	const file = "kubernetes/monitoring/prometheusrule.yaml"
	text := "# The rules of ../../alerts.yaml, where they are changed: go test ./test/deploy -run TestPrometheusRule" +
		" -update\napiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: delaybroker\nspec:\n"
	_, rules, _ := strings.Cut(read(t, "alerts.yaml"), "\ngroups:")
	for line := range strings.Lines("groups:" + rules) {
		if strings.TrimSpace(line) != "" {
			line = "  " + line
		}
		text += line
	}
	if *update {
		natstest.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	if read(t, file) != text {
		t.Errorf("%s differs from alerts.yaml: run this test with -update", file)
	}
	var plain struct{ Groups any }
	decode(t, "alerts.yaml", &plain)
	made := decodeKinds[struct{ Spec struct{ Groups any } }](t, renderedObjects(t, "example"), "PrometheusRule")
	if len(made) != 1 || !reflect.DeepEqual(made[0].Spec.Groups, plain.Groups) {
		t.Errorf("got %d objects, want one with the rules of alerts.yaml", len(made))
	}
}

// TestExampleReachesObjects: the changes of the example are in the objects.
func TestExampleReachesObjects(t *testing.T) {
	t.Parallel()
	d := brokerWorkload(t, "example")
	c := brokerContainer(t, d)
	if env := c.env(); c.Image != "ghcr.io/acme/delaybroker:v1.0.0" || d.Spec.Replicas != 3 ||
		!strings.HasPrefix(env["NATS_URL"], "tls://") || env["NATS_CREDS"] == "" || env["DELAY_JOURNAL"] != "7d" {
		t.Errorf("image %s, %d replicas, %v", c.Image, d.Spec.Replicas, env)
	}
	for _, o := range decodeKinds[struct {
		Kind     string
		Metadata metadata
	}](t, renderedObjects(t, "example"), "Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy", "PodMonitor",
		"PrometheusRule") {
		if o.Metadata.Namespace != "messaging" {
			t.Errorf("%s %s is in the namespace %q", o.Kind, o.Metadata.Name, o.Metadata.Namespace)
		}
	}
}
