package engine

import "testing"

// TestTenantsTakeTurns: a tenant with thousands of elements has half of the places at most. The elements of other
// tenants begin at once, and alternate with those of the first tenant.
func TestTenantsTakeTurns(t *testing.T) {
	queue := newTurns[*string](16)
	add := func(tenant string, n int) {
		for range n {
			queue.add(tenant, &[]string{tenant}[0], true)
		}
	}
	tenants := func(n int) (got string) {
		for range n {
			e, ok := queue.take(nil)
			if !ok {
				return got + "-"
			}
			got += (*e)[:1]
		}
		return got
	}
	add("att", 3000)
	if got, want := tenants(20), "aaaaaaaa-"; got != want {
		t.Errorf("alone, the tenant has the places %s, want %s", got, want)
	}
	add("vic", 6)
	add("zoo", 1)
	if got, want := tenants(20), "vzvvvvv-"; got != want {
		t.Errorf("the other tenants have the places %s, want %s", got, want)
	}
	for e := range queue.begun {
		if *e == "att" {
			queue.end(e)
		}
	}
	add("vic", 3)
	if got, want := tenants(4), "avaa"; got != want && got != "avav" {
		t.Errorf("after the end of work, the next are %s, want %s", got, want)
	}
	for {
		for e := range queue.begun {
			queue.end(e)
		}
		if queue.waiting == 0 {
			break
		}
		tenants(20)
	}
	if n := len(queue.tenants) + len(queue.order) + len(queue.begun); n > 0 {
		t.Errorf("%d tenants or elements are left, want none", n)
	}
}
