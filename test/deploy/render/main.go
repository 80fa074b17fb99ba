// Command render renders kustomizations, and checks the objects against Kubernetes' own types: an unknown key, or a
// value of another type, is an error. It prints the objects of each directory as JSON.
//
// The command has its own module, so that the project does not depend on Kubernetes.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	strict "sigs.k8s.io/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(dirs []string) error {
	all := make(map[string][]json.RawMessage)
	for _, dir := range dirs {
		objects, err := render(dir)
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		all[dir] = objects
	}
	return json.NewEncoder(os.Stdout).Encode(all)
}

func render(dir string) ([]json.RawMessage, error) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, err
	}
	var objects []json.RawMessage
	for _, r := range built.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			return nil, err
		}
		id := r.GetApiVersion() + " " + r.GetKind() + " " + r.GetName()
		typed, err := typeOf(r.GetApiVersion(), r.GetKind())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		object, err := yaml.YAMLToJSON(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		unknown, err := strict.UnmarshalStrict(object, typed) // like the API server, case-sensitive
		if err := errors.Join(append(unknown, err)...); err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// typeOf returns an empty object of a kind.
func typeOf(version, kind string) (any, error) {
	switch version + " " + kind {
	case "apps/v1 Deployment":
		return &apps.Deployment{}, nil
	case "apps/v1 StatefulSet":
		return &apps.StatefulSet{}, nil
	case "batch/v1 Job":
		return &batch.Job{}, nil
	case "networking.k8s.io/v1 Ingress":
		return &networking.Ingress{}, nil
	case "v1 Service":
		return &core.Service{}, nil
	case "policy/v1 PodDisruptionBudget":
		return &policy.PodDisruptionBudget{}, nil
	case "networking.k8s.io/v1 NetworkPolicy":
		return &networking.NetworkPolicy{}, nil
	case "monitoring.coreos.com/v1 PodMonitor":
		return &monitoring.PodMonitor{}, nil
	case "monitoring.coreos.com/v1 PrometheusRule":
		return &monitoring.PrometheusRule{}, nil
	}
	return nil, fmt.Errorf("unknown kind %s of %s: add its type to typeOf", kind, version)
}
