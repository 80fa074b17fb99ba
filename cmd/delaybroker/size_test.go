package main

import (
	"regexp"
	"strings"
	"testing"

	"delaybroker/cmd/delaybroker/capacity"
	"delaybroker/test/natstest"
)

// TestSizeIsDocumented runs the commands in OPERATIONS.md, and compares their output. No server is reachable.
func TestSizeIsDocumented(t *testing.T) {
	natstest.ClearEnv(t)
	t.Setenv("NATS_URL", "nats://127.0.0.1:1") // no server listens there
	samples := regexp.MustCompile("(?ms)^```\n\\$ delaybroker (size [^\n]*)\n(.*?)^```$").
		FindAllStringSubmatch(documentAt(t, "OPERATIONS.md"), -1)
	if len(samples) == 0 {
		t.Fatal("OPERATIONS.md shows no size")
	}
	for _, sample := range samples {
		got := mustRunCommand(t, "", strings.Fields(sample[1])...)
		if trimLines(got) != trimLines(sample[2]) {
			t.Errorf("%s prints\n%s\nOPERATIONS.md has\n%s", sample[1], got, sample[2])
		}
	}
}

func TestSizeFollowsTheSettings(t *testing.T) {
	natstest.ClearEnv(t)
	needOf := func(args string) capacity.Need {
		return decodeLines[capacity.Need](t, mustRunCommand(t, "", strings.Fields(args+" --json")...))[0]
	}
	before := needOf("size --rate 10 --delay 25m")
	t.Setenv("DELAY_LEVELS", "1m,25m")
	after := needOf("size --rate 10 --delay 25m")
	if before.Passes != 3 || after.Passes != 1 || after.Load.Streams != before.Load.Streams-30 {
		t.Errorf("with 25m among two levels: %d passes in %d streams, before %d in %d",
			after.Passes, after.Load.Streams, before.Passes, before.Load.Streams)
	}
}

func TestSizeRefuses(t *testing.T) {
	natstest.ClearEnv(t)
	for args, parts := range map[string][]string{
		"size":                             {"--rate 0: want more than 0, or a value for --timers or --series"},
		"size --rate -1 --replicas 9":      {"--rate -1: want 0 to 100000000", "--replicas 9: want 1 to 5"},
		"size --rate 1 --delay soon":       {"--delay soon: want a duration"},
		"size --rate 1 --delay 4000d":      {"--delay 4000d: want 0s to 3660d"},
		"size --series 9":                  {"--every 0s: want 1s to 3660d"},
		"size --series 9 --every often":    {"--every often: want a duration"},
		"size --rate 1 --every 1m":         {"--series 0: want 1 or more with --every"},
		"size --rate 1 --bytes 100000000":  {"--bytes 100000000: want 0 to 67108864"},
		"size --rate 1 --server-memory x":  {"--server-memory x: want bytes"},
		"size --rate 1 --server-disk 0":    {"--server-disk 0: want 1048576 to"},
		"size --rate 1 --server-cores -2":  {"--server-cores -2: want 1 to 4096"},
		"size --rate 1 --fleets 101":       {"--fleets 101: want 1 to 100"},
		"size --rate 1.5":                  {"1.5"},
		"size 5000":                        {"size takes no arguments"},
		"size --rate 1 --server nats://x:": {"unknown flag: --server"},
	} {
		wantCommandError(t, 2, parts, strings.Fields(args)...)
	}
}

// TestSizePrintsMappings: for two fleets, size prints the mappings that OPERATIONS.md shows.
func TestSizePrintsMappings(t *testing.T) {
	natstest.ClearEnv(t)
	got := mustRunCommand(t, "", strings.Fields("size --rate 10 --fleets 2")...)
	mappings := got[strings.Index(got, "mappings: {"):]
	if want := strings.ReplaceAll("\n"+mappings, "\n", "\n  "); !strings.Contains(documentAt(t, "OPERATIONS.md"), want) {
		t.Errorf("OPERATIONS.md lacks\n%s", mappings)
	}
	t.Setenv("DELAY_PREFIX", "a-very-long-name")
	wantCommandError(t, 2, []string{"set a shorter DELAY_PREFIX"}, strings.Fields("size --rate 10 --fleets 2")...)
}

func trimLines(text string) string {
	return regexp.MustCompile(`(?m)[ \t]+$`).ReplaceAllString(strings.TrimSpace(text), "")
}
