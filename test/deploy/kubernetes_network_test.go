package deploy

import (
	"slices"
	"testing"
)

// TestServicesReachPods: each Service, budget and policy of a shape is about its pods, and names ports that they have.
func TestServicesReachPods(t *testing.T) {
	t.Parallel()
	for _, shape := range shapes {
		t.Run(shape, func(t *testing.T) {
			t.Parallel()
			all, d := rendered(t, shape), workloadOf(t, shape)
			labels, ports := d.Spec.Template.Metadata.Labels, portsOf(d)
			headless := ""
			for _, s := range of[struct {
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
					t.Errorf("service %s selects %v, and the pods have %v", s.Metadata.Name, s.Spec.Selector, labels)
				}
				for _, p := range s.Spec.Ports {
					if ports[p.TargetPort] != p.Port {
						t.Errorf("service %s goes to port %s, and the pods have %v", s.Metadata.Name, p.TargetPort, ports)
					}
				}
				if s.Spec.ClusterIP == "None" {
					headless = s.Metadata.Name
				}
			}
			if d.Kind == "StatefulSet" && (d.Spec.ServiceName == "" || d.Spec.ServiceName != headless) {
				t.Errorf("the pods' service is %q, and the one without an address %q", d.Spec.ServiceName, headless)
			}
			checkBudget(t, all, d)
			checkPolicies(t, shape, all, labels, ports)
		})
	}
}

// portsOf are the ports of all containers, by name.
func portsOf(d workload) map[string]int {
	all := make(map[string]int)
	for _, c := range d.containers() {
		for _, p := range c.Ports {
			all[p.Name] = p.ContainerPort
		}
	}
	return all
}

// checkBudget: of several pods one may be away, also if all are unready. A single one has no budget.
func checkBudget(t *testing.T, all objects, d workload) {
	t.Helper()
	budgets := of[struct {
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

// checkPolicies: Prometheus reaches the pods, and they reach DNS, NATS and a collector.
func checkPolicies(t *testing.T, shape string, all objects, labels map[string]string, ports map[string]int) {
	t.Helper()
	policies := of[struct {
		Spec struct {
			PodSelector labelSelector `yaml:"podSelector"`
			PolicyTypes []string      `yaml:"policyTypes"`
			Ingress     []struct{ Ports []struct{ Port string } }
			Egress      []struct{ Ports []struct{ Port string } }
		}
	}](t, all, "NetworkPolicy")
	if shape == "sidecar" { // a policy would be the application's
		if len(policies) != 0 {
			t.Error("the sidecar's policy is the application's too")
		}
		return
	}
	if len(policies) != 1 {
		t.Fatalf("%d policies, want one", len(policies))
	}
	p, let, out := policies[0].Spec, []string{}, []string{}
	for _, rule := range p.Ingress {
		for _, port := range rule.Ports {
			if ports[port.Port] == 0 {
				t.Errorf("port %s is let in, and the pods have %v", port.Port, ports)
			}
			let = append(let, port.Port)
		}
	}
	for _, rule := range p.Egress {
		for _, port := range rule.Ports {
			out = append(out, port.Port)
		}
	}
	wantIn, wantOut := []string{"http"}, []string{"53", "53", "4222", "4318"}
	if shape == "standalone" {
		wantIn, wantOut = []string{"http", "nats"}, []string{"53", "53", "4318"}
	}
	if !selects(p.PodSelector.MatchLabels, labels) || !slices.Equal(p.PolicyTypes, []string{"Ingress", "Egress"}) ||
		!slices.Equal(let, wantIn) || !slices.Equal(out, wantOut) {
		t.Errorf("the policy of %v lets in %v, want %v; and out %v, want %v", p.PodSelector, let, wantIn, out, wantOut)
	}
}
