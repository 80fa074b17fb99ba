package test

import (
	"bufio"
	"context"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/test/natstest"
)

// walkMessages is an environment variable. TestWalkIsTheTruth sets it to "none" or "one" when it runs TestOneMessage.
const walkMessages = "DELAYBROKER_WALK_MESSAGES"

// TestWalkIsTheTruth checks the walk of a message in broker/doc.go. It runs TestOneMessage with a message and without,
// and compares which statements ran. The statements that need a message must be in files of package broker, and in
// other packages, that the walk names; and the walk may name no others.
func TestWalkIsTheTruth(t *testing.T) {
	t.Parallel()
	if os.Getenv(walkMessages) != "" {
		t.Skip("this is the run that it looks at")
	}
	walk := theWalk(t)
	binary := filepath.Join(t.TempDir(), "walk.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", binary,
		"-coverpkg=delaybroker/broker/...,delaybroker/wheel,delaybroker/levels", ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	without, with := statements(t, binary, "none"), statements(t, binary, "one")
	passed := make(map[string]bool)
	for statement := range with {
		if without[statement] {
			continue
		}
		file, _, _ := strings.Cut(statement, ":")
		dir, name := path.Split(strings.TrimPrefix(file, "delaybroker/"))
		stop := strings.TrimPrefix(strings.TrimPrefix(dir, "broker/"), "/") + "…"
		if dir == "broker/" {
			stop = name
		}
		passed[stop] = true
	}
	for stop := range passed {
		if !strings.Contains(walk, stop) {
			t.Errorf("a message passes %s, which is not on the walk in broker/doc.go", stop)
		}
	}
	for word := range strings.FieldsFuncSeq(walk,
		func(r rune) bool { return strings.ContainsRune(" \t\n│├└┌┐┘─▶▲▼(),;:", r) }) {
		if (strings.HasSuffix(word, ".go") || strings.HasSuffix(word, "/…")) && !passed[word] {
			t.Errorf("the walk in broker/doc.go has a stop %s, which no message passes", word)
		}
	}
	if lines := strings.Count(walk, "\n"); lines > 50 {
		t.Errorf("the walk has %d lines: it should fit one screen", lines)
	}
}

// TestOneMessage publishes one message that passes the intake, two levels and its target. TestWalkIsTheTruth looks at
// the statements that it runs.
func TestOneMessage(t *testing.T) {
	t.Parallel()
	const delay = 16 * time.Second
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, broker.Config{Ladder: ladder(t, "1s 5s 10s")})
		nc := s.Connect()
		arrived := make(chan time.Time, 1)
		if _, err := nc.Subscribe("orders.x", func(*nats.Msg) { arrived <- time.Now() }); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if os.Getenv(walkMessages) != "none" {
			if _, err := s.JetStream(nc).Publish(context.Background(), "delayin.16s.orders.x",
				[]byte("x")); err != nil {
				t.Fatal(err)
			}
			if took := (<-arrived).Sub(began); took < delay || took > delay+50*time.Millisecond {
				t.Errorf("it took %s, want %s", took, delay)
			}
		}
		time.Sleep(time.Until(began.Add(20 * time.Second)))
	})
}

// TestKindsAreKnownWhereTheDocumentSays: the files of package broker that know a kind of lane, and the packages that
// do, stand in its document, under what a new kind may touch.
func TestKindsAreKnownWhereTheDocumentSays(t *testing.T) {
	t.Parallel()
	told := section(t, "new kind of lane")
	kind := regexp.MustCompile(`\bstreams\.(Intake|Timers|Level|Retry|Paused)\b`)
	found := 0
	if err := filepath.WalkDir("../broker", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !kind.Match(text) {
			return err
		}
		found++
		words := strings.Split(filepath.ToSlash(path), "/")
		if name := words[2]; !regexp.MustCompile(`(?m)(^|\W)` + regexp.QuoteMeta(name) + `\b`).MatchString(told) {
			t.Errorf("%s knows a kind of lane, and broker/doc.go does not say so of %s", path, name)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Error("no file knows a kind of lane")
	}
}

// theWalk is the section of broker/doc.go with the walk of a message.
func theWalk(t *testing.T) string {
	t.Helper()
	return section(t, "walk of one message")
}

// section is the section of broker/doc.go whose heading says so.
func section(t *testing.T, title string) string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../broker/doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var p comment.Parser
	var text strings.Builder
	in := false
	var printer comment.Printer
	for _, block := range p.Parse(file.Doc.Text()).Content {
		if heading, ok := block.(*comment.Heading); ok {
			in = strings.Contains(string(printer.Text(&comment.Doc{Content: []comment.Block{heading}})),
				title)
			continue
		}
		if in {
			text.Write(printer.Text(&comment.Doc{Content: []comment.Block{block}}))
		}
	}
	if text.Len() == 0 {
		t.Fatalf("broker/doc.go has no section %q", title)
	}
	return text.String()
}

// statements returns the statements of the engine that ran in TestOneMessage.
func statements(t *testing.T, binary, messages string) map[string]bool {
	t.Helper()
	profile := filepath.Join(t.TempDir(), messages)
	cmd := exec.CommandContext(t.Context(), binary, "-test.run=^TestOneMessage$", "-test.coverprofile="+profile)
	cmd.Env = append(os.Environ(), walkMessages+"="+messages)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	file, err := os.Open(profile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ran := make(map[string]bool)
	for lines := bufio.NewScanner(file); lines.Scan(); {
		// delaybroker/broker/flights.go:41.50,46.2 5 1
		words := strings.Fields(lines.Text())
		if len(words) == 3 && words[2] != "0" {
			ran[words[0]] = true
		}
	}
	if len(ran) == 0 {
		t.Fatalf("%s: no statement ran", messages)
	}
	return ran
}
