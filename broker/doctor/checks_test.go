package doctor

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/config"
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
	"delaybroker/broker/streams/provision"
)

// laneIn returns a lane of a stream with the given configuration.
func laneIn(cfg jetstream.StreamConfig) inspect.Lane {
	return inspect.Lane{
		Stream: cfg.Name, Kind: streams.Level, Owner: inspect.OwnerReads,
		Info: &jetstream.StreamInfo{Config: cfg},
	}
}

// probeOf returns the facts of a host whose broker reports the checks.
func probeOf(checks ...stats.Check) Facts {
	return Facts{Host: Host{Probe: Probe{URL: "http://here/readyz", Checks: checks}}}
}

// fullServer returns the facts of a server that refuses to store messages.
func fullServer(name string) Facts {
	refused := trial{known: true, refusal: "insufficient resources"}
	return Facts{serverName: name, account: &jetstream.AccountInfo{}, trial: refused}
}

// inContainer returns the facts of a process in a container of 512 MiB, with GOMEMLIMIT set to limit.
func inContainer(limit int64) Facts {
	return Facts{Host: Host{Memory: config.Memory{Cgroup: 512 << 20, Runtime: limit}}}
}

// viewWith returns the facts of an account with the lanes.
func viewWith(lanes ...inspect.Lane) Facts {
	return Facts{
		StreamList: inspect.StreamList{Infos: map[string]*jetstream.StreamInfo{}, Found: []streams.Spec{{}}},
		lanes:      inspect.Lanes{Lanes: lanes},
	}
}

// ofVersion returns the facts of a server of the version.
func ofVersion(version string) Facts {
	return Facts{version: version}
}

// clockFacts returns the facts of two leaders. The clock of the second leader has an offset.
func clockFacts(offset, within time.Duration) Facts {
	return Facts{clocks: []clockReading{
		{offset: time.Millisecond, maxError: time.Millisecond},
		{leader: "n2", offset: offset, maxError: within},
	}}
}

// accountOf returns the facts of an account that uses a part of its storage limit.
func accountOf(used uint64, limit int64) Facts {
	return Facts{account: &jetstream.AccountInfo{
		Tier: jetstream.Tier{Store: used, Limits: jetstream.AccountLimits{MaxStore: limit}},
	}}
}

// tierOf returns the facts of an account that uses a part of the storage limit of its tier R3.
func tierOf(used uint64, limit int64) Facts {
	return Facts{account: &jetstream.AccountInfo{Tiers: map[string]jetstream.Tier{
		"R3": {Store: used, Limits: jetstream.AccountLimits{MaxStore: limit}},
	}}}
}

var (
	stoppedLane    = stopped()
	leaderlessLane = inspect.Lane{Stream: "DELAY_1s", State: inspect.Silent, Error: "timeout"}
	unbounded      = Facts{Host: Host{Memory: config.Memory{Runtime: math.MaxInt64}}}
	nobodyAnswers  = Facts{Host: Host{Probe: Probe{URL: "http://here/readyz", Err: errors.New("refused")}}}
)

func stopped() inspect.Lane {
	return inspect.Lane{
		Stream: "DELAY_1s", Owner: inspect.OwnerStopped, Instance: "kitchen",
	}
}

func lateLane() inspect.Lane {
	l := laneIn(jetstream.StreamConfig{Name: "DELAY_30m"})
	l.Overdue = 90
	return l
}

func laneOn(stream string, replicas int) inspect.Lane {
	return laneIn(jetstream.StreamConfig{Name: stream, Replicas: replicas})
}

func excessiveMemory() Facts {
	f := inContainer(math.MaxInt64)
	f.Config.HoldBytes = 256 << 20
	return f
}

// clusterOf returns the facts of two streams with three replicas. The replica on n2 was last seen some time ago, and is
// some operations behind.
func clusterOf(seen time.Duration, lag uint64, offline bool) Facts {
	f := Facts{StreamList: inspect.StreamList{Infos: make(map[string]*jetstream.StreamInfo)}}
	for _, name := range []string{"DELAY_1s", "DELAY_5s"} {
		f.Found = append(f.Found, streams.Spec{Stream: name})
		f.Infos[name] = &jetstream.StreamInfo{
			Config: jetstream.StreamConfig{Name: name, Replicas: 3},
			Cluster: &jetstream.ClusterInfo{Leader: "n1", Replicas: []*jetstream.PeerInfo{
				{Name: "n2", Active: seen, Lag: lag, Offline: offline}, {Name: "n3", Current: true},
			}},
		}
	}
	return f
}

// embeddedDurability returns the facts of an embedded server whose broker reports its durability.
func embeddedDurability() Facts {
	f := viewWith(laneOn("DELAY_1s", 1))
	f.serverName = EmbeddedName
	f.Host.Probe.Checks = []stats.Check{{Name: "durability", OK: true,
		Detail: "acknowledged means written to a file on this host, fsync every 1s"}}
	return f
}

// operatorBeside returns the facts of a user who may do nothing with the streams, beside running brokers.
func operatorBeside(brokers ...stats.InstanceStatus) Facts {
	nothing := permissions{Publish: &rules{Deny: []string{"$JS.API.STREAM.>"}}}
	return Facts{
		apiPrefix: ownAPI, names: names("delay"), name: "operator", user: &userInfo{User: "operator", Permissions: nothing},
		want:      []streams.Spec{{Stream: "DELAY_1s", Kind: streams.Level, Name: "1s"}},
		instances: inspect.Instances{ProvenAnswers: brokers},
	}
}

// checkCases are facts, each with the only finding of one check.
var checkCases = []struct {
	name  string
	check func(Facts) []Finding
	facts Facts
	state Severity // below Skipped for no finding
	part  string
}{
	{"too old", checkServer, ofVersion("2.12.11"), Warn, "2.12.11"},
	{"too old of its line", checkServer, ofVersion("2.14.2"), Warn, "2.14.2"},
	{"answers below $JS", checkServer, ofVersion("2.14.9"), Warn, "below $JS"},
	{"new enough", checkServer, ofVersion("2.14.10"), Fine, ""},

	{"clocks agree", checkClocks, clockFacts(50*time.Millisecond, 80*time.Millisecond), Fine,
		"equals the local clock, within 1ms"},
	{"one second behind", checkClocks, clockFacts(-time.Second, 0), Fine, "1s behind"},
	{"more than a second behind", checkClocks, clockFacts(-1001*time.Millisecond, 0), Warn,
		"the clock of n2 is 1s behind the local clock"},
	{"perhaps ahead", checkClocks, clockFacts(1500*time.Millisecond, 600*time.Millisecond), Fine, "ahead"},
	{"far ahead", checkClocks, clockFacts(time.Minute, time.Second), Critical, "the clock of n2 is 1m ahead"},

	{"account has room", checkStorage, accountOf(79, 100), Skipped, "no known limit is near"},
	{"account fills", checkStorage, accountOf(80, 100), Warn, "80 of 100"},
	{"account full", checkStorage, accountOf(98, 100), Critical, "98 of 100"},
	{"no limit", checkStorage, accountOf(98, -1), Skipped, "no known limit is near"},
	{"tier full", checkStorage, tierOf(100, 100), Critical, "R3 storage"},
	{"server full", checkStorage, fullServer(""), Critical, "insufficient"},

	{"embedded server full", checkStorage, fullServer(EmbeddedName), Critical, "insufficient"},
	{"store of the embedded server", checkStorage, probeOf(stats.Check{Name: "store", Detail: "9 of 9"}), Critical,
		"http://here/readyz reports: 9 of 9"},
	{"ready", checkReady, probeOf(stats.Check{Name: "disk", OK: true}), Fine, "http://here/readyz"},
	{"not ready", checkReady, probeOf(stats.Check{Name: "lanes", Detail: "not read: DELAY_5s"}), Critical,
		"lanes: not read: DELAY_5s"},
	{"no broker answers", checkReady, nobodyAnswers, Skipped, "no broker answers at http://here/readyz"},

	{"an operator without a name", checkRights,
		Facts{apiPrefix: ownAPI, names: names("delay"), user: new(userInfo)}, Fine,
		"this user may purge no lane, unlike a broker, and no broker reports its user; the user may use all commands"},
	{"an operator beside a broker that does not report its user", checkRights,
		operatorBeside(stats.InstanceStatus{Instance: "a"}),
		Fine, "operator may purge no lane, unlike a broker, and no broker reports its user"},
	{"an operator beside two brokers, of which one reports its user", checkRights,
		operatorBeside(stats.InstanceStatus{Instance: "a"}, stats.InstanceStatus{Instance: "b", Users: []string{"delay"}}),
		Fine, "operator differs from the running brokers' user (delay)"},

	{"a stopped lane", checkOwners, viewWith(stoppedLane), Critical, "DELAY_1s of kitchen"},

	{"the new secret after the old one", checkKeys, Facts{keys: []string{"OLD", "NEW"}}, Fine,
		"key 2 (NEW) seals nothing: if it is new, put it first in DELAY_SECRET (step 2 of a rotation); if it is old, remove"},
	{"one message with the old secret", checkKeys, Facts{keys: []string{"NEW", "OLD"},
		sealCounts: []sealCount{{stream: "DELAY_6h", kind: streams.Level, byKey: map[string]uint64{"OLD": 1}}}}, Fine,
		"it is the key of 1 message of DELAY_6h"},

	{"three replicas", checkDurability, viewWith(laneOn("", 3)), Fine, "by at least 2 of 3 servers"},
	{"current replicas", checkReplicas, clusterOf(0, 0, false), Fine, "the replicas of all 2 streams are current"},
	{"a server that just elects", checkReplicas, clusterOf(2*time.Second, 0, false), Fine, "current"},
	{"a server under load", checkReplicas, clusterOf(time.Millisecond, 300, false), Fine, "current"},
	{"a killed server", checkReplicas, clusterOf(71*time.Second, 1433, false), Warn,
		"on 2 of 2 streams, server n2 is gone for 1m11s: one more failure stops these lanes"},
	{"a server that JetStream knows to be gone", checkReplicas, clusterOf(time.Second, 0, true), Warn,
		"on 2 of 2 streams, server n2 is gone for 1s: one more"},
	{"a server that catches up", checkReplicas, clusterOf(time.Second, 1433, false), Warn,
		"on 2 of 2 streams, server n2 is 1433 operations behind: one more failure stops these lanes"},
	{"one replica", checkReplicas, viewWith(laneOn("DELAY_1s", 1)), -2, ""},

	{"the durability of an embedded server, by its broker", checkDurability, embeddedDurability(), Fine,
		"written to a file on this host, fsync every 1s"},
	{"some streams with one replica", checkDurability, viewWith(laneOn("", 3), laneOn("DELAY_1s", 1)), Warn, "DELAY_1s"},

	{"an overdue lane", checkOwners, viewWith(lateLane()), Warn, "DELAY_30m by 1m30s"},

	{"no JetStream", checkJetStream, Facts{accountErr: jetstream.ErrJetStreamNotEnabledForAccount}, Critical,
		"not enabled"},
	{"no answer", checkJetStream, Facts{accountErr: nats.ErrTimeout}, Critical, "timeout"},
	{"no list", checkStreams, Facts{findErr: nats.ErrTimeout}, Critical, "timeout"},
	{"no leader", checkStreams, viewWith(leaderlessLane), Critical, "DELAY_1s does not answer"},
	{"max_bytes demanded", checkJetStream, Facts{
		needs: provision.Fit([]streams.Spec{{Stream: "DELAY_1s"}}, nil, provision.Allowed{
			Subscriptions: true,
			Account: &jetstream.AccountInfo{Tier: jetstream.Tier{Limits: jetstream.AccountLimits{
				MaxBytesRequired: true, MaxStore: -1}}},
		}),
	}, Critical, "max_bytes of each stream: the broker needs 1 without, the limit is required"},

	{"no limit of memory", checkMemory, unbounded, Fine, "no memory limit"},
	{"GOMEMLIMIT unset", checkMemory, inContainer(math.MaxInt64), Fine, "460 MiB"},
	{"GOMEMLIMIT too high", checkMemory, inContainer(512 << 20), Warn, "512 MiB"},
	{"GOMEMLIMIT set", checkMemory, inContainer(460 << 20), Fine, "460 MiB"},
	{"DELAY_MEMORY too high", checkMemory, excessiveMemory(), Warn, "DELAY_MEMORY is 256 MiB"},
}

// TestChecks covers facts that no test server can have.
func TestChecks(t *testing.T) {
	for _, test := range checkCases {
		got := test.check(test.facts)
		if test.state < Skipped && got == nil {
			continue
		}
		if len(got) != 1 || got[0].Severity != test.state || !strings.Contains(got[0].Detail, test.part) {
			t.Errorf("%s: got %+v, want one finding, %s, with %q", test.name, got, test.state, test.part)
			continue
		}
		if got[0].Severity > Fine && got[0].Advice == "" {
			t.Errorf("%s: the finding has no advice", test.name)
		}
	}
}

// TestChecksWithoutFacts: without a connection, only the checks that need no facts have findings.
func TestChecksWithoutFacts(t *testing.T) {
	for _, f := range (Facts{ConnectErr: nats.ErrNoServers}).Findings() {
		if f.Check != "connection" && f.Check != "memory" {
			t.Errorf("without facts: got %+v, want no finding of this check", f)
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
		if got := test.rules.allows("a.b"); got != test.want {
			t.Errorf("%+v: got %v, want %v", test.rules, got, test.want)
		}
	}
}

// TestEmbeddedStoreAdvice: the store of the embedded server has no limit in the settings, so the advice names its
// directory.
func TestEmbeddedStoreAdvice(t *testing.T) {
	f := fullServer(EmbeddedName)
	got := checkStorage(f)[0].Advice
	if strings.Contains(got, "max_file_store") || !strings.Contains(got, "DELAY_EMBEDDED_DIR") {
		t.Errorf("got %q, want advice about DELAY_EMBEDDED_DIR", got)
	}
	f.serverName = "n1"
	if got := checkStorage(f)[0].Advice; !strings.Contains(got, "max_file_store") {
		t.Errorf("got %q, want advice about max_file_store", got)
	}
}

func names(prefix string) message.Names {
	n, _ := message.NewNames(prefix)
	return n
}
