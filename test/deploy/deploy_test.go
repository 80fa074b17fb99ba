// Package deploy checks the files for deployments: every setting in them exists and is accepted, probes ask where the
// program listens, and data that must last is on a volume that lasts.
package deploy

import (
	"bufio"
	"context"
	"delaybroker/test/natstest"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	user    = "65532"
	dataDir = "/data"
)

// TestSettingsExist checks that each variable in a file, comments included, is a setting of the program.
func TestSettingsExist(t *testing.T) {
	natstest.Long(t)
	t.Parallel()
	known := settings(t)
	name := regexp.MustCompile(`\b(?:DELAY|NATS)_[A-Z_]+\b`)
	for _, file := range []string{"../../Dockerfile", "kubernetes/base/deployment.yaml", "kubernetes/cluster/nats.yaml",
		"kubernetes/statefulset/kustomization.yaml", "kubernetes/standalone/embedded.yaml",
		"kubernetes/sidecar/deployment.yaml", "kubernetes/example/kustomization.yaml", "kubernetes/roles/contexts.yaml",
		"kubernetes/roles/provision.yaml", "helm/values.yaml", "helm/templates/_helpers.tpl", "helm/templates/broker.yaml",
		"compose.yaml", "delaybroker.service"} {
		found := name.FindAllString(read(t, file), -1)
		for _, n := range found {
			if _, ok := known[n]; !ok {
				t.Errorf("%s mentions %s, and there is no such setting", file, n)
			}
		}
		if len(found) == 0 {
			t.Errorf("%s mentions no setting", file)
		}
	}
}

// TestNoInjectedNames: no setting has a name that Kubernetes itself puts into the environment for a service named
// "delay".
func TestNoInjectedNames(t *testing.T) {
	t.Parallel()
	injected := regexp.MustCompile(`^DELAY_(PORT|HOST|SERVICE)(_|$)|_(PORT|HOST)$`)
	for name := range settings(t) {
		if injected.MatchString(name) {
			t.Errorf("%s is a name that Kubernetes sets", name)
		}
	}
}

// TestSettingsAccepted starts the program with the settings of each file and one wrong setting of the test. The program
// reports every problem and exits before it does anything. It must report this problem and no other.
func TestSettingsAccepted(t *testing.T) {
	natstest.Long(t)
	t.Parallel()
	for name, env := range environments(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(buildImage(t), "serve")
			cmd.Env = []string{"DELAY_LOG_LEVEL=made-here"}
			for _, n := range slices.Sorted(maps.Keys(env)) {
				value := env[n]
				switch { // the program reads these files
				case n == "NATS_CREDS":
					value = filepath.Join(t.TempDir(), "user.creds")
					if err := os.WriteFile(value, nil, 0o600); err != nil {
						t.Fatal(err)
					}
				case strings.HasSuffix(n, "_CONTEXT"):
					value = filepath.Join("../permissions/contexts", filepath.Base(value))
				case n == "NATS_CA", n == "NATS_CERT", n == "NATS_KEY":
					continue // checkAccess sees that they are mounted
				}
				cmd.Env = append(cmd.Env, n+"="+value)
			}
			out, err := cmd.CombinedOutput()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 2 {
				t.Fatalf("it ended with %v, want exit code 2:\n%s", err, out)
			}
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			if len(lines) != 2 || !strings.HasPrefix(lines[1], "DELAY_LOG_LEVEL=") {
				t.Errorf("it refuses more than the one that was made here:\n%s", out)
			}
		})
	}
}

// TestWhoMakesTheStreams: a broker makes its streams unless a manifest says verify. Manifests that come with streams
// say it.
func TestWhoMakesTheStreams(t *testing.T) {
	t.Parallel()
	if got := settings(t)["DELAY_PROVISION"]; got != "create" {
		t.Errorf("DELAY_PROVISION is %q by default, want create", got)
	}
	for name, env := range environments(t) {
		want := ""
		if slices.Contains(shapes, name) && len(of[workload](t, rendered(t, name), "Job")) > 0 { // which makes them
			want = "verify"
		}
		if got := env["DELAY_PROVISION"]; got != want {
			t.Errorf("%s sets DELAY_PROVISION to %q, want %q", name, got, want)
		}
	}
	manifests, err := exec.Command(buildImage(t), "streams", "--as", "nack").Output()
	if err != nil {
		t.Fatalf("streams --as nack: %v", err)
	}
	for where, text := range map[string]string{
		"streams --as nack": string(manifests), "cluster": read(t, "kubernetes/cluster/nats.yaml"),
	} {
		if !regexp.MustCompile(`(?m)^ *#.*DELAY_PROVISION.*verify`).MatchString(text) {
			t.Errorf("%s does not say what brokers need whose streams somebody else makes", where)
		}
	}
}

// TestImageSaysWhatItExposes: by default the embedded server of the image lets in whoever reaches it. The log says so,
// and what to set. With that set, the server asks for a user, and the log says nothing.
func TestImageSaysWhatItExposes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		env  []string
		warn bool
	}{
		{"as it is", nil, true},
		{"with a user", []string{"DELAY_EMBEDDED_USER=me", "DELAY_EMBEDDED_PASSWORD=s3cret"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			host, _, err := net.SplitHostPort(linkedVariables(t)["defaultEmbeddedListen"])
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, buildImage(t), "serve")
			cmd.Env = append(tt.env, "DELAY_EMBEDDED_LISTEN="+net.JoinHostPort(host, "0"), // a free port
				"DELAY_EMBEDDED_DIR="+t.TempDir(), "DELAY_HTTP_ADDR=off", "DELAY_LEVELS=1s", "DELAY_LOG_FORMAT=json")
			log, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			said := ""
			for lines := bufio.NewScanner(log); lines.Scan(); {
				said += lines.Text() + "\n"
				if strings.Contains(lines.Text(), `"msg":"ready"`) {
					_ = cmd.Process.Signal(os.Interrupt)
				}
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("it ended with %v:\n%s", err, said)
			}
			warns := strings.Contains(said, "without a password") && strings.Contains(said, "set DELAY_EMBEDDED_USER")
			if warns != tt.warn || !strings.Contains(said, `"msg":"ready"`) {
				t.Errorf("it warns: %t, want %t:\n%s", warns, tt.warn, said)
			}
			if strings.Contains(said, "s3cret") {
				t.Errorf("the log has the password:\n%s", said)
			}
		})
	}
	env := environments(t)["compose embedded"]
	for _, name := range []string{"DELAY_EMBEDDED_USER", "DELAY_EMBEDDED_PASSWORD"} {
		if value, set := env[name]; !set || value != "" {
			t.Errorf("compose: %s is %q, want it from the shell", name, value)
		}
	}
}

// TestCompose checks both variants: a separate NATS server, and an embedded one.
func TestCompose(t *testing.T) {
	t.Parallel()
	c := readCompose(t)
	linked := linkedVariables(t)
	for name, s := range c.Services {
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s publishes %s to others, and nothing asks for a password", name, p)
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
				t.Errorf("%s depends on %s, which is no service", name, d)
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
	checkBesideNATS(t, c)
	checkWithNATSInside(t, c, linked)
}

// checkBrokerService looks at a service that runs the broker, with HTTP at this address in the container.
func checkBrokerService(t *testing.T, name string, s service, address string) {
	t.Helper()
	if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) ||
		!slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) {
		t.Errorf("%s: want a read-only root and no privileges", name)
	}
	if least := grace(t); s.StopGracePeriod <= least {
		t.Errorf("%s is killed after %s, and a drain takes up to %s", name, s.StopGracePeriod, least)
	}
	if got := strings.Join(s.Healthcheck.Test, " "); got != "CMD /delaybroker healthcheck --ready" {
		t.Errorf("%s: the health check is %q", name, got)
	}
	if err := reachable(address, containerPort(s.Ports[len(s.Ports)-1])); err != nil {
		t.Errorf("%s: the published HTTP port: %v", name, err)
	}
	if _, err := os.Stat(filepath.Join(s.Build.Context, "Dockerfile")); err != nil {
		t.Errorf("%s: there is nothing to build: %v", name, err)
	}
}

// checkBesideNATS looks at the broker and the NATS server that start by default.
func checkBesideNATS(t *testing.T, c compose) {
	t.Helper()
	host, port, _ := strings.Cut(strings.TrimPrefix(c.Services["broker"].Environment["NATS_URL"], "nats://"), ":")
	if _, ok := c.Services[host]; !ok || port != "4222" {
		t.Errorf("the broker looks for NATS at %s:%s, which is no service", host, port)
	}
	if len(c.Services["broker"].Profiles) > 0 || len(c.Services["nats"].Profiles) > 0 {
		t.Error("NATS and the broker do not start without a profile")
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

// checkWithNATSInside looks at the broker with an embedded server.
func checkWithNATSInside(t *testing.T, c compose, linked map[string]string) {
	t.Helper()
	embedded := c.Services["embedded"]
	if !slices.Equal(embedded.Profiles, []string{"embedded"}) || len(embedded.DependsOn) > 0 ||
		embedded.Environment["NATS_URL"] != "" {
		t.Errorf("the embedded variant needs something else: %+v", embedded)
	}
	if !mountsAt(embedded.Volumes, linked["defaultEmbeddedDir"]) {
		t.Errorf("the embedded server has its data in %s, which is not a volume: %v", linked["defaultEmbeddedDir"],
			embedded.Volumes)
	}
	if err := reachable(linked["defaultEmbeddedListen"], containerPort(embedded.Ports[0])); err != nil {
		t.Errorf("the published NATS port: %v", err)
	}
}

// TestUnit checks the file for systemd.
func TestUnit(t *testing.T) {
	t.Parallel()
	u := readUnit(t)
	for _, want := range []string{
		"Unit/Description", "Install/WantedBy=multi-user.target",
		"Service/ExecStart=/usr/local/bin/delaybroker serve", "Service/Restart=on-failure",
		"Service/RestartPreventExitStatus=2", // a wrong configuration: another start would not help
		"Service/DynamicUser=yes", "Service/StateDirectory=delaybroker",
		"Service/WorkingDirectory=%S/delaybroker", // parent of the embedded server's data
		"Service/ProtectSystem=strict", "Service/ProtectHome=yes", "Service/PrivateTmp=yes",
		"Service/PrivateDevices=yes",
		"Service/NoNewPrivileges=yes", "Service/CapabilityBoundingSet=", "Service/MemoryDenyWriteExecute=yes",
		"Service/SystemCallFilter=@system-service", "Service/UMask=0077",
	} {
		name, value, valued := strings.Cut(want, "=")
		if got, ok := u[name]; !ok || valued && !slices.Contains(got, value) {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
	if len(u["Service/User"]) > 0 {
		t.Error("User= stands against DynamicUser=")
	}
	for _, e := range u["Service/Environment"] {
		t.Errorf("Environment=%s cannot be told from what is set in the file of settings", e)
	}
	stop, err := time.ParseDuration(strings.Join(u["Service/TimeoutStopSec"], ""))
	if least := grace(t); err != nil || stop <= least {
		t.Errorf("it is killed after %s (%v), and a drain takes up to %s", stop, err, least)
	}
	if dir := plainDefault(t, "DELAY_EMBEDDED_DIR"); dir == "" || filepath.IsAbs(dir) {
		t.Errorf("the data is in %s and not below the working directory", dir)
	}
}

// reachable returns what keeps others from reaching a listener.
func reachable(address, wantPort string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host != "" && !ip.IsUnspecified() {
		return fmt.Errorf("%s is not reached from outside the container", address)
	}
	if port != wantPort {
		return fmt.Errorf("the program listens on port %s, and is looked for on %s", port, wantPort)
	}
	return nil
}

// containerPort is the last part of 127.0.0.1:8422:8422.
func containerPort(published string) string { return published[strings.LastIndex(published, ":")+1:] }

func mountsAt(volumes []string, dir string) bool {
	return slices.ContainsFunc(volumes, func(v string) bool { return strings.HasSuffix(v, ":"+dir) })
}

func mebibytes(t *testing.T, quantity string) int {
	t.Helper()
	digits := strings.TrimSuffix(strings.TrimSuffix(quantity, "B"), "Mi")
	n, err := strconv.Atoi(digits)
	if err != nil || digits == quantity {
		t.Errorf("%q is not a number of MiB", quantity)
	}
	return n
}

// grace is how long a stop of the broker may take: the drain, and one second for probes.
func grace(t *testing.T) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(settings(t)["DELAY_SHUTDOWN_GRACE"])
	if err != nil {
		t.Fatal(err)
	}
	return d + time.Second
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
