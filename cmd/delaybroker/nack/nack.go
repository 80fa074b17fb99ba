// Package nack prints streams as manifests for NACK, the Kubernetes controller for JetStream.
package nack

import (
	"fmt"
	"io"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"go.yaml.in/yaml/v3"

	"delaybroker/broker/streams"
)

// A stream is a Stream object of NACK's API jetstream.nats.io/v1beta2.
type stream struct {
	APIVersion string            `yaml:"apiVersion"`
	Kind       string            `yaml:"kind"`
	Metadata   map[string]string `yaml:"metadata"`
	Spec       spec              `yaml:"spec"`
}

// A spec is a stream's configuration. Its fields are in the order of the output. A limit without a value means no
// limit. MaxAge is always written, since NACK's control loop would otherwise set a year.
type spec struct {
	Name            string            `yaml:"name"`
	Description     string            `yaml:"description"`
	Subjects        []string          `yaml:"subjects"`
	Retention       string            `yaml:"retention"`
	Storage         string            `yaml:"storage"`
	Discard         string            `yaml:"discard"`
	MaxMsgSize      int32             `yaml:"maxMsgSize"`
	MaxPerSubject   int64             `yaml:"maxMsgsPerSubject,omitempty"`
	MaxMsgs         int64             `yaml:"maxMsgs,omitempty"`
	MaxBytes        int64             `yaml:"maxBytes,omitempty"`
	MaxAge          string            `yaml:"maxAge"`
	Replicas        int               `yaml:"replicas"`
	DuplicateWindow string            `yaml:"duplicateWindow"`
	AllowDirect     bool              `yaml:"allowDirect"`
	Metadata        map[string]string `yaml:"metadata"`
	// PreventDelete keeps a stream and its pending messages when its manifest is deleted.
	PreventDelete bool `yaml:"preventDelete"`
}

// manifest returns the manifest of a stream.
func manifest(c jetstream.StreamConfig) stream {
	return stream{
		APIVersion: "jetstream.nats.io/v1beta2",
		Kind:       "Stream",
		// Kubernetes allows neither capital letters nor underscores in a name.
		Metadata: map[string]string{"name": strings.ReplaceAll(strings.ToLower(c.Name), "_", "-")},
		Spec: spec{
			Name: c.Name, Description: c.Description, Subjects: c.Subjects,
			Retention: strings.ToLower(c.Retention.String()), Storage: strings.ToLower(c.Storage.String()),
			Discard:    strings.ToLower(strings.TrimPrefix(c.Discard.String(), "Discard")),
			MaxMsgSize: c.MaxMsgSize, MaxPerSubject: max(c.MaxMsgsPerSubject, 0),
			MaxMsgs: max(c.MaxMsgs, 0), MaxBytes: max(c.MaxBytes, 0), MaxAge: c.MaxAge.String(),
			Replicas: c.Replicas, DuplicateWindow: c.Duplicates.String(), AllowDirect: c.AllowDirect,
			Metadata: c.Metadata, PreventDelete: true,
		},
	}
}

// Print writes the manifests of streams, for kubectl apply -f -.
func Print(w io.Writer, specs []streams.Spec) error {
	const about = "# The streams of a delaybroker. With this setting, a broker creates and changes no streams:\n" +
		"# DELAY_PROVISION=verify\n"
	if _, err := fmt.Fprint(w, about); err != nil {
		return err
	}
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	for _, s := range specs {
		if err := e.Encode(manifest(s.Config())); err != nil {
			return fmt.Errorf("print YAML: %w", err)
		}
	}
	return e.Close()
}
