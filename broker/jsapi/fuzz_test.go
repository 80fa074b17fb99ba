package jsapi

import (
	"encoding/json"
	"testing"

	"github.com/nats-io/nats.go"
)

// FuzzParseAck parses any answer, because a subscriber to a target can send any. ParseAck agrees with the JSON decoder.
// An accepted answer has the name of a stream, or the code of a refusal.
func FuzzParseAck(f *testing.F) {
	for _, body := range []string{
		`{"stream":"S","seq":7}`, `{"stream":"S", "seq":7}`, `{"stream":"S","seq":7,"duplicate":true}`,
		`{"stream":"S","domain":"hub","seq":7}`, `{"stream":"S","seq":007}`, `{"stream":"S","seq":}`,
		`{"stream":"S","seq":18446744073709551616}`, `{"stream":"S\u0041","seq":7}`, "{\"stream\":\"S\n\",\"seq\":7}",
		"{\"stream\":\"\xff\",\"seq\":7}", `{"stream":"","seq":7}`, `{"stream":"S","seq":7}}`, `{"stream":"S","seq":-7}`,
		`{"error":{"code":503,"err_code":10077,"description":"x"},"stream":"S","seq":0}`,
		`{"error":null,"stream":"S","seq":1}`,
		`{"error":{"err_code":-1},"stream":"S"}`, `{"Stream":"S","SEQ":7}`, `null`, `[]`, `7`, ``, `+OK`,
	} {
		f.Add([]byte(body), "")
	}
	f.Add([]byte(nil), "503")
	f.Add([]byte(nil), "408")
	f.Fuzz(func(t *testing.T, body []byte, status string) {
		m := &nats.Msg{Data: body}
		if status != "" {
			m.Header = nats.Header{"Status": {status}}
		}
		ack, ok := ParseAck(m)
		if !ok {
			return
		}
		switch {
		case len(body) == 0:
			if status != "503" || ack.Code != 503 {
				t.Errorf("status %q without a body is parsed as %+v", status, ack)
			}
			return
		case !ack.Refused() && ack.Stream == "":
			t.Errorf("%q is parsed as %+v: neither a stream nor a refusal", body, ack)
		}
		var want struct {
			Stream    string `json:"stream"`
			Sequence  uint64 `json:"seq"`
			Duplicate bool   `json:"duplicate"`
			Error     *struct {
				ErrCode int `json:"err_code"`
			} `json:"error"`
		}
		if err := json.Unmarshal(body, &want); err != nil {
			t.Fatalf("%q is parsed as %+v, and by the decoder as: %v", body, ack, err)
		}
		if want.Error == nil &&
			(ack.Refused() || ack.Stream != want.Stream || ack.Sequence != want.Sequence || ack.Duplicate != want.Duplicate) ||
			want.Error != nil && (ack.Code != want.Error.ErrCode || ack.Sequence != 0) {
			t.Errorf("%q is parsed as %+v, and by the decoder as %+v", body, ack, want)
		}
	})
}
