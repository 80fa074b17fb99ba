package message_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"delaybroker/broker/message"
)

func TestID(t *testing.T) {
	tests := []struct {
		id   message.ID
		want string
	}{
		{message.ID{Stream: "DELAY_30m", Sequence: 1234, At: time.Unix(1732060800, 0)}, "DELAY_30m-1234-1732060800000000000"},
		{message.ID{Stream: "DELAY-2_1h", Sequence: 1, At: time.Unix(0, 1)}, "DELAY-2_1h-1-1"},
		{message.ID{Stream: "a-1-1", Sequence: 2, At: time.Unix(0, 3)}, "a-1-1-2-3"},
		{message.ID{Stream: "x", Sequence: math.MaxUint64, At: time.Unix(0, math.MaxInt64)},
			"x-18446744073709551615-9223372036854775807"},
		{message.ID{Stream: "x", At: time.Unix(0, 0)}, "x-0-0"},
	}
	for _, tt := range tests {
		if got := tt.id.String(); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.id, got, tt.want)
		}
		got, err := message.ParseID(tt.want)
		if err != nil {
			t.Errorf("ParseID(%q): %v", tt.want, err)
		}
		if got.Stream != tt.id.Stream || got.Sequence != tt.id.Sequence || !got.At.Equal(tt.id.At) {
			t.Errorf("ParseID(%q) = %+v, want %+v", tt.want, got, tt.id)
		}
	}
}

func TestParseIDRefuses(t *testing.T) {
	for _, s := range []string{
		"", "-", "--", "a", "a-1", "a-1-", "a--1", "-1-1", "a-x-1", "a-1-x", "a-01-1", "a-1-01", "a-+1-1", "a-1-+1", "a-1--1",
		"a- 1-1", "a-1-1 ", "a-1-1\n", "a-18446744073709551616-1", "a-1-9223372036854775808", "a-1.5-1", "a-1-1/2",
		"a.b-1-1", "a b-1-1", "a\r\nb-1-1", "*-1-1", ">-1-1", "\t-1-1", // not a token of a subject
		strings.Repeat("x", 9999),
	} {
		got, err := message.ParseID(s)
		if err == nil {
			t.Errorf("ParseID(%q) = %+v, want an error", s, got)
			continue
		}
		if n := len(err.Error()); n > 300 {
			t.Errorf("ParseID(%.20q): an error of %d bytes", s, n)
		}
	}
}

func TestMessageIDsOfOneMessage(t *testing.T) {
	r := mustParse(t, "delay.30m.x")
	for want, got := range map[string]string{
		r.ID + "/1":      r.NatsMsgID(1),
		r.ID + "/12":     r.NatsMsgID(12),
		r.ID + "/0/dead": r.DeadMsgID(),
	} {
		if got != want {
			t.Errorf("message id %q, want %q", got, want)
		}
	}
}
