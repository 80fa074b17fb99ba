package jsapi

import (
	"testing"

	"github.com/nats-io/nats.go"
)

func TestParseAck(t *testing.T) {
	none := nats.Header{}
	for _, tt := range []struct {
		name   string
		header nats.Header
		body   string
		want   Ack
		ok     bool
	}{
		{"stored", none, `{"stream":"S","seq":7}`, Ack{Stream: "S", Sequence: 7}, true},
		{"a duplicate", none, `{"stream":"S","seq":7,"duplicate":true}`,
			Ack{Stream: "S", Sequence: 7, Duplicate: true}, true},
		{"in a domain", none, `{"stream":"S","domain":"hub","seq":7}`, Ack{Stream: "S", Sequence: 7}, true},
		{"full", none,
			`{"error":{"code":503,"err_code":10077,"description":"maximum messages exceeded"},"stream":"S","seq":0}`,
			Ack{Stream: "S", Code: 10077, Description: "maximum messages exceeded", Status: 503}, true},
		{"a service's error, without err_code", none, `{"error":{"code":503,"description":"x"}}`,
			Ack{Description: "x", Status: 503}, false},
		{"no responders", nats.Header{"Status": {"503"}}, "",
			Ack{Code: 503, Description: "nobody listens on the subject"}, true},

		{"an error without any code", none, `{"error":{"description":"x"}}`, Ack{}, false},
		{"a status with a body", nats.Header{"Status": {"503"}}, "busy", Ack{}, false},
		{"another status", nats.Header{"Status": {"408"}}, "", Ack{}, false},
		{"empty", none, "", Ack{}, false},
		{"no stream", none, `{"seq":7}`, Ack{}, false},
		{"an empty object", none, `{}`, Ack{}, false},
		{"a service's answer", none, `{"ok":true}`, Ack{}, false},
		{"a service's error", none, `{"error":"no such order"}`, Ack{}, false},
		{"a number", none, `7`, Ack{}, false},
		{"an array", none, `["S",7]`, Ack{}, false},
		{"a negative sequence", none, `{"stream":"S","seq":-7}`, Ack{}, false},
		{"no sequence", none, `{"stream":"S"}`, Ack{}, false},
		{"sequence 0", none, `{"stream":"S","seq":0}`, Ack{}, false},
		{"sequence 0 of a duplicate", none, `{"stream":"S","seq":0,"duplicate":true}`, Ack{}, false},
		{"no JSON", none, `+OK`, Ack{}, false},
	} {
		got, ok := ParseAck(&nats.Msg{Header: tt.header, Data: []byte(tt.body)})
		if ok != tt.ok || ok && got != tt.want {
			t.Errorf("%s: %+v, %v; want %+v, %v", tt.name, got, ok, tt.want, tt.ok)
		}
		if ok && got.Refused() != (tt.want.Code != 0) {
			t.Errorf("%s: refused %v, want %v", tt.name, got.Refused(), !got.Refused())
		}
	}
}

// TestAckOf: ackOf accepts the answers of the given stream, and refusals of the server.
func TestAckOf(t *testing.T) {
	for data, want := range map[string]bool{
		`{"stream":"ORDERS","seq":7}`:  true,
		`{"stream":"OTHER","seq":7}`:   false,
		`{"stream":"ORDERS2","seq":7}`: false,
		`{"error":{"err_code":10077,"description":"full"},"stream":"ORDERS","seq":0}`: true,
		`{"error":{"err_code":10077,"description":"full"},"stream":"OTHER","seq":0}`:  false,
		`{"error":{"err_code":10023,"description":"insufficient resources"}}`:         true,
		`{"error":{"code":500,"description":"a service's error"}}`:                    false,
		`no answer of JetStream`: false,
	} {
		if _, got := ackOf(&nats.Msg{Data: []byte(data)}, "ORDERS"); got != want {
			t.Errorf("%s: accepted %v, want %v", data, got, want)
		}
	}
	noListener := &nats.Msg{Header: nats.Header{"Status": {"503"}}}
	if ack, ok := ackOf(noListener, "ORDERS"); !ok || ack.Code != 503 {
		t.Errorf("without a listener: %+v, %v; want the server's refusal", ack, ok)
	}
}
