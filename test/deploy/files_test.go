package deploy

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// The types of the files. Decoding compose.yaml is strict: an unknown key is an error. The program in render checks the
// objects of Kubernetes against Kubernetes' own types, so the types here have only the fields that the tests need.
type (
	// workload is a Deployment or a StatefulSet.
	workload struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Spec       struct {
			Replicas    int
			Strategy    struct{ Type string }
			ServiceName string `yaml:"serviceName"`
			Selector    labelSelector
			Template    struct {
				Metadata metadata
				Spec     pod
			}
			Claims []struct{ Metadata metadata } `yaml:"volumeClaimTemplates"`
		}
	}
	metadata struct {
		Name        string
		Namespace   string
		Labels      map[string]string
		Annotations map[string]string
	}
	labelSelector struct {
		MatchLabels map[string]string `yaml:"matchLabels"`
	}
	pod struct {
		EnableServiceLinks           *bool `yaml:"enableServiceLinks"`
		AutomountServiceAccountToken *bool `yaml:"automountServiceAccountToken"`
		TerminationGracePeriod       int   `yaml:"terminationGracePeriodSeconds"`
		SecurityContext              struct {
			RunAsNonRoot   bool                  `yaml:"runAsNonRoot"`
			RunAsUser      int                   `yaml:"runAsUser"`
			RunAsGroup     int                   `yaml:"runAsGroup"`
			FSGroup        int                   `yaml:"fsGroup"`
			SeccompProfile struct{ Type string } `yaml:"seccompProfile"`
		} `yaml:"securityContext"`
		TopologySpread []struct {
			TopologyKey       string        `yaml:"topologyKey"`
			WhenUnsatisfiable string        `yaml:"whenUnsatisfiable"`
			LabelSelector     labelSelector `yaml:"labelSelector"`
		} `yaml:"topologySpreadConstraints"`
		InitContainers []container `yaml:"initContainers"`
		Containers     []container
		Volumes        []struct {
			Name   string
			Secret struct {
				SecretName  string `yaml:"secretName"`
				DefaultMode int    `yaml:"defaultMode"`
			}
		}
	}
	container struct {
		Name          string
		Image         string
		Args          []string
		RestartPolicy string `yaml:"restartPolicy"`
		Env           []struct {
			Name, Value string
			ValueFrom   struct {
				FieldRef struct {
					FieldPath string `yaml:"fieldPath"`
				} `yaml:"fieldRef"`
				SecretKeyRef struct{ Key string } `yaml:"secretKeyRef"`
			} `yaml:"valueFrom"`
		}
		Ports           []port
		StartupProbe    *probe `yaml:"startupProbe"`
		ReadinessProbe  *probe `yaml:"readinessProbe"`
		LivenessProbe   *probe `yaml:"livenessProbe"`
		SecurityContext struct {
			AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
			ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
			Capabilities             struct{ Drop []string }
		} `yaml:"securityContext"`
		Resources    struct{ Requests, Limits map[string]string }
		VolumeMounts []mount `yaml:"volumeMounts"`
	}
	mount struct {
		Name      string
		MountPath string `yaml:"mountPath"`
		ReadOnly  bool   `yaml:"readOnly"`
	}
	port struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	probe struct {
		HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
	}

	compose struct {
		Name     string
		XBroker  service `yaml:"x-broker"`
		Services map[string]service
		Configs  map[string]struct{ Content string }
		Volumes  map[string]any
	}
	service struct {
		Image           string
		Build           struct{ Context string }
		Command         []string
		Configs         []struct{ Source, Target string }
		Profiles        []string
		DependsOn       []string `yaml:"depends_on"`
		Environment     map[string]string
		Ports           []string
		Volumes         []string
		StopGracePeriod time.Duration `yaml:"stop_grace_period"`
		Restart         string
		ReadOnly        bool     `yaml:"read_only"`
		CapDrop         []string `yaml:"cap_drop"`
		SecurityOpt     []string `yaml:"security_opt"`
		Healthcheck     struct {
			Test        []string
			Interval    time.Duration
			Timeout     time.Duration
			StartPeriod time.Duration `yaml:"start_period"`
		}
	}
)

// environments returns the settings of each broker in the files.
func environments(t *testing.T) map[string]map[string]string {
	t.Helper()
	c := readCompose(t)
	all := map[string]map[string]string{
		"image":            {},
		"image, NATS_URL":  {"NATS_URL": "nats://nats:4222"},
		"compose":          c.Services["broker"].Environment,
		"compose embedded": c.Services["embedded"].Environment,
	}
	for _, dir := range kustomizations {
		all[dir] = brokerContainer(t, brokerWorkload(t, dir)).env()
	}
	return all
}

// containers returns all containers of a pod, the init containers first.
func (d workload) containers() []container {
	return slices.Concat(d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers)
}

// brokerContainer returns the broker's container.
func brokerContainer(t *testing.T, d workload) container {
	t.Helper()
	for _, c := range d.containers() {
		if strings.Contains(c.Image, "/delaybroker:") || strings.Contains(c.Image, "/delaybroker@") {
			return c
		}
	}
	t.Fatal("no container has the image delaybroker")
	return container{}
}

// env returns the variables of a container. A value that Kubernetes sets is "made-by-kubernetes".
func (c container) env() map[string]string {
	env := make(map[string]string)
	for _, e := range c.Env {
		env[e.Name] = e.Value
		if from := e.ValueFrom; from.FieldRef.FieldPath+from.SecretKeyRef.Key != "" {
			env[e.Name] = "made-by-kubernetes"
		}
	}
	return env
}

// A stage is a stage of the Dockerfile, with one line for each instruction.
type stage [][2]string

// all returns the values of all instructions of this name.
func (s stage) all(instruction string) []string {
	var all []string
	for _, i := range s {
		if i[0] == instruction {
			all = append(all, i[1])
		}
	}
	return all
}

// get returns the last value, which is the one in force.
func (s stage) get(instruction string) string {
	all := s.all(instruction)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

func readDockerfile(t *testing.T) []stage {
	t.Helper()
	var stages []stage
	lines := regexp.MustCompile(`\\\n\s*`).ReplaceAllString(read(t, "../../Dockerfile"), "")
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		instruction, rest, _ := strings.Cut(line, " ")
		if instruction == "FROM" {
			stages = append(stages, nil)
		}
		if len(stages) == 0 {
			t.Fatalf("the Dockerfile has %q before its first stage", line)
		}
		last := &stages[len(stages)-1]
		*last = append(*last, [2]string{instruction, strings.TrimSpace(rest)})
	}
	return stages
}

// readUnit returns the values of delaybroker.service, by "section/key".
func readUnit(t *testing.T) map[string][]string {
	t.Helper()
	values := make(map[string][]string)
	section := ""
	for line := range strings.Lines(read(t, "delaybroker.service")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[]")
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || section == "" {
			t.Errorf("delaybroker.service: %q is not a key with a value", line)
		}
		values[section+"/"+key] = append(values[section+"/"+key], value)
	}
	return values
}

func readCompose(t *testing.T) compose {
	t.Helper()
	var c compose
	decode(t, "compose.yaml", &c)
	return c
}

// decode decodes a YAML file. Unknown keys and a second document are errors.
func decode(t *testing.T, file string, value any) {
	t.Helper()
	d := yaml.NewDecoder(bytes.NewBufferString(read(t, file)))
	d.KnownFields(true)
	if err := d.Decode(value); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if err := d.Decode(new(any)); err != io.EOF {
		t.Fatalf("%s has more than one document, and only the first is checked", file)
	}
}

func goVersion(t *testing.T) string {
	t.Helper()
	v := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(read(t, "../../go.mod"))
	if v == nil {
		t.Fatal("go.mod has no version of Go")
	}
	return v[1]
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s is missing", file)
	} else if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
