package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"delaybroker/test/natstest"
)

// helmTemplate renders the chart with a values file and further arguments, as the release "shop".
func helmTemplate(t *testing.T, values string, args ...string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	natstest.NoError(t, os.WriteFile(file, []byte(values), 0o600))
	args = append([]string{"template", "shop", "helm", "--kube-version", "1.32.0", "-f", file}, args...)
	out, err := exec.Command(natstest.Tool(t, "helm"), args...).CombinedOutput()
	return string(out), err
}

// TestChartValues: the broker gets the values as people write them in a values file: large numbers, and YAML's on and
// off.
func TestChartValues(t *testing.T) {
	t.Parallel()
	out, err := helmTemplate(t, `
settings: {DELAY_MAX_PENDING: 5000000, DELAY_ATTEMPTS: 1000000, DELAY_RATE: 50, DELAY_TIMERS: on,
  DELAY_LOG_LEVEL: debug}
journal: off
podSecurityContext: {runAsUser: null, runAsGroup: null, fsGroup: null}
`)
	if err != nil {
		t.Fatal(out)
	}
	for name, want := range map[string]string{
		"DELAY_MAX_PENDING": "5000000", "DELAY_ATTEMPTS": "1000000", "DELAY_RATE": "50", "DELAY_TIMERS": "on",
		"DELAY_JOURNAL": "off", "DELAY_LEVELS": "default", "DELAY_LOG_LEVEL": "debug",
	} {
		if !strings.Contains(out, `{name: `+name+`, value: "`+want+`"}`) {
			t.Errorf("%s is not %q", name, want)
		}
	}
	if strings.Contains(out, "runAsUser") || strings.Contains(out, "fsGroup") ||
		!strings.Contains(out, "runAsNonRoot: true") {
		t.Error("the pods have a fixed user, and the values remove it")
	}
	if strings.Contains(out, "e+06") {
		t.Error("a number is a float")
	}
}

// TestChartNames: the objects have the name of the release and the chart, so that they collide with no object of an
// application with the release's name, or the name in the values.
func TestChartNames(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`(?m)^  name: (\S+)$`)
	for values, want := range map[string]string{"{}": "shop-delaybroker", "fullnameOverride: later": "later"} {
		out, err := helmTemplate(t, values)
		if err != nil {
			t.Fatal(out)
		}
		found := name.FindAllStringSubmatch(out, -1)
		if len(found) < 4 {
			t.Errorf("%s: %d objects, want at least four", values, len(found))
		}
		for _, m := range found {
			if m[1] != want && m[1] != want+"-test" {
				t.Errorf("%s: an object is called %s, want %s", values, m[1], want)
			}
		}
		if !strings.Contains(out, "helm.sh/hook: test") || !strings.Contains(out, `value: "`+want+`:8422"`) {
			t.Errorf("%s: no test of the release", values)
		}
	}
}

// TestChartRefusals: a value that would do nothing, or a setting that the chart sets, is an error that names it.
func TestChartRefusals(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		"settings: {DELAY_LEVELS: short}":                     "settings.DELAY_LEVELS: the chart sets it: change",
		"settings: {NATS_URL: 'nats://x:4222'}":               "change the value nats.url",
		"settings: {GOMEMLIMIT: 100MiB}":                      "change the value resources.memoryLimitMiB",
		"settings: {DELAY_SECRET: x}":                         "change the value secrets.existingSecret",
		"{kind: StatefulSet, settings: {DELAY_INSTANCE: a}}":  "change the value kind",
		"replicaCount: 5":                                     "replicaCount",
		"resources: {limits: {cpu: 2}}":                       "limits",
		"extraEnv: x":                                         "extraEnv",
		"kind: DaemonSet":                                     "kind",
		"settings: {DELAY_RATE: [5]}":                         "DELAY_RATE",
		"settings: {delay_rate: 5}":                           "delay_rate",
		"settings: {DELAY_LEVEL: 1s}":                         "invalid propertyName 'DELAY_LEVEL'",
		"natz: {url: x}":                                      "natz",
		"replicas: zero":                                      "replicas",
		"page: {actions: true}":                               "page.actions needs a token: set secrets.existingSecret",
		"{page: {ingress: {enabled: true}}, levels: default}": "page.ingress.host",
	} {
		if out, err := helmTemplate(t, values); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, %.200s; want an error with %q", values, err, out, want)
		}
	}
}

// TestChartKnowsSettings: the chart accepts each setting of the program below settings, and no other name that begins
// like one.
func TestChartKnowsSettings(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	var schema struct {
		Properties struct {
			Settings struct {
				PropertyNames struct{ AnyOf []struct{ Enum []string } }
			}
		}
	}
	natstest.NoError(t, json.Unmarshal([]byte(read(t, "helm/values.schema.json")), &schema))
	var want []string
	for name := range settings(t) {
		if strings.HasPrefix(name, "DELAY_") || strings.HasPrefix(name, "NATS_") {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	if got := schema.Properties.Settings.PropertyNames.AnyOf[0].Enum; !slices.Equal(got, want) {
		t.Errorf("values.schema.json has the settings %q, want %q", got, want)
	}
}
