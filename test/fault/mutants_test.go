//go:build linux

package fault

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"delaybroker/test/fault/history"
)

// mutant is a broker that is broken on purpose.
type mutant struct {
	name  string
	file  string   // below the module's root
	edits []string // what stands there, and what stands there instead
	fault fault    // the run that shows it
	want  history.Kind
}

var mutants = []mutant{
	{
		name: "a delivery counts before the target has answered",
		file: "broker/fire.go",
		edits: []string{
			"\tw.underway++\n\tw.early.sent", "\tw.arrived(h)\n\tw.early.sent",
			"\t\t\tw.underway--\n\t\t\tw.fired(h, r, now)\n", "\t\t\tw.counts.delivered.Add(1)\n",
		},
		fault: leaderKilled, want: history.Lost,
	},
	{
		name:  "duplicate:true is believed",
		file:  "broker/append.go",
		edits: []string{"case ack.Duplicate:\n\t\tw.verify(e, ack)\n", "case ack.Duplicate:\n\t\tw.arrived(e.held)\n"},
		fault: idsForged, want: history.Lost,
	},
	{
		name:  "every hop has the same id",
		file:  "broker/message/travel.go",
		edits: []string{"r.NatsMsgID(r.Hop+1)", "r.NatsMsgID(1)"},
		fault: brokerStopped, want: history.Lost,
	},
	{
		name:  "due is rounded down to the millisecond",
		file:  "broker/message/request.go",
		edits: []string{"due := at.Add(wait)\n", "due := at.Add(wait).Truncate(time.Millisecond)\n"},
		fault: brokerStopped, want: history.WrongDue,
	},
	{
		name:  "the servers' time is believed to be 3 ms later than proved",
		file:  "broker/clock.go",
		edits: []string{"return c.base.Round(0).Add(mono + offset), fresh", "return c.base.Round(0).Add(mono + offset + 3*time.Millisecond), fresh"},
		fault: brokerStopped, want: history.Early,
	},
	{
		name: "a stream that was replaced is taken for the one before",
		file: "levels/lane/reader.go",
		edits: []string{
			"if !before.Created.Equal(r.created) || before.State.LastSeq < r.read.Sequence {", "if r.created.IsZero() {",
		},
		fault: laneReplaced, want: history.Lost,
	},
}

// TestMutants: the mutants can still be built; with -fault.mutants, each also runs, and the judge sees what is wrong.
func TestMutants(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			overlay := m.write(t)
			if !*broken {
				if err := build(os.DevNull, "delaybroker/"+filepath.Dir(m.file), "-overlay", overlay); err != nil {
					t.Fatal(err)
				}
				return
			}
			p := plan{name: m.name, seed: 1, brokers: *brokers, rate: 300, faults: []fault{m.fault}, programs: built}
			p.programs.broker = filepath.Join(t.TempDir(), "delaybroker")
			if err := build(p.programs.broker, "delaybroker/cmd/delaybroker", "-overlay", overlay); err != nil {
				t.Fatal(err)
			}
			report, err := p.run(t.TempDir(), true)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(report)
			if report.Count(m.want) == 0 {
				t.Errorf("the judge does not notice: want %q", m.want)
			}
		})
	}
}

// write puts the broken file aside, and returns the overlay with which go build takes it.
func (m mutant) write(t *testing.T) string {
	t.Helper()
	original, err := filepath.Abs(filepath.Join("..", "..", m.file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(m.edits); i += 2 {
		was, is := []byte(m.edits[i]), []byte(m.edits[i+1])
		if n := bytes.Count(text, was); n != 1 {
			t.Fatalf("%s holds %q %d times, want once: bring the mutant up to date", m.file, strings.TrimSpace(m.edits[i]), n)
		}
		text = bytes.Replace(text, was, is, 1)
	}
	dir := t.TempDir()
	changed := filepath.Join(dir, filepath.Base(m.file))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	for name, content := range map[string][]byte{changed: text, file: overlay} {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return file
}
