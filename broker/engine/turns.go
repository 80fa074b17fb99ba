package engine

import "slices"

// turns is a queue of work in which tenants take turns: the elements of one tenant do not delay those of another. At
// most max elements are carried out concurrently. Of these, at most half belong to one tenant, so elements that take
// long leave room for other tenants. A tenant is the first token of targets.
type turns[T comparable] struct {
	max     int
	tenants map[string]*tenant[T]
	order   []*tenant[T] // the tenants with waiting elements; the first is next
	waiting int          // the number of waiting elements
	begun   map[T]*tenant[T]
}

// tenant is a tenant with elements that wait or are being carried out. The elements are in the order of their turns.
type tenant[T comparable] struct {
	name   string
	ready  []T // they need nothing to begin
	others []T
	begun  int
}

func newTurns[T comparable](maximum int) turns[T] {
	return turns[T]{max: maximum, tenants: make(map[string]*tenant[T]), begun: make(map[T]*tenant[T])}
}

// add queues an element. An element that is ready comes before those of its tenant that are not.
func (t *turns[T]) add(name string, element T, ready bool) {
	of := t.tenants[name]
	if of == nil {
		of = &tenant[T]{name: name}
		t.tenants[name] = of
	}
	if of.waiting() == 0 {
		t.order = append(t.order, of)
	}
	if t.waiting++; ready {
		of.ready = append(of.ready, element)
	} else {
		of.others = append(of.others, element)
	}
}

// take returns the next element that may begin. The caller must call end after the work. Take calls prepare for an
// element that is not ready. After prepare has refused one, it is not called again: no other element may take what that
// element waits for.
func (t *turns[T]) take(prepare func(T) bool) (element T, ok bool) {
	if len(t.begun) >= t.max {
		return element, false
	}
	refused := false
	for n, of := range t.order {
		switch {
		case of.begun >= t.max/2:
			continue
		case len(of.ready) > 0:
			element, of.ready = of.ready[0], of.ready[1:]
		case !refused && prepare(of.others[0]):
			element, of.others = of.others[0], of.others[1:]
		default:
			refused = true
			continue
		}
		t.order = slices.Delete(t.order, n, n+1)
		if of.waiting() > 0 {
			t.order = append(t.order, of)
		}
		t.waiting--
		of.begun++
		t.begun[element] = of
		return element, true
	}
	return element, false
}

// end ends the work on an element that take returned.
func (t *turns[T]) end(element T) {
	of := t.begun[element]
	delete(t.begun, element)
	if of.begun--; of.begun == 0 && of.waiting() == 0 {
		delete(t.tenants, of.name)
	}
}

func (of *tenant[T]) waiting() int { return len(of.ready) + len(of.others) }
