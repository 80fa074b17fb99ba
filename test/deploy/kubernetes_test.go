package deploy

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"delaybroker/test/natstest"
)

// shapes are the kustomizations that somebody applies as they are, and the one to copy. Where .ci/run has rendered the
// chart of Helm, they are the directories with what came out, too: the chart is held to the same.
var shapes = append([]string{"cluster", "statefulset", "roles", "standalone", "sidecar", "example"},
	filepath.SplitList(os.Getenv("TEST_CHARTS"))...)

// objects are what a kustomization makes.
type objects []json.RawMessage

var rendering struct {
	once sync.Once
	all  map[string]objects
	err  error
}

// rendered builds all kustomizations, once. What Kubernetes does not know fails there: see render.
func rendered(t *testing.T, shape string) objects {
	t.Helper()
	rendering.once.Do(func() {
		out, err := render(shapes...)
		if err != nil {
			rendering.err = err
			return
		}
		rendering.err = json.Unmarshal(out, &rendering.all)
	})
	if rendering.err != nil {
		t.Fatalf("render: %v", rendering.err)
	}
	return rendering.all[shape]
}

// render runs the program of that name, which is a module of its own.
func render(dirs ...string) ([]byte, error) {
	binary := filepath.Join(binaries, "render")
	build := exec.Command("go", "build", "-C", "render", "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build: %w\n%s", err, out)
	}
	cmd := exec.Command(binary, dirs...)
	cmd.Dir = "kubernetes"
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, errs.String())
	}
	return out, nil
}

// of decodes the objects of some kinds.
func of[T any](t *testing.T, all objects, kinds ...string) []T {
	t.Helper()
	var found []T
	for _, raw := range all {
		var head struct{ Kind string }
		var object T
		if err := yaml.Unmarshal(raw, &head); err != nil {
			t.Fatal(err)
		}
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

// workloadOf is what has the broker's pods.
func workloadOf(t *testing.T, shape string) workload {
	t.Helper()
	all := of[workload](t, rendered(t, shape), "Deployment", "StatefulSet")
	if len(all) != 1 {
		t.Fatalf("%s has %d workloads, want one", shape, len(all))
	}
	return all[0]
}

// TestMisspeltKeysAreRefused: the other tests here rely on it.
func TestMisspeltKeysAreRefused(t *testing.T) {
	natstest.Long(t)
	t.Parallel()
	rendered(t, "cluster") // builds the program
	for name, object := range map[string]string{
		"key":   "{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {clusterip: None}}",
		"value": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {replicas: many}}",
		"kind":  "{apiVersion: v1, kind: Servize, metadata: {name: x}}",
		"rule": "{apiVersion: monitoring.coreos.com/v1, kind: PrometheusRule, metadata: {name: x}," +
			" spec: {groups: [{name: y, rules: [{alarm: z}]}]}}",
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{"object.yaml": object, "kustomization.yaml": "resources: [object.yaml]"} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(filepath.Join(binaries, "render"), dir)
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("a %s that Kubernetes does not know is rendered:\n%s", name, out)
		}
	}
}

// TestKubernetes checks the pods of each shape.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	for _, shape := range shapes {
		t.Run(shape, func(t *testing.T) {
			t.Parallel()
			d := workloadOf(t, shape)
			stateful, alone := d.Kind == "StatefulSet", shape == "standalone"
			if d.APIVersion != "apps/v1" || stateful != (path.Base(shape) == "statefulset" || alone) {
				t.Fatalf("it is a %s %s", d.APIVersion, d.Kind)
			}
			if !alone && d.Spec.Replicas < 2 || alone && d.Spec.Replicas != 1 || !stateful &&
				d.Spec.Strategy.Type != "RollingUpdate" {
				t.Errorf("%d replicas, strategy %s: want another that takes over, from one that dies and in a rollout; "+
					"and where the server is embedded, one", d.Spec.Replicas, d.Spec.Strategy.Type)
			}
			broker := brokerIn(t, d)
			checkNames(t, shape, broker)
			if labels := d.Spec.Template.Metadata.Labels; len(labels) == 0 ||
				!selects(d.Spec.Selector.MatchLabels, labels) {
				t.Errorf("the pod has the labels %v, and %v are selected", labels, d.Spec.Selector.MatchLabels)
			}
			checkPod(t, d.Spec.Template.Spec, d.Spec.Selector.MatchLabels)
			checkContainer(t, d.Spec.Template.Spec, broker)
			if alone {
				checkEmbedded(t, d, broker)
			} else {
				checkAccess(t, broker)
			}
		})
	}
}

// checkNames: pods share a name only where each keeps its own.
func checkNames(t *testing.T, shape string, c container) {
	t.Helper()
	name, from := "", ""
	for _, e := range c.Env {
		if e.Name == "DELAY_INSTANCE" {
			name, from = e.Value, e.ValueFrom.FieldRef.FieldPath
		}
	}
	want := ""
	if path.Base(shape) == "statefulset" {
		want = "metadata.name"
	}
	if name != "" || from != want || c.env()["DELAY_MAX_OWNERS"] == "1" {
		t.Errorf("instance %q from %q, want it from %q: the pods have to have names of their own, and to share", name, from,
			want)
	}
}

// selects reports whether a selector matches labels.
func selects(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return len(selector) > 0
}

func checkPod(t *testing.T, p pod, labels map[string]string) {
	t.Helper()
	if p.EnableServiceLinks == nil || *p.EnableServiceLinks {
		t.Error("services of the namespace can set variables that look like settings")
	}
	if p.AutomountServiceAccountToken == nil || *p.AutomountServiceAccountToken {
		t.Error("the pod gets a token for the cluster, which nothing in it uses")
	}
	if least := grace(t); time.Duration(p.TerminationGracePeriod)*time.Second <= least {
		t.Errorf("the pod is killed after %d s, and a drain takes up to %s", p.TerminationGracePeriod, least)
	}
	s := p.SecurityContext
	if !s.RunAsNonRoot || fmt.Sprint(s.RunAsUser) != user || fmt.Sprint(s.RunAsGroup) != user ||
		s.SeccompProfile.Type != "RuntimeDefault" {
		t.Errorf("securityContext is %+v, want the image's user, not root, with the runtime's seccomp profile", s)
	}
	for _, c := range p.TopologySpread {
		if c.TopologyKey != "kubernetes.io/hostname" || c.WhenUnsatisfiable != "ScheduleAnyway" ||
			!maps.Equal(c.LabelSelector.MatchLabels, labels) {
			t.Errorf("pods are spread by %+v, want over nodes where that can be, those with the labels %v", c, labels)
		}
	}
	for _, v := range p.Volumes {
		if v.Secret.SecretName == "" || v.Secret.DefaultMode != 0o440 || fmt.Sprint(s.FSGroup) != user {
			t.Errorf("volume %+v: want a secret that the group alone can read, and the group %s", v, user)
		}
	}
}

func checkContainer(t *testing.T, p pod, c container) {
	t.Helper()
	env := c.env()
	s := c.SecurityContext
	if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !s.ReadOnlyRootFilesystem ||
		!slices.Equal(s.Capabilities.Drop, []string{"ALL"}) {
		t.Errorf("securityContext is %+v, want no privileges and a read-only root", s)
	}

	web := slices.IndexFunc(c.Ports, func(p port) bool { return strings.HasPrefix(p.Name, "http") })
	if web < 0 {
		t.Fatal("there is no port for probes")
	}
	http := c.Ports[web]
	if err := reachable(env["DELAY_HTTP_ADDR"], strconv.Itoa(http.ContainerPort)); err != nil {
		t.Errorf("DELAY_HTTP_ADDR: %v", err)
	}
	probes := map[string]*probe{"/readyz": c.ReadinessProbe, "/healthz": c.LivenessProbe}
	for path, p := range probes {
		if p == nil || p.HTTPGet.Path != path || p.HTTPGet.Port != http.Name {
			t.Errorf("a probe is %+v, want %s at port %s", p, path, http.Name)
		}
	}
	sidecar := slices.ContainsFunc(p.InitContainers, func(i container) bool { return i.Name == c.Name })
	if sidecar {
		if c.RestartPolicy != "Always" {
			t.Error("an init container without restartPolicy Always has to end before the application starts")
		}
		if c.StartupProbe == nil || c.StartupProbe.HTTPGet.Path != "/readyz" ||
			c.StartupProbe.HTTPGet.Port != http.Name {
			t.Errorf("the startup probe is %+v, want /readyz: the application starts when it succeeds", c.StartupProbe)
		}
		if env["DELAY_PREFIX"] == "" || env["DELAY_LEVELS"] != "short" {
			t.Errorf("a sidecar needs a prefix of its own and few streams, got %v", env)
		}
	}

	request, limit, soft := mebibytes(t, c.Resources.Requests["memory"]), mebibytes(t, c.Resources.Limits["memory"]),
		mebibytes(t, env["GOMEMLIMIT"])
	if request <= 0 || soft < limit*85/100 || soft > limit*92/100 {
		t.Errorf("memory: %d MiB requested, limit %d, GOMEMLIMIT %d; want nine tenths of the limit", request, limit,
			soft)
	}
	if _, limited := c.Resources.Limits["cpu"]; limited || c.Resources.Requests["cpu"] == "" {
		t.Error("want a request and no limit for the processor: throttling makes messages late")
	}
}

// checkAccess: a broker of a NATS elsewhere has an address, and credentials that are mounted.
func checkAccess(t *testing.T, c container) {
	t.Helper()
	env := c.env()
	if env["NATS_URL"] == "" {
		t.Error("there is no NATS_URL, so a server would be embedded in a pod that loses its data")
	}
	if (env["NATS_CREDS"] == "") == (env["NATS_CONTEXT"] == "") {
		t.Errorf("want creds or a context, got %v", env)
	}
	for name, file := range env {
		if !strings.HasPrefix(file, "/") {
			continue
		}
		if !slices.ContainsFunc(c.VolumeMounts, func(m mount) bool { return path.Dir(file) == m.MountPath && m.ReadOnly }) {
			t.Errorf("%s is %q, and nothing is mounted read-only there", name, file)
		}
	}
	if base := path.Base(env["NATS_CONTEXT"]); env["DELAY_HTTP_ADDR"] != "" && env["NATS_CONTEXT"] != "" { // a broker
		for _, link := range []string{"READ", "WRITE", "DELIVER"} {
			if other := path.Base(env["DELAY_"+link+"_CONTEXT"]); other == base || other == "." {
				t.Errorf("DELAY_%s_CONTEXT is %s, and NATS_CONTEXT %s: want a user for each", link, other, base)
			}
		}
	}
}

// TestProvisioningJobs: a job that makes the streams has the brokers' settings about them, and a context of its own.
func TestProvisioningJobs(t *testing.T) {
	t.Parallel()
	jobs := 0
	for _, shape := range shapes {
		broker := brokerIn(t, workloadOf(t, shape)).env()
		for _, j := range of[workload](t, rendered(t, shape), "Job") {
			jobs++
			c := j.Spec.Template.Spec.Containers[0]
			checkAccess(t, container{Env: c.Env, VolumeMounts: c.VolumeMounts})
			env := c.env()
			for _, name := range []string{"NATS_URL", "DELAY_PREFIX", "DELAY_LEVELS", "DELAY_RETRY", "DELAY_JOURNAL",
				"DELAY_TIMERS", "DELAY_SECRET"} {
				if env[name] != broker[name] {
					t.Errorf("%s: %s is %q for the job and %q for the brokers", shape, name, env[name], broker[name])
				}
			}
			if !slices.Equal(c.Args, []string{"provision"}) || env["NATS_CONTEXT"] == broker["NATS_CONTEXT"] {
				t.Errorf("%s: the job is %v as %s", shape, c.Args, env["NATS_CONTEXT"])
			}
		}
	}
	if jobs == 0 {
		t.Error("no shape has a job that makes the streams")
	}
}

// checkEmbedded: an embedded server has its data on a volume that stays, and asks for a password.
func checkEmbedded(t *testing.T, d workload, c container) {
	t.Helper()
	env, linked := c.env(), linkedVariables(t)
	if env["NATS_URL"] != "" || env["DELAY_EMBEDDED_USER"] == "" || env["DELAY_EMBEDDED_PASSWORD"] == "" {
		t.Errorf("want no NATS_URL, a user and a password, got %v", env)
	}
	if len(d.Spec.Claims) != 1 || len(c.VolumeMounts) != 1 || c.VolumeMounts[0].ReadOnly ||
		c.VolumeMounts[0].Name != d.Spec.Claims[0].Metadata.Name ||
		c.VolumeMounts[0].MountPath != linked["defaultEmbeddedDir"] {
		t.Errorf("the data is in %s; claimed is %v, mounted %v", linked["defaultEmbeddedDir"], d.Spec.Claims, c.VolumeMounts)
	}
	port := slices.IndexFunc(c.Ports, func(p port) bool { return p.Name == "nats" })
	if port < 0 {
		t.Fatal("clients have no port")
	}
	if err := reachable(linked["defaultEmbeddedListen"], strconv.Itoa(c.Ports[port].ContainerPort)); err != nil {
		t.Errorf("the port of NATS: %v", err)
	}
}

// TestPodMonitors find the pods of the shapes, and the port of their metrics.
func TestPodMonitors(t *testing.T) {
	t.Parallel()
	found := make(map[string]int)
	for _, m := range of[struct {
		Spec struct {
			JobLabel string `yaml:"jobLabel"`
			Selector labelSelector
			Ports    []struct{ Port, Path string } `yaml:"podMetricsEndpoints"`
		}
	}](t, rendered(t, "example"), "PodMonitor") {
		for _, shape := range shapes {
			d := workloadOf(t, shape)
			labels := d.Spec.Template.Metadata.Labels
			if !selects(m.Spec.Selector.MatchLabels, labels) {
				continue
			}
			found[shape]++
			if len(m.Spec.Ports) != 1 || portsOf(d)[m.Spec.Ports[0].Port] != 8422 || m.Spec.Ports[0].Path != "/metrics" ||
				labels[m.Spec.JobLabel] == "" {
				t.Errorf("%s: %+v, and the pods have %v", shape, m.Spec, portsOf(d))
			}
		}
	}
	for _, shape := range shapes {
		if found[shape] != 1 {
			t.Errorf("%s is scraped by %d monitors, want one", shape, found[shape])
		}
	}
}

var update = flag.Bool("update", false, "write the files that others are copies of")

// TestPrometheusRule: the rules for Prometheus' operator are those of alerts.yaml, which TestAlerts checks.
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
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, file) != text {
		t.Errorf("%s differs from alerts.yaml: run this test with -update", file)
	}
	var plain struct{ Groups any }
	decode(t, "alerts.yaml", &plain)
	made := of[struct{ Spec struct{ Groups any } }](t, rendered(t, "example"), "PrometheusRule")
	if len(made) != 1 || !reflect.DeepEqual(made[0].Spec.Groups, plain.Groups) {
		t.Errorf("%d objects with other rules than alerts.yaml", len(made))
	}
}

// TestExampleIsChanged: what the example sets has reached the objects.
func TestExampleIsChanged(t *testing.T) {
	t.Parallel()
	d := workloadOf(t, "example")
	c := brokerIn(t, d)
	if env := c.env(); c.Image != "ghcr.io/acme/delaybroker:v1.0.0" || d.Spec.Replicas != 3 ||
		!strings.HasPrefix(env["NATS_URL"], "tls://") || env["NATS_CREDS"] == "" || env["DELAY_JOURNAL"] != "7d" {
		t.Errorf("image %s, %d replicas, %v", c.Image, d.Spec.Replicas, env)
	}
	for _, o := range of[struct {
		Kind     string
		Metadata metadata
	}](t, rendered(t, "example"), "Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy", "PodMonitor",
		"PrometheusRule") {
		if o.Metadata.Namespace != "messaging" {
			t.Errorf("%s %s is in the namespace %q", o.Kind, o.Metadata.Name, o.Metadata.Namespace)
		}
	}
}
