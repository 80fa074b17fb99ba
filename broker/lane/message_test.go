package lane

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// TestParseReply parses the reply subjects of all server versions, and subjects that are not reply subjects.
func TestParseReply(t *testing.T) {
	const nanos = 1732060800123456789
	want := Message{Sequence: 42, consumerSeq: 7, At: time.Unix(0, nanos).UTC(), Pending: 3}
	for _, tt := range []struct {
		name  string
		reply string
		ok    bool
	}{
		{"9 tokens", "DELAY_30m.delaybroker-x.1.42.7.1732060800123456789.3", true},
		{"11 tokens: domain and account", "hub.ACCHASH.DELAY_30m.delaybroker-x.1.42.7.1732060800123456789.3", true},
		{"11 tokens: no domain", "_.ACCHASH.DELAY_30m.delaybroker-x.1.42.7.1732060800123456789.3", true},
		{"12 tokens: a random last token", "_.ACCHASH.DELAY_30m.delaybroker-x.1.42.7.1732060800123456789.3.rnd", true},
		{"a later version", "_.ACCHASH.DELAY_30m.delaybroker-x.1.42.7.1732060800123456789.3.a.b.c", true},

		{"empty", "", false},
		{"8 tokens", "DELAY_30m.delaybroker-x.1.42.7.1732060800123456789", false},
		{"no numbers", "a.b.c.d.e.f.g", false},
		{"a negative sequence", "S.c.1.-42.7.1732060800123456789.3", false},
		{"a sign", "S.c.1.+42.7.1732060800123456789.3", false},
		{"an empty sequence", "S.c.1..7.1732060800123456789.3", false},
		{"hexadecimal", "S.c.1.0x2a.7.1732060800123456789.3", false},
		{"beyond 63 bits", "S.c.1.9223372036854775808.7.1732060800123456789.3", false},
		{"beyond 64 bits", "S.c.1.18446744073709551616.7.1732060800123456789.3", false},
	} {
		from, got, ok := parseReply(tt.reply)
		if ok != tt.ok {
			t.Errorf("%s: %v, want %v", tt.name, ok, tt.ok)
			continue
		}
		if ok && (got.Sequence != want.Sequence || got.consumerSeq != want.consumerSeq || !got.At.Equal(want.At) ||
			got.Pending != want.Pending) {
			t.Errorf("%s: %+v, want %+v", tt.name, got, want)
		}
		if ok && from != (source{"DELAY_30m", "delaybroker-x"}) {
			t.Errorf("%s: from %+v", tt.name, from)
		}
	}
}

// FuzzReply: parseReply refuses a reply subject, or returns exactly its numbers.
func FuzzReply(f *testing.F) {
	f.Add("S.c.1.42.7.1732060800123456789.3")
	f.Add("_.H.S.c.1.42.7.1732060800123456789.3")
	f.Add("hub.H.S.c.1.42.7.1732060800123456789.3.rnd")
	f.Add("........")
	f.Add("S.c.1.42.7.1732060800123456789.3.9")
	f.Fuzz(func(t *testing.T, reply string) {
		_, s, ok := parseReply(reply)
		if !ok {
			return
		}
		if s.At.UnixNano() < 0 || s.Sequence > 1<<63-1 || s.consumerSeq > 1<<63-1 {
			t.Fatalf("%q gives %+v", reply, s)
		}
		for _, rewritten := range []string{
			fmt.Sprintf("S.c.1.%d.%d.%d.%d", s.Sequence, s.consumerSeq, s.At.UnixNano(), s.Pending),
			fmt.Sprintf("_.H.S.c.1.%d.%d.%d.%d", s.Sequence, s.consumerSeq, s.At.UnixNano(), s.Pending),
			fmt.Sprintf("_.H.S.c.1.%d.%d.%d.%d.rnd", s.Sequence, s.consumerSeq, s.At.UnixNano(), s.Pending),
		} {
			_, again, ok := parseReply(rewritten)
			if !ok || again.Sequence != s.Sequence || again.consumerSeq != s.consumerSeq || !again.At.Equal(s.At) ||
				again.Pending != s.Pending {
				t.Fatalf("%q is parsed to %+v, but %q to %+v, %v", reply, s, rewritten, again, ok)
			}
		}
	})
}

// TestParseStored: a stored message has a reply subject of the consumer, and a subject outside of the inbox. The
// headers do not matter.
func TestParseStored(t *testing.T) {
	const inbox = "_INBOX.x."
	const stored = "$JS.ACK.S.c.1.42.7.1732060800123456789.3"
	for _, tt := range []struct {
		name           string
		subject, reply string
		header         nats.Header
		want           bool
	}{
		{"a stored message", "delay.30m.x", stored, nil, true},
		{"with a status", "delay.30m.x", stored, nats.Header{"Status": {"409"}, "Description": {"Consumer Deleted"}}, true},
		{"with a heartbeat's headers", "delay.30m.x", stored,
			nats.Header{"Status": {"100"}, "Nats-Last-Consumer": {"99"}}, true},
		{"of another stream", "delay.30m.x", "$JS.ACK.T.c.1.42.7.1732060800123456789.3", nil, false},
		{"of another consumer", "delay.30m.x", "$JS.ACK.S.d.1.42.7.1732060800123456789.3", nil, false},
		{"forged into the inbox", inbox + "0.7", stored, nil, false},
		{"a heartbeat", inbox + "0.7", "", nats.Header{"Status": {"100"}}, false},
		{"without a reply", "delay.30m.x", "", nil, false},
		{"another reply", "delay.30m.x", "_INBOX.a.b", nil, false},
		{"an incomplete reply", "delay.30m.x", "$JS.ACK.S.c", nil, false},
		{"another prefix", "delay.30m.x", "$JS.ACKS.c.1.42.7.1732060800123456789.3", nil, false},
	} {
		m := &nats.Msg{Subject: tt.subject, Reply: tt.reply, Header: tt.header}
		s, ok := parseStored(m, inbox, "S", "c")
		if ok != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, ok, tt.want)
		}
		if ok && (s.Sequence != 42 || s.Subject != tt.subject || s.Undecodable) {
			t.Errorf("%s: %+v", tt.name, s)
		}
	}
}

// TestBodySizeOfServer: BodySize uses the server's header, even if a client has set a header of the same name.
func TestBodySizeOfServer(t *testing.T) {
	for want, sizes := range map[int][]string{
		0:   nil,
		12:  {"12"},
		250: {"99999999999999999999", "250"}, // the client's, and then the server's
	} {
		s := Message{Header: map[string][]string{"Nats-Msg-Size": sizes}}
		if got := s.BodySize(); got != want {
			t.Errorf("of %q: got %d, want %d", sizes, got, want)
		}
	}
}
