// Command check judges stored histories of the fault tests again. Each argument is the file of one run.
package main

import (
	"fmt"
	"os"

	"delaybroker/test/fault/history"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: check history.jsonl ...")
		os.Exit(2)
	}
	bad := false
	for _, path := range os.Args[1:] {
		report, err := judge(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, "check:", err)
			os.Exit(2)
		}
		fmt.Println(report)
		bad = bad || len(report.Violations) > 0
	}
	if bad {
		os.Exit(1)
	}
}

func judge(path string) (*history.Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	events, err := history.Parse(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return history.Check(events), nil
}
