package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestReadmeSettings finds the table of "serve --help" in the README, row for row.
func TestReadmeSettings(t *testing.T) {
	clearEnv(t)
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var help strings.Builder
	if err := writeSettings(&help); err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	fmt.Fprint(&want, "| name | default | meaning |\n|---|---|---|\n")
	column := 0
	for line := range strings.Lines(help.String()) {
		switch {
		case strings.HasPrefix(line, "NAME"):
			column = strings.Index(line, "DEFAULT")
		case column > 0:
			meaning := strings.Index(line[column:], "  ")
			rest := line[column:]
			standard := strings.TrimSpace(rest[:meaning])
			fmt.Fprintf(&want, "| `%s` | %s | %s |\n", strings.TrimSpace(line[:column]), standard, strings.TrimSpace(rest[meaning:]))
		}
	}
	if rows := strings.Count(want.String(), "\n"); rows < 20 {
		t.Fatalf("serve --help has %d settings:\n%s", rows-2, help.String())
	}
	if !strings.Contains(string(readme), want.String()) {
		t.Errorf("the README does not hold the settings as they are:\n%s", want.String())
	}
}
