package clients

import (
	"delaybroker/test/natstest"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// cli is the directory of the NATS CLI. It is a module of its own, so that the project does not depend on it. The
// toolchain keeps what it has built: the first time takes minutes, and every other time a second.
var cli = sync.OnceValues(func() (dir string, err error) {
	tool := exec.Command("go", "tool", "-n", "nats")
	tool.Dir = "natscli"
	out, err := tool.Output()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		err = fmt.Errorf("go tool -n nats, which needs the Go module proxy (GOPROXY) the first time: %w\n%s", err,
			failed.Stderr)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), err
})

func buildCLI(t *testing.T) {
	t.Helper()
	if _, err := cli(); err != nil {
		t.Fatalf("build the NATS CLI: %v", err)
	}
}

// sh runs a line of the shell, with the CLI, among the snippets. It has no settings but the server.
func sh(t *testing.T, url, line string) (out string, err error) {
	t.Helper()
	dir, err := cli()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", "exec 2>&1; "+line)
	cmd.Dir = "snippets"
	cmd.Env = append(os.Environ(), "PATH="+dir+string(filepath.ListSeparator)+os.Getenv("PATH"), "NATS_URL="+url,
		"NATS_CONTEXT=", "XDG_CONFIG_HOME="+t.TempDir())
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// spoken is a line that a person has typed, and what came.
type spoken struct{ line, answer string }

// conversation is what a document shows of the NATS CLI.
func conversation(t *testing.T, file string) (all []spoken) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, begun := strings.Cut(string(text), "```\n$ nats pub -J delaytimer.")
	block, _, ended := strings.Cut(rest, "```\n")
	if !begun || !ended {
		t.Fatalf("%s shows no lines of the NATS CLI", file)
	}
	for part := range strings.SplitSeq("nats pub -J delaytimer."+block, "\n$ ") {
		line, answer, _ := strings.Cut(part, "\n")
		all = append(all, spoken{line, answer})
	}
	return all
}

var (
	storedAt = regexp.MustCompile(`(?:Stored in Stream: DELAY_TIMERS Sequence: |"generation":)(\d+)`)
	// varies is what is another each time: times, and how wide a table is because of them; sequences, which the broker's
	// own entries take, too; the names of instances.
	varies = []struct {
		is *regexp.Regexp
		as string
	}{
		{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ][0-9:.]+Z?`), "TIME"},
		{regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d `), "TIME "},
		{regexp.MustCompile(`(equence: |"generation":)\d+`), "${1}N"},
		{regexp.MustCompile(`\b[0-9A-Z]{26}\b`), "ID"},
		{regexp.MustCompile(`[0-9.]+(µs|ms|s)\b`), "DURATION"},
		{regexp.MustCompile(`instance: \S+`), "instance: NAME"},
		{regexp.MustCompile(`─+`), "─"},
		{regexp.MustCompile(`[ \n]+`), " "},
	}
)

func plain(answer string) string {
	for _, v := range varies {
		answer = v.is.ReplaceAllString(answer, v.as)
	}
	return strings.TrimSpace(answer)
}

// TestNATSCLI types the lines of the NATS CLI that COOKBOOK.md shows, and gets what it shows: set, only if there is
// none, move, cancel, the requests to a broker, and the service as "nats micro" shows it.
func TestNATSCLI(t *testing.T) {
	natstest.Long(t)
	t.Parallel()
	buildCLI(t)
	url := startBroker(t)
	said := conversation(t, "../../cmd/delaybroker/COOKBOOK.md")
	if len(said) < 8 {
		t.Errorf("only %d lines are shown", len(said))
	}
	now := make(map[string]string) // the sequences of today, by those of the document
	for _, s := range said {
		line := regexp.MustCompile(`Sequence:\d+`).ReplaceAllStringFunc(s.line, func(was string) string {
			_, number, _ := strings.Cut(was, ":")
			if today, ok := now[number]; ok {
				number = today
			}
			return "Sequence:" + number
		})
		out, _ := sh(t, url, line) // some are refused
		if want := plain(s.answer); plain(out) != want {
			t.Errorf("$ %s\n%s\nis read as %s\nwant       %s", line, out, plain(out), want)
		}
		was, is := storedAt.FindStringSubmatch(s.answer), storedAt.FindStringSubmatch(out)
		if was != nil && is != nil {
			now[was[1]] = is[1]
		}
	}
}
