package streams

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// TestFindStranded: messages that wait under another prefix are reported, unless a broker reads that prefix.
func TestFindStranded(t *testing.T) {
	all := make(map[string]*jetstream.StreamInfo)
	add := func(name, prefix string, kind Kind, messages uint64, consumers int) {
		s := Spec{Stream: name, Kind: kind, Prefix: prefix}
		all[name] = &jetstream.StreamInfo{Config: s.Config(),
			State: jetstream.StreamState{Msgs: messages, Consumers: consumers}}
	}
	add("DELAY_1m", "delay", Level, 7, 0)
	add("OLD_1m", "old", Level, 3, 0)
	add("OLD_1h", "old", Level, 0, 0)
	add("OLD_INTAKE", "old", Intake, 2, 0)
	add("OLD_DEAD", "old", Dead, 9, 0)
	add("BUSY_1d", "busy", Level, 5, 0) // the next message is due much later
	add("BUSY_INTAKE", "busy", Intake, 0, 1)
	add("EMPTY_1m", "empty", Level, 0, 0)
	all["ORDERS"] = &jetstream.StreamInfo{State: jetstream.StreamState{Msgs: 9}}
	const want = `[5 messages wait in 2 streams of prefix "old", such as OLD_1m, and no broker reads them]`
	if got := fmt.Sprint(FindStranded("delay", all)); got != want {
		t.Errorf("found %s, want %s", got, want)
	}
}
