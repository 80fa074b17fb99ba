package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"delaybroker/cmd/delaybroker/settings"
	"delaybroker/test/natstest"
)

// TestReadmeSettings checks that REFERENCE.md has the table of "serve --help", row for row, and that the README's rows
// are rows of that table.
func TestReadmeSettings(t *testing.T) {
	natstest.ClearEnv(t)
	operations := documentAt(t, "OPERATIONS.md") + documentAt(t, "REFERENCE.md") + documentAt(t, "COOKBOOK.md")
	readme := documentAt(t, "../../README.md")
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
	rows := regexp.MustCompile("(?m)^\\| `(?:NATS|DELAY)_[A-Z_]+` \\|.*\n").FindAllString(readme, -1)
	if len(rows) < 5 {
		t.Errorf("the README has %d settings", len(rows))
	}
	for _, row := range rows {
		if !strings.Contains(want.String(), row) {
			t.Errorf("the README has a row that the table does not have: %s", row)
		}
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

// TestDocumentedOutput checks that the program has the columns of the documented samples, and that the code has the
// documented log messages.
func TestDocumentedOutput(t *testing.T) {
	var source strings.Builder
	for _, pattern := range []string{
		"*/*.go", "*.go", "../../broker/*.go", "../../broker/*/*.go", "../../broker/*/*/*.go",
	} {
		files, err := filepath.Glob(pattern)
		natstest.NoError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			source.WriteString(documentAt(t, file))
		}
	}
	operations := documentAt(t, "OPERATIONS.md") + documentAt(t, "REFERENCE.md") + documentAt(t, "COOKBOOK.md")
	readme := documentAt(t, "../../README.md")

	sample := regexp.MustCompile(`(?m)^\$ (?:go run \./cmd/)?delaybroker .*\n(.*)$`)
	samples := sample.FindAllStringSubmatch(operations+readme, -1)
	if len(samples) < 5 {
		t.Errorf("there are %d samples", len(samples))
	}
	for _, sample := range samples {
		for _, column := range regexp.MustCompile(` {2,}`).Split(sample[1], -1) {
			if !strings.Contains(source.String(), strconv.Quote(strings.ToLower(column))) {
				t.Errorf("the program has no column %q: %s", column, sample[1])
			}
		}
	}

	_, table, _ := strings.Cut(operations, "| event | effect | symptom | action |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	phrase, phrases := regexp.MustCompile("`([a-z'A-Z]+ [^`]+)`"), 0
	for row := range strings.Lines(table) {
		cells := strings.Split(row, " | ")
		for _, seen := range phrase.FindAllStringSubmatch(cells[min(2, len(cells)-1)], -1) {
			for part := range strings.SplitSeq(seen[1], " … ") {
				phrases++
				if !strings.Contains(source.String(), part) && !strings.HasPrefix(part, "delaybroker ") {
					t.Errorf("the documents name the log text %q, which the code does not have", part)
				}
			}
		}
	}
	if phrases < 10 {
		t.Errorf("the documents name %d log texts", phrases)
	}
}

// documentAt returns the text of a file.
func documentAt(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	natstest.NoError(t, err)
	return string(text)
}
