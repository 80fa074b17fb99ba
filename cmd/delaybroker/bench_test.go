package main

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
)

func TestBench(t *testing.T) {
	newTestServer(t, server.Options{}).serve()
	for args, count := range map[string]int{
		"--rate 200 --for 500ms --delay 1s":                 100, // a level
		"--rate 200 --for 500ms --delay 1s1ms --target a.b": 100, // the intake
		"--burst 300 --size 16 --target orders.bench":       300,
		"--rate 10000 --for 10ms --delay 1ms":               100,
	} {
		r := decode[benchResult](t, mustRunCommand(t, "", append(strings.Fields("bench --json"), strings.Fields(args)...)...))
		if r.Messages != count || r.Lost != 0 || r.Early != 0 || r.Twice != 0 {
			t.Errorf("%s: got %+v, want %d messages, none lost, early or twice", args, r, count)
		}
		if r.Max < r.P50 || r.PublishedRate <= 0 || r.ArrivedRate <= 0 {
			t.Errorf("%s: got %+v, want measurements", args, r)
		}
	}
	out := mustRunCommand(t, "", strings.Fields("bench --rate 100 --for 100ms --delay 1s")...)
	wantParts(t, out, "P50 MS", "P99 MS", "ARRIVED/S", "LOST", "EARLY")
}

func TestBenchFlags(t *testing.T) {
	newTestServer(t, server.Options{}).serve()
	for args, want := range map[string]string{
		"bench --burst 10 --rate 5":   "--burst excludes --rate",
		"bench --delay 2h":            "want 1ms to 1h",
		"bench --rate 0":              "want 1 to 1000000",
		"bench --size 3":              "want 16 to",
		"bench --target a.*":          "contains a wildcard",
		"bench --target delay.5s.a.b": "delays do not nest",
		"bench steady":                "bench takes no arguments",
	} {
		wantCommandError(t, 2, []string{want}, strings.Fields(args)...)
	}
}

// Without a level that takes the messages, the first publish ends the run.
func TestBenchWithoutBroker(t *testing.T) {
	o := newTestServer(t, server.Options{})
	if _, _, err := o.run("bench", "--rate", "10", "--for", "100ms"); err == nil || exitCode(err) != 1 {
		t.Errorf("got %v, want exit code 1", err)
	}
}

// TestBenchCounts counts the arrivals of five messages: two on time, of which one comes twice, one early, one late, and
// one lost. It ignores messages that are not of the run.
func TestBenchCounts(t *testing.T) {
	now := time.Now()
	log := newArrivals(5, 0, time.Millisecond)
	arrive := func(number int, due time.Time) {
		log.receive(&nats.Msg{
			Data: benchBody(number, 16), Header: nats.Header{message.HeaderDue: {due.Format(time.RFC3339Nano)}},
		})
	}
	for number, due := range []time.Time{now, now, now.Add(time.Hour), now.Add(-time.Hour)} {
		arrive(number, due)
	}
	arrive(1, now)
	arrive(5, now)                                // another run's number
	log.receive(&nats.Msg{Data: []byte("other")}) // no due time
	r := log.result(5)
	if r.Lost != 1 || r.Early != 1 || r.Twice != 1 || r.Max < 3_600_000 {
		t.Errorf("got %+v, want one lost, one early, one twice, and an hour as the maximum", r)
	}
	err := r.err("orders.bench")
	if err == nil || !strings.Contains(err.Error(), "of 5 messages, 1 have not arrived, and 1 were early") {
		t.Errorf("got %v, want the numbers", err)
	}
	err = newArrivals(5, 0, 0).result(5).err("orders.bench")
	if err == nil || !strings.Contains(err.Error(), "no message has arrived") {
		t.Errorf("got %v, want that none has arrived", err)
	}
}
