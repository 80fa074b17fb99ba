package wheel

// itemHeap is a binary heap of items. It does not use container/heap, which costs an interface call for each comparison
// and an allocation for each item.
type itemHeap []item

func (h *itemHeap) push(it item) {
	*h = append(*h, it)
	heap := *h
	i := len(heap) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !it.less(&heap[parent]) {
			break
		}
		heap[i] = heap[parent]
		i = parent
	}
	heap[i] = it
}

// pop removes the first item, which is at index 0. The heap must not be empty.
func (h *itemHeap) pop() {
	n := len(*h) - 1
	it := (*h)[n]
	*h = (*h)[:n]
	heap := *h
	i := 0
	for {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && heap[child+1].less(&heap[child]) {
			child++
		}
		if it.less(&heap[child]) {
			break
		}
		heap[i] = heap[child]
		i = child
	}
	if n > 0 {
		heap[i] = it
	} else if cap(heap) > keptItems {
		*h = nil
	}
}
