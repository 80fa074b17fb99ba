package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

func TestMain(m *testing.M) { harness.Main(m) }

// sh runs a shell command in the directory of the snippets. The CLI is in its path, and its only setting is the server.
func sh(t *testing.T, url, line string) (out string, err error) {
	t.Helper()
	dir := filepath.Dir(natstest.Tool(t, "nats"))
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", "exec 2>&1; "+line)
	cmd.Dir = "snippets"
	cmd.Env = append(os.Environ(), "PATH="+dir+string(filepath.ListSeparator)+os.Getenv("PATH"), "NATS_URL="+url,
		"NATS_CONTEXT=", "XDG_CONFIG_HOME="+t.TempDir())
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// spoken is a command line of a document, and the output that the document shows.
type spoken struct{ line, answer string }

// conversation returns the lines of the NATS CLI in a document.
func conversation(t *testing.T, file string) (all []spoken) {
	t.Helper()
	text, err := os.ReadFile(file)
	natstest.NoError(t, err)
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
	// varies replaces the parts of an output that differ from run to run: times, the widths of tables, sequences, and the
	// names of instances.
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

// plain returns an output without its varying parts.
func plain(answer string) string {
	for _, v := range varies {
		answer = v.is.ReplaceAllString(answer, v.as)
	}
	return strings.TrimSpace(answer)
}

// TestNATSCLI runs the lines of the NATS CLI that COOKBOOK.md shows, and compares the output. The lines set a timer,
// also on condition that there is none, move it, cancel it, send requests to a broker, and show its service with "nats
// micro".
func TestNATSCLI(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Tool(t, "nats")
	url := startBroker(t)
	said := conversation(t, "../../cmd/delaybroker/COOKBOOK.md")
	if len(said) < 8 {
		t.Errorf("only %d lines are shown", len(said))
	}
	now := make(map[string]string) // the sequences of this run, by the sequences in the document
	for _, s := range said {
		line := regexp.MustCompile(`Sequence:\d+`).ReplaceAllStringFunc(s.line, func(was string) string {
			_, number, _ := strings.Cut(was, ":")
			if current, ok := now[number]; ok {
				number = current
			}
			return "Sequence:" + number
		})
		out, _ := sh(t, url, line) // some requests are refused
		if want := plain(s.answer); plain(out) != want {
			t.Errorf("$ %s\n%s\nis read as %s\nwant       %s", line, out, plain(out), want)
		}
		was, is := storedAt.FindStringSubmatch(s.answer), storedAt.FindStringSubmatch(out)
		if was != nil && is != nil {
			now[was[1]] = is[1]
		}
	}
}
