package levels_test

import (
	"fmt"
	"time"

	"delaybroker/levels"
)

func ExampleLadder_Chain() {
	d, err := levels.ParseDuration("1h47m12s300ms")
	if err != nil {
		fmt.Println(err)
		return
	}
	hops, rest := levels.Default().Chain(d)
	for _, level := range hops {
		fmt.Println(level.Name)
	}
	fmt.Println("wheel:", rest)
	// Output:
	// 90m
	// 15m
	// 2m
	// 10s
	// wheel: 2.3s
}

func ExampleParse() {
	_, err := levels.Parse("60s, 1m, 1h30m, 200ms")
	fmt.Println(err)
	// Output:
	// bad ladder: level "1h30m": write one number and unit, such as 90m for 1h30m
	// level "200ms": at least 1s; shorter delays need no level
	// levels "60s" and "1m" are equally long: keep one
}

func ExampleFormatDuration() {
	fmt.Println(levels.FormatDuration(30 * time.Minute))
	fmt.Println(levels.FormatDuration(36 * time.Hour))
	fmt.Println(levels.FormatDuration(1500*time.Microsecond + 1))
	// Output:
	// 30m
	// 1d12h
	// 2ms
}
