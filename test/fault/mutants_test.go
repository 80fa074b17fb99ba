//go:build linux

package fault

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"delaybroker/test/fault/history"
	"delaybroker/test/natstest"
)

type mutant struct {
	name     string
	edits    map[string][]string // by path below the module's root: each text is followed by its replacement
	fault    fault               // the fault that reveals the defect, if scenario is empty
	scenario string              // the name of the scenario that reveals the defect, or empty
	players  int
	want     history.Kind
}

var mutants = []mutant{
	{
		name: "a delivery counts before the target has answered",
		edits: map[string][]string{"broker/engine/fire.go": {
			"\tw.flights.beginDelivery(f)\n\tw.earlyCheck.Observe(",
			"\tw.apply(f, step{kind: arrive}, m)\n\tw.earlyCheck.Observe(",
			"\t\te := &delivered{f, r, now.Add(r.Time.Sub(local))}\n\t\tif r.Outcome == deliver.Delivered {\n" +
				"\t\t\tw.mail.putLater(e)\n\t\t} else {\n\t\t\tw.mail.Put(e)\n\t\t}\n",
			"\t\t_, _ = now, local\n\t\tw.counts.Delivered.Add(1)\n",
		}},
		fault: leaderKilled, want: history.Lost,
	},
	{
		name: "duplicate:true is believed",
		edits: map[string][]string{"broker/engine/decide_store.go": {"case a.Ack.Duplicate:\n\t\treturn step{kind: check}\n",
			"case a.Ack.Duplicate:\n\t\treturn step{kind: arrive}\n"}},
		fault: idsForged, want: history.Lost,
	},
	{
		name: "every hop has the same id",
		edits: map[string][]string{"broker/message/travel.go": {
			"h := r.userHeader(4)\n\tPut(h, HeaderNatsMsgID, r.NatsMsgID(r.Hop))",
			"h := r.userHeader(4)\n\tPut(h, HeaderNatsMsgID, r.NatsMsgID(1))",
		}},
		fault: brokerStopped, want: history.Lost,
	},
	{
		name: "due is rounded down to the millisecond",
		edits: map[string][]string{"broker/message/due.go": {"due := accepted.Add(wait)\n",
			"due := accepted.Add(wait).Truncate(time.Millisecond)\n"}},
		fault: brokerStopped, want: history.WrongDue,
	},
	{
		name: "the servers' time is believed to be 3 ms later than proved",
		edits: map[string][]string{"broker/leader/clock.go": {"return At(c.base.Round(0).Add(mono + offset)), proven",
			"return At(c.base.Round(0).Add(mono + offset + 3*time.Millisecond)), proven"}},
		fault: brokerStopped, want: history.Early,
	},
	{
		name: "a stream that was replaced is taken for the one before",
		edits: map[string][]string{"broker/lane/epoch.go": {"!errors.Is(err, ErrOtherHistory) {\n",
			"errors.Is(err, ErrOtherHistory) && !k.created.IsZero() {\n\t\treturn nil\n" +
				"\t} else if !errors.Is(err, ErrOtherHistory) {\n"}},
		fault: laneReplaced, want: history.Lost,
	},
	{
		name: "a paused series goes on",
		edits: map[string][]string{"broker/timer/change/series.go": {
			"\t\tn.Round.Due = time.Time{}\n\tcase timer.Fail", "\tcase timer.Fail",
		}},
		fault: brokerStopped, players: players, want: history.NoOrder,
	},
	{
		name: "the reader trusts consumer sequences, and every gap",
		edits: map[string][]string{
			"broker/lane/gap.go": {"case stored.Sequence < seq:\n\t\treturn false, errLost\n",
				"case stored.Sequence < seq:\n\t\treturn true, nil\n"},
			"broker/lane/pull.go": {"if s.consumerSeq != p.lastConsumerSeq+1 {",
				"if s.consumerSeq <= p.lastConsumerSeq {\n\t\treturn nil\n\t}\n\tif s.consumerSeq != p.lastConsumerSeq+1 {"},
		},
		scenario: createdAgain, want: history.Lost,
	},
}

// TestMutants builds the changed packages with the defects of all mutants. With -fault.mutants, TestMutants builds and
// runs each mutant, and the judge must find a violation of the expected kind.
func TestMutants(t *testing.T) {
	if !*broken {
		t.Parallel()
		all := mutant{edits: make(map[string][]string)}
		packages := make(map[string]bool)
		for _, m := range mutants {
			for file, edits := range m.edits {
				all.edits[file] = append(all.edits[file], edits...)
				packages["delaybroker/"+filepath.Dir(file)] = true
			}
		}
		build(t, all.write(t), slices.Sorted(maps.Keys(packages))...)
		return
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			overlay := m.write(t)
			p := plan{name: m.name, seed: 1, brokers: *brokers, rate: 300, players: m.players, faults: []fault{m.fault}}
			if m.scenario != "" {
				p = scenarioNamed(m.scenario)
			}
			p.programs = programs{server: testedPrograms.server, broker: filepath.Join(t.TempDir(), "delaybroker")}
			build(t, overlay, "-o", p.programs.broker, "delaybroker/cmd/delaybroker")
			report, err := p.run(t.TempDir(), true)
			natstest.NoError(t, err)
			t.Log(report)
			if report.Count(m.want) == 0 {
				t.Errorf("the judge found no violation of the kind %q", m.want)
			}
		})
	}
}

func build(t *testing.T, overlay string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"build", "-overlay", overlay}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", cmd, err, out)
	}
}

// write writes the changed files into a directory. It returns the path of the overlay that makes go build use these
// files.
func (m mutant) write(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	replace := make(map[string]string)
	for name, edits := range m.edits {
		original, err := filepath.Abs(filepath.Join("..", "..", name))
		natstest.NoError(t, err)
		text, err := os.ReadFile(original)
		natstest.NoError(t, err)
		for i := 0; i < len(edits); i += 2 {
			was, is := []byte(edits[i]), []byte(edits[i+1])
			if n := bytes.Count(text, was); n != 1 {
				t.Errorf("%s contains %q %d times, want once: update the mutant", name, strings.TrimSpace(edits[i]), n)
				continue
			}
			text = bytes.Replace(text, was, is, 1)
		}
		replace[original] = filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		natstest.NoError(t, os.WriteFile(replace[original], text, 0o644))
	}
	if t.Failed() {
		t.FailNow()
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	natstest.NoError(t, err)
	file := filepath.Join(dir, "overlay.json")
	natstest.NoError(t, os.WriteFile(file, overlay, 0o644))
	return file
}
