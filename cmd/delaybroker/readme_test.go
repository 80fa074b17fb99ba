package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"delaybroker/cmd/delaybroker/settings"
	"delaybroker/test/natstest"
)

// TestSettingsTable checks that REFERENCE.md has the table of "serve --help", row for row.
func TestSettingsTable(t *testing.T) {
	natstest.ClearEnv(t)
	operations := documentAt(t, "OPERATIONS.md") + documentAt(t, "REFERENCE.md") + documentAt(t, "COOKBOOK.md")
	var help strings.Builder
	natstest.NoError(t, settings.WriteTable(&help))
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
			name, standard := strings.TrimSpace(line[:column]), strings.TrimSpace(rest[:meaning])
			fmt.Fprintf(&want, "| `%s` | %s | %s |\n", name, standard, strings.TrimSpace(rest[meaning:]))
		}
	}
	if rows := strings.Count(want.String(), "\n"); rows < 20 {
		t.Fatalf("serve --help has %d settings:\n%s", rows-2, help.String())
	}
	if !strings.Contains(operations, want.String()) {
		t.Errorf("REFERENCE.md does not have this table of settings:\n%s", want.String())
	}
}

// TestDocumentedVerbs checks that each documented command exists.
func TestDocumentedVerbs(t *testing.T) {
	verb := regexp.MustCompile("(?m)(?:`|^\\$ |go run \\./cmd/)delaybroker ([a-z]+)(?: ([a-z]+))?")
	for _, file := range []string{
		"OPERATIONS.md", "REFERENCE.md", "COOKBOOK.md",
		"../../README.md",
		"../../broker/message/PROTOCOL.md",
		"../../test/README.md",
		"../../test/deploy/README.md",
		"../../test/fault/README.md",
		"../../test/permissions/README.md",
		"../../test/rivals/README.md",
	} {
		text := documentAt(t, file)
		for _, words := range verb.FindAllStringSubmatch(text, -1) {
			root := new(app).rootCommand()
			found, rest, err := root.Find(words[1:])
			if err != nil || found == root || found.HasSubCommands() && len(rest) > 0 && rest[0] != "" {
				t.Errorf("%s has the unknown command %q", file, words[0])
			}
		}
	}
}

// documentAt returns the text of a file.
func documentAt(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	natstest.NoError(t, err)
	return string(text)
}
