//go:build linux

package operate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"delaybroker/test/natstest"
)

var (
	guideBlock = regexp.MustCompile("(?ms)^```(sh|)\n(.*?)^```$")
	numbers    = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f.:]*`)
)

// TestGuide runs the commands of GUIDE.md in one shell, and compares their output with the output in the guide, except
// for numbers and spaces. The output may have more lines between the lines of the guide. The programs listen on a
// loopback address that no other test uses.
func TestGuide(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	guide, err := os.ReadFile("../../cmd/delaybroker/GUIDE.md")
	natstest.NoError(t, err)
	script := "set -eu\ntrap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n"
	var want []string // indexed by the number of the command
	for _, b := range guideBlock.FindAllStringSubmatch(string(guide), -1) {
		if b[1] == "sh" {
			script += fmt.Sprintf("echo '== %d'\n%s", len(want), b[2])
			want = append(want, "")
		} else {
			want[len(want)-1] = b[2]
		}
	}
	if len(want) < 10 {
		t.Fatalf("the guide has %d blocks of commands", len(want))
	}
	address := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), 1+rand.IntN(250), 1+rand.IntN(250))
	out := runScript(t, strings.ReplaceAll(script, "127.0.0.1", address))
	for n, expected := range want {
		_, got, ok := strings.Cut(out, fmt.Sprintf("== %d\n", n))
		got, _, _ = strings.Cut(got, fmt.Sprintf("== %d\n", n+1))
		if !ok {
			t.Fatalf("command %d of the guide does not run:\n%s", n, out)
		}
		printed := strings.Split(maskNumbers(got), "\n")
		next := 0
		for line := range strings.FieldsFuncSeq(maskNumbers(expected), func(r rune) bool { return r == '\n' || r == '…' }) {
			for next < len(printed) && !strings.Contains(printed[next], line) {
				next++
			}
			if next == len(printed) {
				t.Errorf("command %d of the guide prints\n%s\nwithout this line, or in another order:\n%s", n, got, line)
				break
			}
		}
	}
}

// maskNumbers returns a text with # for each number, #s for each duration, and with single spaces. The unit of a
// duration depends on the machine: the guide's retried message is late by some seconds after its third attempt, and by
// "36s" after its fourth.
func maskNumbers(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.Join(strings.Fields(numbers.ReplaceAllString(line, "#")), " ")
		lines = append(lines, strings.ReplaceAll(line, "# ms", "#s"))
	}
	return strings.Join(lines, "\n")
}

// runScript runs a script in the checkout, in its own environment, and returns the output.
func runScript(t *testing.T, script string) string {
	t.Helper()
	env := []string{
		"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "GOFLAGS=" + os.Getenv("GOFLAGS") + " -buildvcs=false",
	}
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		dir, err := exec.Command("go", "env", name).Output()
		natstest.NoError(t, err)
		env = append(env, name+"="+strings.TrimSpace(string(dir)))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	root, err := filepath.Abs("../..")
	natstest.NoError(t, err)
	cmd.Dir, cmd.Env, cmd.WaitDelay = root, env, 10*time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the guide's commands end with %v:\n%s", err, out)
	}
	return string(out)
}
