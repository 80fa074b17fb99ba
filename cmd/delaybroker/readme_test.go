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

// TestReadmeSettings compares the table of "serve --help" with REFERENCE.md, row for row, and with the rows of the
// README.
func TestReadmeSettings(t *testing.T) {
	natstest.ClearEnv(t)
	operations := documentAt(t, "OPERATIONS.md") + documentAt(t, "REFERENCE.md") + documentAt(t, "COOKBOOK.md")
	readme := documentAt(t, "../../README.md")
	var help strings.Builder
	if err := settings.WriteTable(&help); err != nil {
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
			name, standard := strings.TrimSpace(line[:column]), strings.TrimSpace(rest[:meaning])
			fmt.Fprintf(&want, "| `%s` | %s | %s |\n", name, standard, strings.TrimSpace(rest[meaning:]))
		}
	}
	if rows := strings.Count(want.String(), "\n"); rows < 20 {
		t.Fatalf("serve --help has %d settings:\n%s", rows-2, help.String())
	}
	if !strings.Contains(operations, want.String()) {
		t.Errorf("REFERENCE.md does not hold the settings as they are:\n%s", want.String())
	}
	rows := regexp.MustCompile("(?m)^\\| `(?:NATS|DELAY)_[A-Z_]+` \\|.*\n").FindAllString(readme, -1)
	if len(rows) < 5 {
		t.Errorf("the README has %d settings", len(rows))
	}
	for _, row := range rows {
		if !strings.Contains(want.String(), row) {
			t.Errorf("the README has a setting that is not so: %s", row)
		}
	}
}

// TestDocumentedVerbs checks that each command line of the documents has an existing command.
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
				t.Errorf("%s has a reader type %q", file, words[0])
			}
		}
	}
}

// TestDocumentedOutput finds the columns of documented samples among those of the program, and the log messages of the
// documents among those of the code.
func TestDocumentedOutput(t *testing.T) {
	var source strings.Builder
	for _, pattern := range []string{
		"*/*.go", "*.go", "../../broker/*.go", "../../broker/*/*.go", "../../broker/*/*/*.go",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
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
				t.Errorf("the column %q is none of the program's: %s", column, sample[1])
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
					t.Errorf("an operator is told to look for %q, which is not logged", part)
				}
			}
		}
	}
	if phrases < 10 {
		t.Errorf("an operator is told to look for %d phrases", phrases)
	}
}

// documentAt returns the text of a file.
func documentAt(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
