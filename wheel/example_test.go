package wheel_test

import (
	"fmt"
	"time"

	"delaybroker/wheel"
)

func Example() {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w := wheel.New[string]()
	w.Add(noon.Add(2*time.Second), "tea")
	w.Add(noon.Add(time.Second), "soup")
	bill := w.Add(noon.Add(time.Second), "bill")
	w.Add(noon.Add(time.Second), "bread")
	w.Remove(bill)

	// The owner sleeps until Next, then advances.
	for next, ok := w.Next(); ok; next, ok = w.Next() {
		for due, v := range w.Advance(next) {
			fmt.Println(due.Format(time.TimeOnly), v)
		}
	}
	// Output:
	// 12:00:01 soup
	// 12:00:01 bread
	// 12:00:02 tea
}
