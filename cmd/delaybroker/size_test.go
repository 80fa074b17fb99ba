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

// TestSizeArithmetic checks the numbers of the chapter about scale: a million messages a second, and ten billion
// pending ones.
func TestSizeArithmetic(t *testing.T) {
	natstest.ClearEnv(t)
	text := documentAt(t, "OPERATIONS.md")
	var total capacity.Need
	for _, args := range []string{
		"size --rate 611000 --delay 2h --replicas 3 --json", "size --rate 389000 --delay 4h --replicas 3 --json",
	} {
		n := decodeLines[capacity.Need](t, mustRunCommand(t, "", strings.Fields(args)...))[0]
		total.Pending += n.Pending
		total.ServerMemory += n.ServerMemory
		total.Disk += n.Disk
		total.ServerCPU.Work += n.ServerCPU.Work
		total.BrokerCPU.Work += n.BrokerCPU.Work
		total.Network.In += n.Network.In
		total.Network.Out += n.Network.Out
		total.Network.Replication += n.Network.Replication
	}
	for _, number := range []struct {
		got, low, high float64
		text           string
	}{
		{total.Pending, 9.9e9, 10.1e9, "ten billion pending"},
		{total.ServerMemory, 1.85e12, 1.95e12, "and 1.9 TB for three"},
		{total.Disk, 9.55e12, 9.65e12, "and 9.6 TB for three"},
		{total.ServerCPU.Work, 78, 79, "78 cores"},
		{total.BrokerCPU.Work, 14.5, 15.5, "15 cores"},
		{total.Network.In, 1.15e9, 1.25e9, "1.2 GB/s"},
		{total.Network.Out, 0.435e9, 0.445e9, "0.44 GB/s"},
		{total.Network.Replication, 2.35e9, 2.45e9, "2.4 GB/s"},
	} {
		if number.got < number.low || number.got > number.high || !strings.Contains(text, number.text) {
			t.Errorf("OPERATIONS.md should have %q; got %.4g", number.text, number.got)
		}
	}
	need := decodeLines[capacity.Need](t, mustRunCommand(t, "",
		strings.Fields("size --rate 1000000 --delay 10000s --replicas 3 --json")...))[0]
	if need.Passes != 7 || need.ServerCPU.Work < 549 || need.ServerCPU.Work > 550 {
		t.Errorf("OPERATIONS.md has seven passes and 549 cores: got %d and %v", need.Passes, need.ServerCPU.Work)
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
		"size --rate 1.5":                  {"1.5"},
		"size 5000":                        {"size takes no arguments"},
		"size --rate 1 --server nats://x:": {"unknown flag: --server"},
	} {
		wantCommandError(t, 2, parts, strings.Fields(args)...)
	}
}

func trimLines(text string) string {
	return regexp.MustCompile(`(?m)[ \t]+$`).ReplaceAllString(strings.TrimSpace(text), "")
}
