package deploy

import (
	"slices"
	"testing"
)

// TestServicesReachPods: each Service, disruption budget and network policy of a kustomization selects the pods of that
// kustomization, and names ports of these pods.
func TestServicesReachPods(t *testing.T) {
	t.Parallel()
	for _, dir := range kustomizations {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			all, d := renderedObjects(t, dir), brokerWorkload(t, dir)
			labels, ports := d.Spec.Template.Metadata.Labels, containerPorts(d)
			headless := ""
			for _, s := range decodeKinds[struct {
				Metadata metadata
				Spec     struct {
					ClusterIP string `yaml:"clusterIP"`
					Selector  map[string]string
					Ports     []struct {
						Port       int
						TargetPort string `yaml:"targetPort"`
					}
				}
			}](t, all, "Service") {
				if !selects(s.Spec.Selector, labels) || len(s.Spec.Ports) == 0 {
					t.Errorf("service %s selects %v, and the pods have the labels %v", s.Metadata.Name, s.Spec.Selector, labels)
				}
				for _, p := range s.Spec.Ports {
					if ports[p.TargetPort] != p.Port {
						t.Errorf("service %s uses port %s, and the pods have %v", s.Metadata.Name, p.TargetPort, ports)
					}
				}
				if s.Spec.ClusterIP == "None" {
					headless = s.Metadata.Name
				}
			}
			if d.Kind == "StatefulSet" && (d.Spec.ServiceName == "" || d.Spec.ServiceName != headless) {
				t.Errorf("the pods' service is %q, want the headless service %q", d.Spec.ServiceName, headless)
			}
			checkBudget(t, all, d)
			checkPolicies(t, dir, all, labels, ports)
		})
	}
}

// containerPorts returns the ports of all containers, by name.
func containerPorts(d workload) map[string]int {
	all := make(map[string]int)
	for _, c := range d.containers() {
		for _, p := range c.Ports {
			all[p.Name] = p.ContainerPort
		}
	}
	return all
}

// checkBudget checks the disruption budget. Of several pods one may be unavailable, even if all are unready. A single
// pod has no budget.
func checkBudget(t *testing.T, all objects, d workload) {
	t.Helper()
	budgets := decodeKinds[struct {
		Spec struct {
			MaxUnavailable             int    `yaml:"maxUnavailable"`
			UnhealthyPodEvictionPolicy string `yaml:"unhealthyPodEvictionPolicy"`
			Selector                   labelSelector
		}
	}](t, all, "PodDisruptionBudget")
	if d.Spec.Replicas == 1 && len(budgets) == 0 {
		return
	}
	if len(budgets) != 1 || d.Spec.Replicas == 1 {
		t.Fatalf("%d budgets for %d replicas", len(budgets), d.Spec.Replicas)
	}
	b := budgets[0].Spec
	if b.MaxUnavailable != 1 || b.UnhealthyPodEvictionPolicy != "AlwaysAllow" ||
		!selects(b.Selector.MatchLabels, d.Spec.Template.Metadata.Labels) {
		t.Errorf("the budget is %+v", b)
	}
}

// checkPolicies checks the network policy. Prometheus can reach the pods, and the pods can reach DNS, NATS and a
// collector of traces.
func checkPolicies(t *testing.T, dir string, all objects, labels map[string]string, ports map[string]int) {
	t.Helper()
	policies := decodeKinds[struct {
		Spec struct {
			PodSelector labelSelector `yaml:"podSelector"`
			PolicyTypes []string      `yaml:"policyTypes"`
			Ingress     []struct{ Ports []struct{ Port string } }
			Egress      []struct{ Ports []struct{ Port string } }
		}
	}](t, all, "NetworkPolicy")
	if dir == "sidecar" {
		if len(policies) != 0 {
			t.Error("the sidecar has a policy, which would apply to the application too")
		}
		return
	}
	if len(policies) != 1 {
		t.Fatalf("%d policies, want one", len(policies))
	}
	p, in, out := policies[0].Spec, []string{}, []string{}
	for _, rule := range p.Ingress {
		for _, port := range rule.Ports {
			if ports[port.Port] == 0 {
				t.Errorf("the policy allows port %s, and the pods have %v", port.Port, ports)
			}
			in = append(in, port.Port)
		}
	}
	for _, rule := range p.Egress {
		for _, port := range rule.Ports {
			out = append(out, port.Port)
		}
	}
	wantIn, wantOut := []string{"http"}, []string{"53", "53", "4222", "4318"}
	if dir == "standalone" {
		wantIn, wantOut = []string{"http", "nats"}, []string{"53", "53", "4318"}
	}
	if !selects(p.PodSelector.MatchLabels, labels) || !slices.Equal(p.PolicyTypes, []string{"Ingress", "Egress"}) ||
		!slices.Equal(in, wantIn) || !slices.Equal(out, wantOut) {
		t.Errorf("the policy of %v allows in %v, want %v; and out %v, want %v", p.PodSelector, in, wantIn, out, wantOut)
	}
}
