package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// roles are the roles of processes. A process has a role if one of its stacks contains the function.
var roles = []struct{ role, function string }{
	{"server", "nats-server/v2/server.(*Server)"},
	{"server", "nats-server/v2/server.(*client)"},
	{"broker", "delaybroker/broker/engine."},
	{"pipeline", "delaybroker/test/rivals/bench.pipe"},
	{"pipeline", "delaybroker/test/rivals/bench.(*pipe"},
	{"load", loadFunction},
}

const loadFunction = "delaybroker/test/rivals/bench.Load."

func contains(stack []string, word string) bool {
	return slices.ContainsFunc(stack, func(function string) bool { return strings.Contains(function, word) })
}

// A load is one run of the process that publishes the messages. A turn is the time from the start of a load to the
// start of the next load, or to the last sample.
type turn struct {
	from, published, to float64 // in seconds; published is the time of the load's last sample
	samples             []sample
	roles               map[int]string // by process
}

// turnsOf divides the samples into turns. A turn begins with the first sample of a process that publishes a load.
func turnsOf(all []sample) (turns []turn) {
	processes := rolesOf(all)
	known := make(map[int]bool) // by process
	for _, s := range all {
		if processes[s.pid] != "load" {
			continue
		}
		if !known[s.pid] {
			known[s.pid] = true
			if n := len(turns); n > 0 {
				turns[n-1].to = s.at
			}
			turns = append(turns, turn{from: s.at, roles: processes, to: all[len(all)-1].at})
		}
		turns[len(turns)-1].published = s.at
	}
	for i := range turns {
		t := &turns[i]
		for _, s := range all {
			if s.at >= t.from && s.at < t.to {
				t.samples = append(t.samples, s)
			}
		}
	}
	return turns
}

// rolesOf returns the roles of processes. It ignores processes whose program is neither that of the load nor the
// broker's.
func rolesOf(all []sample) map[int]string {
	processes := make(map[int]string)
	program := ""
	for _, s := range all {
		if contains(s.stack, loadFunction) {
			program = s.program
		}
	}
	for _, s := range all {
		if processes[s.pid] != "" || s.program != program && s.program != "delaybroker" {
			continue
		}
		for _, r := range roles {
			if contains(s.stack, r.function) {
				processes[s.pid] = r.role
				break
			}
		}
	}
	return processes
}

// print prints the CPU time of the parts of each role except the load, in microseconds per message. A sample stands for
// perSample microseconds per message. There are four columns: during the publishes; between the last publish and the
// due time; after the due time; the sum of these.
func (t turn) print(to io.Writer, perSample, due float64) {
	const phases = 3
	sum := make(map[string]map[string][phases]float64)
	for _, s := range t.samples {
		role, phase := t.roles[s.pid], 2
		switch {
		case role == "" || role == "load":
			continue
		case s.at <= t.published:
			phase = 0
		case s.at < t.from+due:
			phase = 1
		}
		if sum[role] == nil {
			sum[role] = make(map[string][phases]float64)
		}
		for _, name := range []string{partOf(s.stack), "all"} {
			n := sum[role][name]
			n[phase] += perSample
			sum[role][name] = n
		}
	}
	fmt.Fprintf(to, "\nturn of %.1f s: published after %.1f s\n", t.to-t.from, t.published-t.from)
	for _, role := range slices.Sorted(maps.Keys(sum)) {
		parts := sum[role]
		total := func(name string) float64 { return parts[name][0] + parts[name][1] + parts[name][2] }
		names := slices.SortedFunc(maps.Keys(parts), func(a, b string) int { return cmp.Compare(total(b), total(a)) })
		for _, name := range names {
			n := parts[name]
			fmt.Fprintf(to, "%-9s %-36s %7.1f %7.1f %7.1f %7.1f\n", role, name, n[0], n[1], n[2], total(name))
		}
	}
}
