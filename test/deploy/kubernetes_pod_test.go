package deploy

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestKubernetes checks the pods of each kustomization.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	for _, dir := range kustomizations {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			d := brokerWorkload(t, dir)
			stateful, standalone := d.Kind == "StatefulSet", dir == "standalone"
			if d.APIVersion != "apps/v1" || stateful != (path.Base(dir) == "statefulset" || standalone) {
				t.Fatalf("the workload is a %s %s", d.APIVersion, d.Kind)
			}
			if !standalone && d.Spec.Replicas < 2 || standalone && d.Spec.Replicas != 1 || !stateful &&
				d.Spec.Strategy.Type != "RollingUpdate" {
				t.Errorf("%d replicas, strategy %s: want at least two and a rolling update, so that another instance takes over; "+
					"with an embedded server, want one", d.Spec.Replicas, d.Spec.Strategy.Type)
			}
			broker := brokerContainer(t, d)
			checkInstanceName(t, dir, broker)
			if labels := d.Spec.Template.Metadata.Labels; len(labels) == 0 ||
				!selects(d.Spec.Selector.MatchLabels, labels) {
				t.Errorf("the pod has the labels %v, and the selector has %v", labels, d.Spec.Selector.MatchLabels)
			}
			checkPod(t, d.Spec.Template.Spec, d.Spec.Selector.MatchLabels)
			checkContainer(t, d.Spec.Template.Spec, broker)
			if standalone {
				checkEmbedded(t, d, broker)
			} else {
				checkAccess(t, broker)
			}
		})
	}
}

// checkInstanceName checks that a pod of a StatefulSet uses its own name as the name of the instance, and that other
// pods have no fixed name.
func checkInstanceName(t *testing.T, dir string, c container) {
	t.Helper()
	name, from := "", ""
	for _, e := range c.Env {
		if e.Name == "DELAY_INSTANCE" {
			name, from = e.Value, e.ValueFrom.FieldRef.FieldPath
		}
	}
	want := ""
	if path.Base(dir) == "statefulset" {
		want = "metadata.name"
	}
	if name != "" || from != want {
		t.Errorf("instance %q from %q, want it from %q", name, from, want)
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
		t.Error("enableServiceLinks: services of the namespace would set variables that look like settings")
	}
	if p.AutomountServiceAccountToken == nil || *p.AutomountServiceAccountToken {
		t.Error("the pod gets a token for the Kubernetes API, which the broker does not use")
	}
	if drain := stopDuration(t); time.Duration(p.TerminationGracePeriod)*time.Second <= drain {
		t.Errorf("the pod is killed after %d s, although a stop takes up to %s", p.TerminationGracePeriod, drain)
	}
	s := p.SecurityContext
	if !s.RunAsNonRoot || fmt.Sprint(s.RunAsUser) != imageUser || fmt.Sprint(s.RunAsGroup) != imageUser ||
		s.SeccompProfile.Type != "RuntimeDefault" {
		t.Errorf("securityContext is %+v, want the image's user, not root, with the runtime's seccomp profile", s)
	}
	for _, c := range p.TopologySpread {
		if c.TopologyKey != "kubernetes.io/hostname" || c.WhenUnsatisfiable != "ScheduleAnyway" ||
			!maps.Equal(c.LabelSelector.MatchLabels, labels) {
			t.Errorf("topology spread %+v: want pods with the labels %v on different nodes, if possible", c, labels)
		}
	}
	for _, v := range p.Volumes {
		if v.Secret.SecretName == "" || v.Secret.DefaultMode != 0o440 || fmt.Sprint(s.FSGroup) != imageUser {
			t.Errorf("volume %+v: want a secret that only the group can read, and the group %s", v, imageUser)
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
	if err := checkReachable(env["DELAY_HTTP_ADDR"], strconv.Itoa(http.ContainerPort)); err != nil {
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
			t.Error("the sidecar needs restartPolicy Always: otherwise the application waits for its end")
		}
		if c.StartupProbe == nil || c.StartupProbe.HTTPGet.Path != "/readyz" ||
			c.StartupProbe.HTTPGet.Port != http.Name {
			t.Errorf("the startup probe is %+v, want /readyz: the application starts when it succeeds", c.StartupProbe)
		}
		if env["DELAY_PREFIX"] == "" || env["DELAY_LEVELS"] != "short" {
			t.Errorf("got %v, want an own prefix and few streams for the sidecar", env)
		}
	}

	request, limit, soft := mebibytes(t, c.Resources.Requests["memory"]), mebibytes(t, c.Resources.Limits["memory"]),
		mebibytes(t, env["GOMEMLIMIT"])
	if request <= 0 || soft < limit*85/100 || soft > limit*92/100 {
		t.Errorf("memory: %d MiB requested, limit %d, GOMEMLIMIT %d; want nine tenths of the limit", request, limit,
			soft)
	}
	if _, limited := c.Resources.Limits["cpu"]; limited || c.Resources.Requests["cpu"] == "" {
		t.Error("want a CPU request and no CPU limit: throttling makes messages late")
	}
}

// checkAccess checks that a broker of an external NATS server has its address and mounted credentials.
func checkAccess(t *testing.T, c container) {
	t.Helper()
	env := c.env()
	if env["NATS_URL"] == "" {
		t.Error("NATS_URL is missing: the broker would embed a server in a pod without a volume")
	}
	if (env["NATS_CREDS"] == "") == (env["NATS_CONTEXT"] == "") {
		t.Errorf("want creds or a context, got %v", env)
	}
	for name, file := range env {
		if !strings.HasPrefix(file, "/") {
			continue
		}
		if !slices.ContainsFunc(c.VolumeMounts, func(m mount) bool { return path.Dir(file) == m.MountPath && m.ReadOnly }) {
			t.Errorf("%s is %q, and its directory is not mounted read-only", name, file)
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

// checkEmbedded checks that an embedded server has its data on a permanent volume, and requires a password.
func checkEmbedded(t *testing.T, d workload, c container) {
	t.Helper()
	env, linked := c.env(), linkedVariables(t)
	if env["NATS_URL"] != "" || env["DELAY_EMBEDDED_USER"] == "" || env["DELAY_EMBEDDED_PASSWORD"] == "" {
		t.Errorf("want no NATS_URL, a user and a password, got %v", env)
	}
	if len(d.Spec.Claims) != 1 || len(c.VolumeMounts) != 1 || c.VolumeMounts[0].ReadOnly ||
		c.VolumeMounts[0].Name != d.Spec.Claims[0].Metadata.Name ||
		c.VolumeMounts[0].MountPath != linked["defaultEmbeddedDir"] {
		t.Errorf("the data is in %s; the claims are %v, and the mounts %v", linked["defaultEmbeddedDir"], d.Spec.Claims,
			c.VolumeMounts)
	}
	port := slices.IndexFunc(c.Ports, func(p port) bool { return p.Name == "nats" })
	if port < 0 {
		t.Fatal("the container has no port nats for clients")
	}
	if err := checkReachable(linked["defaultEmbeddedListen"], strconv.Itoa(c.Ports[port].ContainerPort)); err != nil {
		t.Errorf("the port of NATS: %v", err)
	}
}

// TestProvisioningJobs: a job that creates the streams has the brokers' settings for streams, and its own context.
func TestProvisioningJobs(t *testing.T) {
	t.Parallel()
	jobs := 0
	for _, dir := range kustomizations {
		broker := brokerContainer(t, brokerWorkload(t, dir)).env()
		for _, j := range decodeKinds[workload](t, renderedObjects(t, dir), "Job") {
			jobs++
			c := j.Spec.Template.Spec.Containers[0]
			checkAccess(t, container{Env: c.Env, VolumeMounts: c.VolumeMounts})
			env := c.env()
			for _, name := range []string{"NATS_URL", "DELAY_PREFIX", "DELAY_LEVELS", "DELAY_RETRY", "DELAY_JOURNAL",
				"DELAY_TIMERS", "DELAY_SECRET"} {
				if env[name] != broker[name] {
					t.Errorf("%s: %s is %q for the job and %q for the brokers", dir, name, env[name], broker[name])
				}
			}
			if !slices.Equal(c.Args, []string{"provision"}) || env["NATS_CONTEXT"] == broker["NATS_CONTEXT"] {
				t.Errorf("%s: the job runs %v with the context %s, want provision with another context than the brokers'",
					dir, c.Args, env["NATS_CONTEXT"])
			}
		}
	}
	if jobs == 0 {
		t.Error("no kustomization has a job that creates the streams")
	}
}
