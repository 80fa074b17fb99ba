// Package schedules compares the broker's schedules in nats-server's format (ADR-51) with the server's own, rule by
// rule: see README.md.
package schedules

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

var update = flag.Bool("update", false, "write the tables of testdata/rules.md")

// result is the record of a rule.
type result struct {
	rule
	server, broker []string
}

// TestSchedulesAsTheServer: the broker's answers and deliveries are those of the server, except for the deviations,
// which have reasons. README.md shows both.
func TestSchedulesAsTheServer(t *testing.T) {
	natstest.SkipShort(t)
	all := slices.Concat(
		compare(t, rules(), 0, time.Time{}), compare(t, restarts(), 20*time.Second, time.Time{}),
		compare(t, clocks("Clocks that go forward"), 0, time.Date(2000, time.March, 25, 23, 30, 0, 0, time.UTC)),
		compare(t, clocks("Clocks that go back"), 0, time.Date(2000, time.October, 28, 23, 30, 0, 0, time.UTC)),
	)
	used := make(map[string]bool)
	for _, r := range all {
		name := r.section + "/" + r.name
		used[name] = true
		switch same, why := slices.Equal(r.server, r.broker), deviations[name]; {
		case same && why != "":
			t.Errorf("%s: listed as a deviation, but the broker does not differ", name)
		case !same && why == "":
			t.Errorf("%s: no deviation is listed\nserver:\n  %s\nbroker:\n  %s", name,
				strings.Join(r.server, "\n  "), strings.Join(r.broker, "\n  "))
		}
	}
	for name := range deviations {
		if !used[name] {
			t.Errorf("deviation without a rule: %s", name)
		}
	}
	checkTables(t, all)
}

// compare runs rules with the server, and then with a broker. The clock of each begins at begin. If downtime is not
// zero, compare stops the server and the broker for that duration.
func compare(t *testing.T, all []rule, downtime time.Duration, begin time.Time) []result {
	t.Helper()
	results := make([]result, len(all))
	storage := jetstream.MemoryStorage // in a file store, each schedule costs the server a sync
	if downtime > 0 {
		storage = jetstream.FileStorage
	}
	bubble(t, begin, func(t *testing.T, s *natstest.Server) {
		said := serverStage(t, s, storage).play(t, all, func() { stopFor(s, downtime, func() {}, func() {}) })
		for i, r := range all {
			results[i] = result{rule: r, server: said[i]}
		}
	})
	bubble(t, begin, func(t *testing.T, s *natstest.Server) {
		st, stop := brokerStage(t, s)
		said := st.play(t, all, func() {
			stopFor(s, downtime, func() { stop() }, func() { stop = st.startBroker(t) })
		})
		for i := range all {
			results[i].broker = said[i]
		}
		stop()
	})
	return results
}

// bubble is like natstest.Bubble, but the clock begins at begin.
func bubble(t *testing.T, begin time.Time, f func(t *testing.T, s *natstest.Server)) {
	t.Helper()
	dir := natstest.Dir(t)
	natstest.DropTimers()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(begin))
		f(t, natstest.Run(t, dir))
	})
}

// stopFor stops the server for downtime. It calls before and after, which stop and start the broker.
func stopFor(s *natstest.Server, downtime time.Duration, before, after func()) {
	if downtime == 0 {
		return
	}
	time.Sleep(3500 * time.Millisecond)
	before()
	s.Restart(downtime)
	after()
}

// rulesFile has the tables of all rules.
const rulesFile = "testdata/rules.md"

// checkTables compares the tables in rulesFile with the records.
func checkTables(t *testing.T, all []result) {
	t.Helper()
	var b strings.Builder
	section := ""
	for _, r := range all {
		if r.section != section {
			section = r.section
			fmt.Fprintf(&b, "\n### %s\n\n| request | nats-server %s | this broker |\n|---|---|---|\n", section, server.VERSION)
		}
		broker := "same"
		if !slices.Equal(r.server, r.broker) {
			broker = cell(r.broker) + "<br>*" + deviations[r.section+"/"+r.name] + "*"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.ReplaceAll(r.name, "|", "\\|"), cell(r.server), broker)
	}
	b.WriteString("\n")
	if *update {
		natstest.NoError(t, os.WriteFile(rulesFile, []byte(b.String()), 0o644))
		return
	}
	rules, err := os.ReadFile(rulesFile)
	natstest.NoError(t, err)
	if string(rules) != b.String() {
		t.Errorf("%s is not correct: run go test ./test/schedules -update, and read the difference", rulesFile)
	}
}

// cell formats lines as the cell of a table.
func cell(lines []string) string {
	var words []string
	for i := 0; i < len(lines); {
		n := i + 1
		for n < len(lines) && lines[n] == lines[i] {
			n++
		}
		word := strings.ReplaceAll(lines[i], "|", "\\|")
		if n-i > 1 {
			word += fmt.Sprintf(" (%d times)", n-i)
		}
		words = append(words, word)
		i = n
	}
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, "<br>")
}
