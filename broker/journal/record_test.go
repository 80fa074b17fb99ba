package journal

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"delaybroker/broker/message"
)

// TestRecordEncoding: a record has this encoding, which does not change, since the journal keeps records for months.
func TestRecordEncoding(t *testing.T) {
	due := time.Unix(0, 1795222624918700000).UTC()
	for _, test := range []struct {
		record Record
		want   string
	}{
		{
			Record{ID: "DELAY_1s-29-1795222623918700000", Target: "orders.a", Due: due, At: due.Add(1300 * time.Microsecond),
				Lateness: 1300 * time.Microsecond},
			`{"i":"DELAY_1s-29-1795222623918700000","t":"orders.a","d":1795222624918700000,"w":1300000}`,
		},
		{
			Record{ID: "DELAY_1s-1-1", Target: "a", Due: due, At: due, Lateness: 0, Refusals: 2, Reason: `nobody "listens"`},
			`{"i":"DELAY_1s-1-1","t":"a","d":1795222624918700000,"w":0,"r":2,"e":"nobody \"listens\""}`,
		},
		{
			Record{ID: "DELAY_1s-1-1", Target: "slow", Due: due, At: due.Add(time.Second), Lateness: time.Millisecond},
			`{"i":"DELAY_1s-1-1","t":"slow","d":1795222624918700000,"w":1000000000,"l":1000000}`,
		},
		{
			Record{ID: "DELAY_INTAKE-1-1", At: due, Code: message.BadTarget, Reason: "é\n"},
			`{"i":"DELAY_INTAKE-1-1","w":1795222624918700000,"l":0,"c":"bad_target","e":"é\n"}`,
		},
		{
			Record{ID: "DELAY_1s-1-1", Target: "a", Due: due, At: due, Reason: "full", Series: 7, Round: 12},
			`{"i":"DELAY_1s-1-1","t":"a","d":1795222624918700000,"w":0,"e":"full","s":7,"n":12}`,
		},
	} {
		got := string(test.record.append(nil))
		if got != test.want+"\n" {
			t.Errorf("got  %swant %s", got, test.want)
		}
		back, err := parseRecord([]byte(test.want))
		if err != nil || back != test.record {
			t.Errorf("parsed: got %+v, %v, want %+v", back, err, test.record)
		}
	}
}

// TestUnknownFields: a reader ignores unknown fields.
func TestUnknownFields(t *testing.T) {
	r, err := parseRecord([]byte(`{"i":"x-1-1","w":5,"new":{"a":[1]}}`))
	if err != nil || r.ID != "x-1-1" || r.At.UnixNano() != 5 {
		t.Errorf("got %+v, %v, want the id x-1-1 and the time 5", r, err)
	}
	if h, _, ok := parseHead([]byte(`{"b":"x","new":1}`)); !ok || h.Instance != "x" {
		t.Errorf("got the head %+v, %v, want the instance x", h, ok)
	}
}

// FuzzRecord: with any target of a client and any reply of a target, a record is encoded as one line of JSON. A reader
// parses an equal record from this line, apart from invalid UTF-8 and the end of a long reason.
func FuzzRecord(f *testing.F) {
	f.Add("DELAY_1s-1-1", "orders.a", "", "nobody listens", int64(1795222624918700000), int64(5), int64(5), 0)
	f.Add("", "a\"b\\c", "expired", "\x00\n\u2028\xff", int64(0), int64(-5), int64(0), 3)
	f.Fuzz(func(t *testing.T, id, target, code, reason string, due, wait, late int64, refused int) {
		r := Record{ID: id, Target: target, Code: message.Code(code), Reason: reason, Lateness: time.Duration(late),
			Refusals: max(refused, 0)}
		due, wait = due/4, wait/4 // so that their sum does not overflow
		if due != 0 {
			r.Due = time.Unix(0, due).UTC()
		}
		r.At = time.Unix(0, due+wait).UTC()
		line := string(r.append(nil))
		if strings.Count(line, "\n") != 1 || !json.Valid([]byte(line)) {
			t.Fatalf("encoded as %q, want one line of JSON", line)
		}
		got, err := parseRecord([]byte(line))
		valid := func(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
		if err != nil || !got.At.Equal(r.At) || !got.Due.Equal(r.Due) || got.Lateness != r.Lateness ||
			got.Refusals != r.Refusals || len(got.Reason) > 3*maxReason {
			t.Errorf("%q is parsed as %+v, %v, want %+v", line, got, err, r)
		}
		if valid(id) == id && got.ID != id || valid(target) == target && got.Target != target {
			t.Errorf("%q is parsed as %+v, want %+v", line, got, r)
		}
	})
}

// BenchmarkRecord measures the encoding of the record of a delivery.
func BenchmarkRecord(b *testing.B) {
	r := record(1)
	r.At = r.Due.Add(1300 * time.Microsecond)
	r.Lateness = 1300 * time.Microsecond
	line := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		line = r.append(line[:0])
	}
	b.ReportMetric(float64(len(line)), "bytes")
}
