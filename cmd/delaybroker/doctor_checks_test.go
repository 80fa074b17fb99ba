package main

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/layout"
)

// laneIn is a lane of a stream with the given configuration.
func laneIn(cfg jetstream.StreamConfig) laneView {
	return laneView{Stream: cfg.Name, Kind: layout.Level, Owner: ownerRead, info: &jetstream.StreamInfo{Config: cfg}}
}

// asked is what a probe of this host says.
func asked(checks ...check) facts {
	return facts{ready: probed{url: "http://here/readyz", answer: answer{Checks: checks}}}
}

func viewWith(lanes ...laneView) facts {
	return facts{all: map[string]*jetstream.StreamInfo{}, found: []layout.Spec{{}}, view: lanesView{Lanes: lanes}}
}

// TestChecks is for what no server in a test can be made to be.
func TestChecks(t *testing.T) {
	look := func(offset, within time.Duration) facts {
		return facts{clocks: []clockLook{{offset: time.Millisecond, within: time.Millisecond}, {leader: "n2", offset: offset, within: within}}}
	}
	account := func(used uint64, limit int64) facts {
		return facts{account: &jetstream.AccountInfo{Tier: jetstream.Tier{Store: used, Limits: jetstream.AccountLimits{MaxStore: limit}}}}
	}
	tier := func(used uint64, limit int64) facts {
		return facts{account: &jetstream.AccountInfo{Tiers: map[string]jetstream.Tier{
			"R3": {Store: used, Limits: jetstream.AccountLimits{MaxStore: limit}},
		}}}
	}
	late := laneIn(jetstream.StreamConfig{Name: "DELAY_30m"})
	late.Overdue = 90
	for _, test := range []struct {
		name  string
		check func(facts) []finding
		facts facts
		state severity
		part  string
	}{
		{"too old", checkServer, facts{version: "2.12.11"}, warn, "2.12.11"},
		{"too old of its line", checkServer, facts{version: "2.14.2"}, warn, "2.14.2"},
		{"old enough", checkServer, facts{version: "2.12.12"}, fine, ""},
		{"new enough", checkServer, facts{version: "2.14.3"}, fine, ""},

		{"clocks agree", checkClocks, look(50*time.Millisecond, 80*time.Millisecond), fine, "as ours, within 1ms"},
		{"a second is fine", checkClocks, look(-time.Second, 0), fine, "1s behind"},
		{"behind", checkClocks, look(-1001*time.Millisecond, 0), warn, "behind ours, on n2"},
		{"perhaps ahead", checkClocks, look(1500*time.Millisecond, 600*time.Millisecond), fine, "ahead"},
		{"far ahead", checkClocks, look(time.Minute, time.Second), critical, "1m ahead of ours, on n2"},

		{"account has room", checkStorage, account(79, 100), fine, ""},
		{"account fills", checkStorage, account(80, 100), warn, "80 of 100"},
		{"account full", checkStorage, account(98, 100), critical, "98 of 100"},
		{"no limit", checkStorage, account(98, -1), fine, ""},
		{"tier full", checkStorage, tier(100, 100), critical, "R3 store"},
		{"server full", checkStorage, facts{account: &jetstream.AccountInfo{}, trial: trial{known: true, refusal: "insufficient resources"}}, critical, "insufficient"},

		{"embedded server full", checkStorage, facts{serverName: embeddedName, account: &jetstream.AccountInfo{}, trial: trial{known: true, refusal: "insufficient resources"}}, critical, "insufficient"},
		{"store of the embedded server", checkStorage, asked(check{Name: "store", Detail: "9 of 9"}), critical, "http://here/readyz says: 9 of 9"},
		{"ready", checkReady, asked(check{Name: "disk", OK: true}), fine, "http://here/readyz"},
		{"not ready", checkReady, asked(check{Name: "lanes", Detail: "not read: DELAY_5s"}), critical, "lanes: not read: DELAY_5s"},
		{"nobody to ask", checkReady, facts{ready: probed{url: "http://here/readyz", err: errors.New("refused")}}, fine, "no broker answers at http://here/readyz"},

		{"a lane stopped", checkReaders, viewWith(laneView{Stream: "DELAY_1s", Owner: ownerStopped, Instance: "kitchen"}), critical, "DELAY_1s of kitchen"},
		{"its owner is silent", checkReaders, viewWith(laneView{Stream: "DELAY_1s", Owner: ownerNobody, Instance: "kitchen"}, laneView{Owner: ownerRead}), critical, "DELAY_1s (last kitchen, which does not answer)"},

		{"three replicas", checkDurability, viewWith(laneIn(jetstream.StreamConfig{Replicas: 3})), fine, "by 2 of 3 servers"},
		{"some have one", checkDurability, viewWith(laneIn(jetstream.StreamConfig{Replicas: 3}), laneIn(jetstream.StreamConfig{Name: "DELAY_1s", Replicas: 1})), warn, "DELAY_1s"},

		{"late", checkReaders, viewWith(late), warn, "DELAY_30m by 1m30s"},

		{"no JetStream", checkJetStream, facts{accountErr: jetstream.ErrJetStreamNotEnabledForAccount}, critical, "not enabled"},
		{"no answer", checkJetStream, facts{accountErr: nats.ErrTimeout}, critical, "timeout"},
		{"no list", checkStreams, facts{findErr: nats.ErrTimeout}, critical, "timeout"},
		{"no leader", checkStreams, viewWith(laneView{Stream: "DELAY_1s", State: stateSilent, Error: "timeout"}), critical, "DELAY_1s does not answer"},
		{"max_bytes demanded", checkJetStream, facts{
			want: []layout.Spec{{Stream: "DELAY_1s"}}, all: map[string]*jetstream.StreamInfo{},
			account: &jetstream.AccountInfo{Tier: jetstream.Tier{Limits: jetstream.AccountLimits{MaxBytesRequired: true}}},
		}, warn, "max_bytes"},

		{"no limit of memory", checkMemory, facts{memory: memory{golang: math.MaxInt64}}, fine, "no limit"},
		{"GOMEMLIMIT unset", checkMemory, facts{memory: memory{cgroup: 512 << 20, golang: math.MaxInt64}}, fine, "460 MiB"},
		{"GOMEMLIMIT too high", checkMemory, facts{memory: memory{cgroup: 512 << 20, golang: 512 << 20}}, warn, "512 MiB"},
		{"GOMEMLIMIT set", checkMemory, facts{memory: memory{cgroup: 512 << 20, golang: 460 << 20}}, fine, "460 MiB"},
		{"DELAY_MEMORY too high", checkMemory, facts{memory: memory{cgroup: 512 << 20, golang: math.MaxInt64}, cfg: config{broker: broker.Config{HoldBytes: 256 << 20}}}, warn, "DELAY_MEMORY is 256 MiB"},
	} {
		got := test.check(test.facts)
		if len(got) != 1 || got[0].State != test.state || !strings.Contains(got[0].Detail, test.part) {
			t.Errorf("%s: got %+v, want one that is %s with %q", test.name, got, test.state, test.part)
			continue
		}
		if got[0].State > fine && got[0].Do == "" && test.name != "no list" {
			t.Errorf("%s: no word of what to do", test.name)
		}
	}
}

// With nothing known but that there is no connection, only what needs none says something.
func TestChecksWithoutFacts(t *testing.T) {
	for _, f := range examine(facts{connectErr: nats.ErrNoServers}) {
		if f.Check != "connection" && f.Check != "memory" {
			t.Errorf("got %+v from nothing", f)
		}
	}
}

func TestRulesAllow(t *testing.T) {
	for _, test := range []struct {
		rules *rules
		want  bool
	}{
		{nil, true},
		{&rules{}, true},
		{&rules{Allow: []string{"a.>"}}, true},
		{&rules{Allow: []string{"b.>", "a.*"}}, true},
		{&rules{Allow: []string{"b.>"}}, false},
		{&rules{Deny: []string{"a.b"}}, false},
		{&rules{Allow: []string{"a.>"}, Deny: []string{"*.b"}}, false},
	} {
		if got := test.rules.allow("a.b"); got != test.want {
			t.Errorf("%+v: got %v, want %v", test.rules, got, test.want)
		}
	}
}

// The bound of the embedded server has no setting, so none is named.
func TestEmbeddedStoreAdvice(t *testing.T) {
	f := facts{serverName: embeddedName, account: &jetstream.AccountInfo{}, trial: trial{known: true, refusal: "insufficient resources"}}
	if got := checkStorage(f)[0].Do; strings.Contains(got, "max_file_store") || !strings.Contains(got, "DELAY_EMBEDDED_DIR") {
		t.Errorf("got %q, want what to do on this host", got)
	}
	f.serverName = "n1"
	if got := checkStorage(f)[0].Do; !strings.Contains(got, "max_file_store") {
		t.Errorf("got %q, want the setting of the servers", got)
	}
}
