package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"delaybroker/broker/message"
	"delaybroker/levels"
	"delaybroker/test/natstest"
)

// document returns the text of a document, by its path in the module.
func document(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	natstest.NoError(t, err)
	return string(text)
}

// TestReadmeNamesTests: test/README.md names tests for each promise of the README. If the README links to a file of
// tests, that file has at least one of these tests. TestDocumentedNamesExist checks that the tests exist.
func TestReadmeNamesTests(t *testing.T) {
	t.Parallel()
	row := regexp.MustCompile(`(?m)^\| \*\*(.+?)\.?\*\*.*\| (.*) \|$`)
	test := regexp.MustCompile("`((?:Test|Benchmark)[A-Za-z]+)`")
	listed := make(map[string][]string)
	promise := ""
	for line := range strings.Lines(document(t, "test/README.md")) {
		if r := row.FindStringSubmatch(strings.TrimSpace(line)); r != nil {
			promise = r[1]
		}
		if line == "\n" {
			promise = "" // the table ends
		}
		if promise != "" {
			for _, name := range test.FindAllStringSubmatch(line, -1) {
				listed[promise] = append(listed[promise], name[1])
			}
		}
	}
	made := make(map[string]bool)
	for _, r := range row.FindAllStringSubmatch(document(t, "README.md"), -1) {
		made[r[1]] = true
		if len(listed[r[1]]) == 0 {
			t.Errorf("test/README.md has no test for %q", r[1])
		}
		for _, l := range link.FindAllStringSubmatch(r[2], -1) {
			if !strings.HasSuffix(l[1], "_test.go") {
				continue
			}
			source := document(t, l[1])
			if !slices.ContainsFunc(listed[r[1]],
				func(name string) bool { return strings.Contains(source, "func "+name+"(") }) {
				t.Errorf("for %q the README links to %s, which has none of its tests", r[1], l[1])
			}
		}
	}
	if len(made) < 8 {
		t.Errorf("the README has %d promises, want at least 8: %v", len(made), made)
	}
	for promise := range listed {
		if !made[promise] {
			t.Errorf("test/README.md has %q, which the README does not promise", promise)
		}
	}
}

// TestReadmeIsTrue compares lists in the documents with the code.
func TestReadmeIsTrue(t *testing.T) {
	t.Parallel()
	readme, protocol := document(t, "README.md"), document(t, "broker/message/PROTOCOL.md")
	if want := levels.Default().String(); !strings.Contains(strings.Join(strings.Fields(protocol), " "), want) {
		t.Errorf("the protocol does not list the levels %s", want)
	}
	for _, code := range message.Codes() {
		if !strings.Contains(protocol, "\n| `"+string(code)+"` |") {
			t.Errorf("the protocol does not explain the dead-letter code %s", code)
		}
	}
	for _, snippet := range []string{"publish.mjs", "publish.py", "publish.rs", "publish.sh"} {
		code := document(t, filepath.Join("test/clients/snippets", snippet))
		row := regexp.MustCompile("(?m)^\\| .* \\| `(.+)` \\| \\[.*\\]\\(test/clients/snippets/" + snippet +
			"\\)").FindStringSubmatch(readme)
		shown := func(line string) bool { return row != nil && strings.TrimSpace(line) == row[1] }
		if !slices.ContainsFunc(strings.Split(code, "\n"), shown) {
			t.Errorf("the README shows %q, which is not a line of clients/snippets/%s", row, snippet)
		}
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(readme, -1)
	if len(blocks) != 2 {
		t.Fatalf("the README has %d blocks of Go, want a program and the client", len(blocks))
	}
	for line := range strings.Lines(blocks[1][1]) {
		if !strings.Contains(document(t, "test/clients/snippets/client.go"), line) {
			t.Errorf("the README shows a line that is not in clients/snippets/client.go: %s", line)
		}
	}
	for _, snippet := range []string{"timer.go", "timer.mjs", "timer.py", "timer.rs", "timer.sh"} {
		code := document(t, filepath.Join("test/clients/snippets", snippet))
		if !strings.Contains(protocol, "/"+snippet+")") || !strings.Contains(code, "delaytimer.order-42.orders.expire") {
			t.Errorf("the protocol does not show clients/snippets/%s", snippet)
		}
	}
	permissions := document(t, "test/permissions/README.md")
	for _, g := range natstest.Grants(t, "../permissions/tenants.conf", "orders") {
		if g.List == "publish" && !strings.Contains(permissions, strconv.Quote(g.Subject)) {
			t.Errorf("the permissions do not show the grant %s", g)
		}
	}
}

// TestReadmeHasEachTest: test/README.md names each test of the folders below.
func TestReadmeHasEachTest(t *testing.T) {
	t.Parallel()
	rows := document(t, "test/README.md")
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	found := 0
	for _, folder := range []string{"promises", "timers", "schedules", "owners", "pauses", "tenants"} {
		files, err := filepath.Glob(filepath.Join(root, "test", folder, "*_test.go"))
		natstest.NoError(t, err)
		for _, file := range files {
			source, err := os.ReadFile(file)
			natstest.NoError(t, err)
			for _, test := range declared.FindAllSubmatch(source, -1) {
				found++
				if name := string(test[1]); !strings.Contains(rows, "`"+name+"`") {
					t.Errorf("test/README.md has no row for %s of test/%s", name, folder)
				}
			}
		}
	}
	if found < 200 {
		t.Errorf("the folders have %d tests, want at least 200", found)
	}
}

// TestReadmeProgram runs the README's program against a broker, and compares the output with the README.
func TestReadmeProgram(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	text := document(t, "README.md")
	program := regexp.MustCompile("(?s)```go\n(.*?)```").FindStringSubmatch(text)
	if program == nil {
		t.Fatal("the README has no program")
	}
	file := filepath.Join(t.TempDir(), "main.go")
	natstest.NoError(t, os.WriteFile(file, []byte(program[1]), 0o600))
	address := natstest.FreeAddress(t)
	p := natstest.StartBroker(t, "DELAY_EMBEDDED_DIR="+t.TempDir(), "DELAY_EMBEDDED_LISTEN="+address, "NATS_URL=")
	defer p.Terminate()
	cmd := exec.CommandContext(t.Context(), "go", "run", file)
	cmd.Env = append(os.Environ(), "NATS_URL=nats://"+address)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the README's program: %v\n%s", err, out)
	}
	numbers := regexp.MustCompile(`[0-9]+\.[0-9]`)
	want := regexp.MustCompile("(?s)```\n(accepted.*?)```").FindStringSubmatch(text)
	if want == nil || numbers.ReplaceAllString(string(out), "#") != numbers.ReplaceAllString(want[1], "#") {
		t.Errorf("the program printed\n%s\nwant the output in the README, except for the milliseconds", out)
	}
}
