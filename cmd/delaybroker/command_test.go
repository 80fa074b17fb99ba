package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"delaybroker/cmd/delaybroker/terminal"
)

// fullDisk is a writer that accepts a limited number of bytes.
type fullDisk struct{ room, writes int }

var errFullDisk = errors.New("no space left")

func (d *fullDisk) Write(p []byte) (int, error) {
	if d.writes++; len(p) > d.room {
		return 0, errFullDisk
	}
	d.room -= len(p)
	return len(p), nil
}

// A command fails if its output cannot be written. An endless command ends.
func TestOutputIsLost(t *testing.T) {
	for _, args := range []string{
		"version", "version --json", "size --rate 10", "size --rate 10 --json", "schedules next --every 1m",
		"schedules next --every 1m -n 1000 --json", "streams",
	} {
		out := &fullDisk{room: 10}
		a := &app{Printer: terminal.Printer{Out: out, Err: io.Discard}}
		root := a.rootCommand()
		root.SetArgs(strings.Fields(args))
		if err := a.execute(t.Context(), root); !errors.Is(err, errFullDisk) || exitCode(err) != 1 {
			t.Errorf("%s: got %v, want the error of the output", args, err)
		}
		if out.writes > 20 {
			t.Errorf("%s: %d writes, although the first failed", args, out.writes)
		}
	}
}

func TestVersionJSON(t *testing.T) {
	all := decodeLines[map[string]string](t, mustRunCommand(t, "", "version", "--json"))
	if len(all) != 1 || all[0]["nats-server"] == "" || all[0]["delaybroker"] == "" {
		t.Errorf("got %v, want the versions", all)
	}
}

func TestVersionFlag(t *testing.T) {
	if got, want := mustRunCommand(t, "", "--version"), "delaybroker "+readBuild().name()+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The shell's completion offers the values of a flag that has few.
func TestCompletion(t *testing.T) {
	for args, want := range map[string]string{
		"__complete dead ls --code ":     "undelivered\n",
		"__complete dead ls --by ":       "reason\n",
		"__complete streams --as ":       "nack\n",
		"__complete doctor --skip ":      "durability\n",
		"__complete pub x --level ":      "30m\n",
		"__complete dead resend --code ": "too_far\n",
	} {
		if got := mustRunCommand(t, "", strings.Split(args, " ")...); !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q in it", args, got, want)
		}
	}
}
