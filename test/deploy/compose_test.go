package deploy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// TestCompose checks both variants: a separate NATS server, and an embedded one.
func TestCompose(t *testing.T) {
	t.Parallel()
	c := readCompose(t)
	linked := linkedVariables(t)
	for name, s := range c.Services {
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s publishes %s to other hosts, and the server requires no password", name, p)
			}
		}
		if s.Restart != "unless-stopped" {
			t.Errorf("%s is not restarted", name)
		}
		for _, v := range s.Volumes {
			volume, _, _ := strings.Cut(v, ":")
			if _, ok := c.Volumes[volume]; !ok {
				t.Errorf("%s has its data in %s, which is not a volume", name, v)
			}
		}
		for _, d := range s.DependsOn {
			if _, ok := c.Services[d]; !ok {
				t.Errorf("%s depends on %s, which is not a service", name, d)
			}
		}
	}
	for _, name := range []string{"broker", "embedded"} {
		s, ok := c.Services[name]
		if !ok {
			t.Fatalf("there is no service %s", name)
		}
		checkBrokerService(t, name, s, linked["defaultHTTPAddr"])
	}
	checkComposeDefault(t, c)
	checkComposeEmbedded(t, c, linked)
}

// checkBrokerService checks a service that runs the broker. In the container, its HTTP server listens on address.
func checkBrokerService(t *testing.T, name string, s service, address string) {
	t.Helper()
	if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) ||
		!slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) {
		t.Errorf("%s: want a read-only root and no privileges", name)
	}
	if drain := stopDuration(t); s.StopGracePeriod <= drain {
		t.Errorf("%s is killed after %s, although a stop takes up to %s", name, s.StopGracePeriod, drain)
	}
	if got := strings.Join(s.Healthcheck.Test, " "); got != "CMD /delaybroker healthcheck --ready" {
		t.Errorf("%s: the health check is %q", name, got)
	}
	if err := checkReachable(address, containerPort(s.Ports[len(s.Ports)-1])); err != nil {
		t.Errorf("%s: the published HTTP port: %v", name, err)
	}
	if _, err := os.Stat(filepath.Join(s.Build.Context, "Dockerfile")); err != nil {
		t.Errorf("%s: the build context has no Dockerfile: %v", name, err)
	}
}

// checkComposeDefault checks the broker and the NATS server that start by default.
func checkComposeDefault(t *testing.T, c compose) {
	t.Helper()
	host, port, _ := strings.Cut(strings.TrimPrefix(c.Services["broker"].Environment["NATS_URL"], "nats://"), ":")
	if _, ok := c.Services[host]; !ok || port != "4222" {
		t.Errorf("the broker connects to NATS at %s:%s, which is not a service", host, port)
	}
	if len(c.Services["broker"].Profiles) > 0 || len(c.Services["nats"].Profiles) > 0 {
		t.Error("NATS or the broker starts only with a profile")
	}
	nats := c.Services["nats"]
	mounts := slices.ContainsFunc(nats.Configs, func(m struct{ Source, Target string }) bool {
		return slices.Equal(nats.Command, []string{"--config", m.Target}) && c.Configs[m.Source].Content != ""
	})
	if !mounts {
		t.Error("NATS is not started with its configuration")
	}
	options := natsOptions(t, c.Configs["nats"].Content)
	if !options.JetStream || options.SyncInterval > time.Second {
		t.Errorf("NATS has JetStream %t and syncs every %s", options.JetStream, options.SyncInterval)
	}
	if !mountsAt(nats.Volumes, options.StoreDir) {
		t.Errorf("NATS has its data in %s, which is not a volume: %v", options.StoreDir, nats.Volumes)
	}
}

// checkComposeEmbedded checks the broker with an embedded server.
func checkComposeEmbedded(t *testing.T, c compose, linked map[string]string) {
	t.Helper()
	embedded := c.Services["embedded"]
	if !slices.Equal(embedded.Profiles, []string{"embedded"}) || len(embedded.DependsOn) > 0 ||
		embedded.Environment["NATS_URL"] != "" {
		t.Errorf("the embedded variant has another profile, depends on a service, or sets NATS_URL: %+v", embedded)
	}
	if !mountsAt(embedded.Volumes, linked["defaultEmbeddedDir"]) {
		t.Errorf("the embedded server has its data in %s, which is not a volume: %v", linked["defaultEmbeddedDir"],
			embedded.Volumes)
	}
	if err := checkReachable(linked["defaultEmbeddedListen"], containerPort(embedded.Ports[0])); err != nil {
		t.Errorf("the published NATS port: %v", err)
	}
}

// containerPort returns the last part of a published port such as 127.0.0.1:8422:8422.
func containerPort(published string) string { return published[strings.LastIndex(published, ":")+1:] }

func mountsAt(volumes []string, dir string) bool {
	return slices.ContainsFunc(volumes, func(v string) bool { return strings.HasSuffix(v, ":"+dir) })
}

// natsOptions parses a configuration as nats-server does.
func natsOptions(t *testing.T, text string) *server.Options {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	options, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatalf("the configuration of NATS: %v", err)
	}
	return options
}
