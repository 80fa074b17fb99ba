// Package deploy checks the files for deployments: the program accepts all their settings, the probes use the address
// on which the program listens, and permanent data is on a volume.
package deploy

import (
	"bufio"
	"context"
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

	"delaybroker/test/natstest"
)

const (
	imageUser = "65532"
	dataDir   = "/data"
)

// TestSettingsExist checks that each variable in a file, comments included, is a setting of the program.
func TestSettingsExist(t *testing.T) {
	natstest.SkipShort(t)
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

// TestSettingsAccepted starts the program with the settings of each file, and with one invalid setting. The program
// reports all invalid settings and exits before it does anything. It must report this setting and no other.
func TestSettingsAccepted(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	for name, env := range environments(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(buildImage(t), "serve")
			cmd.Env = []string{"DELAY_LOG_LEVEL=invalid"}
			for _, n := range slices.Sorted(maps.Keys(env)) {
				value := env[n]
				switch { // the program reads these files
				case n == "NATS_CREDS":
					value = filepath.Join(t.TempDir(), "user.creds")
					natstest.NoError(t, os.WriteFile(value, nil, 0o600))
				case strings.HasSuffix(n, "_CONTEXT"):
					value = filepath.Join("../permissions/contexts", filepath.Base(value))
				case n == "NATS_CA", n == "NATS_CERT", n == "NATS_KEY":
					continue // checkAccess checks that they are mounted
				}
				cmd.Env = append(cmd.Env, n+"="+value)
			}
			out, err := cmd.CombinedOutput()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 2 {
				t.Fatalf("the program ended with %v, want exit code 2:\n%s", err, out)
			}
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			if len(lines) != 2 || !strings.HasPrefix(lines[1], "DELAY_LOG_LEVEL=") {
				t.Errorf("the program refuses more than DELAY_LOG_LEVEL:\n%s", out)
			}
		})
	}
}

// TestProvisionSetting: a broker creates its streams, unless a job or a manifest creates them. Then the files for the
// brokers set DELAY_PROVISION=verify, or advise that.
func TestProvisionSetting(t *testing.T) {
	t.Parallel()
	if got := settings(t)["DELAY_PROVISION"]; got != "create" {
		t.Errorf("DELAY_PROVISION is %q by default, want create", got)
	}
	for name, env := range environments(t) {
		want := ""
		if slices.Contains(kustomizations, name) && len(decodeKinds[workload](t, renderedObjects(t, name), "Job")) > 0 {
			want = "verify" // the job creates the streams
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
			t.Errorf("%s does not advise DELAY_PROVISION=verify for brokers that use these streams", where)
		}
	}
}

// TestImageWarnsAboutExposure: by default the embedded server of the image accepts every client that reaches it. The
// log has a warning, with the settings that require a user. With these settings there is no warning.
func TestImageWarnsAboutExposure(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		env  []string
		warn bool
	}{
		{"without a user", nil, true},
		{"with a user", []string{"DELAY_EMBEDDED_USER=me", "DELAY_EMBEDDED_PASSWORD=s3cret"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			host, _, err := net.SplitHostPort(linkedVariables(t)["defaultEmbeddedListen"])
			natstest.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, buildImage(t), "serve")
			cmd.Env = append(tt.env, "DELAY_EMBEDDED_LISTEN="+net.JoinHostPort(host, "0"), // a free port
				"DELAY_EMBEDDED_DIR="+t.TempDir(), "DELAY_HTTP_ADDR=off", "DELAY_LEVELS=1s", "DELAY_LOG_FORMAT=json")
			log, err := cmd.StderrPipe()
			natstest.NoError(t, err)
			natstest.NoError(t, cmd.Start())
			text := ""
			for lines := bufio.NewScanner(log); lines.Scan(); {
				text += lines.Text() + "\n"
				if strings.Contains(lines.Text(), `"msg":"ready"`) {
					_ = cmd.Process.Signal(os.Interrupt)
				}
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("the program ended with %v:\n%s", err, text)
			}
			warns := strings.Contains(text, "without a password") && strings.Contains(text, "set DELAY_EMBEDDED_USER")
			if warns != tt.warn || !strings.Contains(text, `"msg":"ready"`) {
				t.Errorf("the log has a warning: %t, want %t:\n%s", warns, tt.warn, text)
			}
			if strings.Contains(text, "s3cret") {
				t.Errorf("the log has the password:\n%s", text)
			}
		})
	}
	env := environments(t)["compose embedded"]
	for _, name := range []string{"DELAY_EMBEDDED_USER", "DELAY_EMBEDDED_PASSWORD"} {
		if value, set := env[name]; !set || value != "" {
			t.Errorf("compose: %s is %q, want no value, so that compose takes it from the shell", name, value)
		}
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
		t.Error("User= contradicts DynamicUser=")
	}
	for _, e := range u["Service/Environment"] {
		t.Errorf("Environment=%s would look to the program like a setting of the user", e)
	}
	stop, err := time.ParseDuration(strings.Join(u["Service/TimeoutStopSec"], ""))
	if drain := stopDuration(t); err != nil || stop <= drain {
		t.Errorf("the program is killed after %s (%v), although a stop takes up to %s", stop, err, drain)
	}
	if dir := defaultOutsideImage(t, "DELAY_EMBEDDED_DIR"); dir == "" || filepath.IsAbs(dir) {
		t.Errorf("the data is in %s, want a directory below the working directory", dir)
	}
}

// checkReachable returns an error if a listen address cannot be reached from outside the container on wantPort.
func checkReachable(address, wantPort string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host != "" && !ip.IsUnspecified() {
		return fmt.Errorf("%s cannot be reached from outside the container", address)
	}
	if port != wantPort {
		return fmt.Errorf("the program listens on port %s, want %s", port, wantPort)
	}
	return nil
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

// stopDuration returns the maximum duration of a stop of the broker: the drain, and one second for the probes.
func stopDuration(t *testing.T) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(settings(t)["DELAY_SHUTDOWN_GRACE"])
	natstest.NoError(t, err)
	return d + time.Second
}
