package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"delaybroker/broker/message"
	"delaybroker/levels"
	"delaybroker/test/natstest"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReadmeNamesTests finds a function for each test that the README promises.
func TestReadmeNamesTests(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	for _, pattern := range []string{"*_test.go", "rivals/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			source.Write(text)
		}
	}
	named := regexp.MustCompile("`((?:Test|Benchmark)[A-Za-z]+)`").FindAllStringSubmatch(readme(t), -1)
	if len(named) < 15 {
		t.Errorf("the README names %d tests, want one or more for each promise", len(named))
	}
	for _, name := range named {
		if !strings.Contains(source.String(), "func "+name[1]+"(") {
			t.Errorf("the README names %s, and there is no such function", name[1])
		}
	}
}

// TestReadmeIsTrue compares what the README lists with the code.
func TestReadmeIsTrue(t *testing.T) {
	t.Parallel()
	text := readme(t)
	if want := levels.Default().String(); !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
		t.Errorf("the README does not list the levels %s", want)
	}
	for _, code := range message.Codes() {
		if !strings.Contains(text, "`"+string(code)+"`") {
			t.Errorf("the README does not explain the dead-letter code %s", code)
		}
	}
	for _, snippet := range []string{"publish.mjs", "publish.py", "publish.rs", "publish.sh"} {
		code, err := os.ReadFile(filepath.Join("clients", "snippets", snippet))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text, strings.TrimSpace(string(code))) {
			t.Errorf("the README does not show clients/snippets/%s as it is", snippet)
		}
	}
	for _, g := range natstest.Grants(t, tenantsConf, "orders") {
		if g.List == "publish" && !strings.Contains(text, strconv.Quote(g.Subject)) {
			t.Errorf("the README does not show the grant %s", g)
		}
	}
}

// TestReadmeProgram runs the README's program against a broker, and sees it print what the README shows.
func TestReadmeProgram(t *testing.T) {
	t.Parallel()
	text := readme(t)
	program := regexp.MustCompile("(?s)```go\n(.*?)```").FindStringSubmatch(text)
	if program == nil {
		t.Fatal("the README has no program")
	}
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
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
		t.Errorf("the program printed\n%s\nwant, but for the milliseconds, what the README shows", out)
	}
}
