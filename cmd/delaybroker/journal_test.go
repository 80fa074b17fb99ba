package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/text"
	"delaybroker/test/natstest"
)

// completeness is the last line of journal --json.
type completeness struct {
	Complete bool
	Found    int
	MaxAge   float64  `json:"kept_seconds"`
	Next     string   `json:"go_on"`
	Without  []string `json:"instances_without"`
}

// records runs journal, and returns the records and their completeness.
func (o *testServer) records(args ...string) ([]inspect.Record, completeness) {
	o.t.Helper()
	lines := strings.Split(strings.TrimSpace(o.must(append([]string{"journal", "--json"}, args...)...)), "\n")
	end := decode[completeness](o.t, lines[len(lines)-1])
	return decodeLines[inspect.Record](o.t, strings.Join(lines[:len(lines)-1], "\n")), end
}

// TestJournalFindsDeliveries: the commands journal and where find deliveries in a broker's journal, even after a
// restart and after the journal was disabled.
func TestJournalFindsDeliveries(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	o := newTestServer(t, server.Options{})
	if _, _, err := o.run("journal"); exitCode(err) != 1 || !strings.Contains(err.Error(), "DELAY_JOURNAL=7d") {
		t.Errorf("without a journal: got %v, want the setting", err)
	}
	t.Setenv("DELAY_JOURNAL", "7d")
	t.Setenv("DELAY_PROVISION", "create")
	r := startReady(t)
	sub := subscribe(t, o.nc, "orders.a")
	o.publish("delayin.10ms.orders.a", "here")
	id := wantMessage(t, sub, "here").Header.Get(message.HeaderID)
	o.publish("delayin.soon.orders.b", "")
	eventually(t, "dead letter", func() bool { return o.messageCount("DELAY_DEAD") == 1 })
	r.stop(t) // a stop stores the last records

	got, end := o.records()
	if len(got) != 2 || !end.Complete || end.Found != 2 || end.MaxAge != 7*24*3600 {
		t.Fatalf("got %+v with %+v, want both records and a complete answer", got, end)
	}
	one := got[0]
	if one.ID != id {
		one = got[1]
	}
	if one.ID != id || one.Outcome != "delivered" || one.Target != "orders.a" || one.Attempts != 1 ||
		!one.At.Equal(one.Due.Add(time.Duration(math.Round(one.Late*1e9)))) || one.Instance == "" {
		t.Errorf("got %+v, want the delivery of %s", one, id)
	}
	o.wantRecordFilters(id)
	out, errs, err := o.run("journal", "--target", "orders.a")
	if err != nil || !strings.Contains(out, "OUTCOME") || !strings.Contains(out, id) ||
		!strings.Contains(errs, "complete: as far as the brokers know, no record") {
		t.Errorf("got %v and\n%s%s", err, out, errs)
	}
	_, errs, _ = o.run("journal", "--since", "1h")
	if !strings.Contains(errs, "MISSING: all earlier records: the journal begins later") {
		t.Errorf("from before the journal began: got\n%s", errs)
	}

	o.wantWhereFromJournal(one)
	o.doctor().want("journal", "ok", "kept for 7d")
	o.wantRemainingJournal()
}

// wantRecordFilters selects between two records: the one with this id, and the one of a dead letter.
func (o *testServer) wantRecordFilters(id string) {
	t := o.t
	t.Helper()
	for args, want := range map[string]int{
		"--outcome delivered": 1, "--outcome dead": 1, "--outcome bad_time": 1, "--outcome expired": 0,
		"--target orders.>": 2, "--target orders.b": 1, "--id " + id: 1, "--id DELAY_INTAKE-1": 1, "--late-than 1h": 0,
		"--since 1h": 2, "--until 1h": 0, "--limit 1": 1,
	} {
		if got, _ := o.records(strings.Fields(args)...); len(got) != want {
			t.Errorf("%s: got %+v, want %d", args, got, want)
		}
	}
	first, begin := o.records("--limit", "1")
	rest, end := o.records("--from", begin.Next)
	if begin.Complete || len(rest) != 1 || rest[0].ID == first[0].ID || !end.Complete {
		t.Errorf("from %s: got %+v and %+v, want the other record", begin.Next, rest, end)
	}
}

// wantWhereFromJournal finds a message of which only the record still exists.
func (o *testServer) wantWhereFromJournal(one inspect.Record) {
	t, id := o.t, one.ID
	t.Helper()
	w := o.mustFind(id)
	if !w.Delivered.Equal(one.At) || w.Stream != "" || w.Target != "orders.a" ||
		!w.Accepted.Equal(one.Due.Add(-10*time.Millisecond)) || !strings.HasSuffix(w.Answer, "on attempt 1") ||
		!strings.HasPrefix(w.Answer, "delivered at "+text.Moment(one.At)) {
		t.Errorf("where: got %+v", w)
	}
	if w := o.mustFind("DELAY_INTAKE-1"); w.ID != id {
		t.Errorf("where by stream and sequence: got %+v", w)
	}
	unknown := message.ID{Stream: "DELAY_INTAKE", Sequence: 1, At: one.Due}
	const never = "the journal has no delivery of the message: "
	if w := o.mustNotFind(unknown.String()); !strings.Contains(w.Answer, never) {
		t.Errorf("where of an unknown message: got %q", w.Answer)
	}
}

// wantRemainingJournal runs a broker without a journal, while older records exist.
func (o *testServer) wantRemainingJournal() {
	t := o.t
	t.Helper()
	t.Setenv("DELAY_JOURNAL", "off")
	r := startReady(t)
	defer r.stop(t)
	wantParts(t, r.log.String(), "the earlier journal is left unchanged, and becomes empty within 7d")
	got, end := o.records()
	if len(got) != 2 || end.Complete || len(end.Without) != 1 {
		t.Errorf("without DELAY_JOURNAL: got %+v with %+v, want the instance without a journal", got, end)
	}
	o.doctor().want("journal", "ok", "no instance keeps a journal; the records in DELAY_JOURNAL expire within 7d")
}

// TestJournalUsage: an error names the flag, the value, and the allowed values.
func TestJournalUsage(t *testing.T) {
	externalEnv(t, "nats://127.0.0.1:1")
	for args, want := range map[string]string{
		"--target a..b":         `"a..b" for "--target"`,
		"--since yesterday":     `"yesterday" for "--since"`,
		"--since 1h --until 2h": "is not before",
		"--id 42":               "--id",
		"--outcome late":        `"--outcome" flag: want delivered, dead, bad_headers`,
		"--late-than 0s":        `"0s" for "--late-than"`,
		"--from 12":             `"12" is not a place`,
		"--limit -1":            `"-1" for "--limit" flag: want 0 or more`,
		"here":                  "takes no arguments",
	} {
		wantCommandError(t, 2, []string{want}, append([]string{"journal"}, strings.Fields(args)...)...)
	}
}

// TestJournalSettings: the program refuses a duration and a size below the minimum. The error names the allowed
// values.
func TestJournalSettings(t *testing.T) {
	o := newTestServer(t, server.Options{})
	t.Setenv("DELAY_JOURNAL", "1s")
	t.Setenv("DELAY_JOURNAL_BYTES", "1KB")
	_, _, err := o.run("provision")
	if text := fmt.Sprint(err); exitCode(err) != 2 || !strings.Contains(text, `DELAY_JOURNAL="1s": want off, or 1m to`) ||
		!strings.Contains(text, `DELAY_JOURNAL_BYTES="1KB": want at least 1048576`) {
		t.Errorf("got %v", err)
	}
	t.Setenv("DELAY_JOURNAL", "1h")
	t.Setenv("DELAY_JOURNAL_BYTES", "")
	wantParts(t, o.must("provision"), "DELAY_JOURNAL")
	t.Setenv("DELAY_JOURNAL", "2d")
	wantParts(t, o.must("provision"), "keeps records for 2d, not 1h")
	t.Setenv("DELAY_JOURNAL", "off")
	wantParts(t, o.must("provision"), "is left unchanged, and becomes empty within 2d")
	t.Setenv("DELAY_JOURNAL", "90m")
	var all []struct {
		Name    string
		MaxAge  time.Duration `json:"max_age"`
		Discard string
	}
	natstest.NoError(t, json.Unmarshal([]byte(o.must("streams")), &all))
	kept := 0
	for _, s := range all {
		if s.Name == "DELAY_JOURNAL" && s.MaxAge == 90*time.Minute && s.Discard == "old" {
			kept++
		}
	}
	if kept != 1 {
		t.Errorf("as JSON: got %+v", all)
	}
	wantParts(t, o.must("streams", "--as", "nack"), "maxAge: 1h30m0s", "maxBytes: 1073741824")
}
