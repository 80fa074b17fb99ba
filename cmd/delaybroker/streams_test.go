package main

import (
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"go.yaml.in/yaml/v3"

	"delaybroker/test/natstest"
)

// The broker neither changes nor reports streams that were created from the printed manifests.
func TestStreamsMatchTheBroker(t *testing.T) {
	o := newTestServer(t, server.Options{})
	t.Setenv("DELAY_SECRET", "not-in-any-manifest")
	for _, cfg := range decode[[]jetstream.StreamConfig](t, o.must("streams", "--replicas", "1")) {
		for name, value := range cfg.Metadata {
			if strings.Contains(value, "not-in-any") || name == "delaybroker.secret" {
				t.Errorf("%s has a secret in its metadata", cfg.Name)
			}
		}
		if _, err := o.js.CreateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := o.must("provision"), "all 10 streams exist; nothing to do\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStreamsNeedNoServer(t *testing.T) {
	externalEnv(t, "nats://127.0.0.1:1")
	all := decode[[]jetstream.StreamConfig](t, mustRunCommand(t, "", "streams", "--max-payload", "8MB"))
	i := slices.IndexFunc(all, func(c jetstream.StreamConfig) bool { return c.Name == "DELAY_INTAKE" })
	if got, want := all[i].MaxMsgSize, int32(8<<20-8<<10); got != want {
		t.Errorf("size of a message: got %d, want %d", got, want)
	}
	if got, want := all[i].Replicas, 3; got != want {
		t.Errorf("replicas: got %d, want %d", got, want)
	}
	t.Setenv("DELAY_STREAM_REPLICAS", "5")
	all = decode[[]jetstream.StreamConfig](t, mustRunCommand(t, "", "streams"))
	if got, want := all[0].Replicas, 5; got != want {
		t.Errorf("replicas: got %d, want %d", got, want)
	}
}

// The fields of a manifest exist in NACK, which ignores unknown fields.
func TestStreamsForNACK(t *testing.T) {
	externalEnv(t, "nats://127.0.0.1:1")
	configs := decode[[]jetstream.StreamConfig](t, mustRunCommand(t, "", "streams"))
	manifests := mustRunCommand(t, "", "streams", "--as", "nack")
	if about, _, _ := strings.Cut(manifests, "apiVersion"); !strings.Contains(about, "\n# DELAY_PROVISION=verify\n") {
		t.Errorf("got %q, want the setting for brokers on such streams", about)
	}
	d := yaml.NewDecoder(strings.NewReader(manifests))
	for _, cfg := range configs {
		var m struct {
			APIVersion string                `yaml:"apiVersion"`
			Kind       string                `yaml:"kind"`
			Metadata   struct{ Name string } `yaml:"metadata"`
			Spec       map[string]any        `yaml:"spec"`
		}
		natstest.NoError(t, d.Decode(&m))
		if m.APIVersion != "jetstream.nats.io/v1beta2" || m.Kind != "Stream" {
			t.Errorf("got %s %s", m.APIVersion, m.Kind)
		}
		if !regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`).MatchString(m.Metadata.Name) {
			t.Errorf("got the name %q, which Kubernetes refuses", m.Metadata.Name)
		}
		window, err := time.ParseDuration(m.Spec["duplicateWindow"].(string))
		if err != nil || window != cfg.Duplicates {
			t.Errorf("duplicateWindow: got %v, %v", m.Spec["duplicateWindow"], err)
		}
		delete(m.Spec, "duplicateWindow")
		got, err := json.Marshal(m.Spec)
		natstest.NoError(t, err)
		wanted := map[string]any{
			"name":          cfg.Name,
			"description":   cfg.Description,
			"subjects":      cfg.Subjects,
			"retention":     "limits",
			"storage":       "file",
			"discard":       "new",
			"maxMsgSize":    cfg.MaxMsgSize,
			"replicas":      cfg.Replicas,
			"allowDirect":   true,
			"maxAge":        "0s",
			"metadata":      cfg.Metadata,
			"preventDelete": true,
		}
		if cfg.MaxMsgsPerSubject > 0 {
			wanted["maxMsgsPerSubject"] = cfg.MaxMsgsPerSubject
		}
		want, err := json.Marshal(wanted)
		natstest.NoError(t, err)
		if string(got) != string(want) {
			t.Errorf("spec: got %s, want %s", got, want)
		}
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		t.Errorf("after %d manifests: got %v, want the end", len(configs), err)
	}
}

func TestStreamsUsage(t *testing.T) {
	externalEnv(t, "nats://127.0.0.1:1")
	for _, args := range []string{
		"--as terraform", "--max-payload 1", "--max-payload 65MiB", "--max-payload 1GiB", "--max-payload MiB",
		"--max-payload 9223372036854775807KiB",
		"--replicas 6", "--replicas -1", "now",
	} {
		_, _, err := runCommand(t, "", append([]string{"streams"}, strings.Fields(args)...)...)
		if got, want := exitCode(err), 2; got != want {
			t.Errorf("%s: got exit code %d, want %d (%v)", args, got, want, err)
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"65536": 64 << 10, "64KiB": 64 << 10, "64K": 64 << 10, "100KB": 100 << 10,
		"1MiB": 1 << 20, "8MB": 8 << 20, "64M": 64 << 20,
	} {
		if got, err := parseSize(text); got != want || err != nil {
			t.Errorf("%s: got %d, %v, want %d", text, got, err, want)
		}
	}
}
