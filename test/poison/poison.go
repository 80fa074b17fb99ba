// Package poison has lists of hostile input: headers and targets that could harm a broker, its targets or their
// consumers. Unit tests pass these lists to the parsers, and package promises passes them to a broker on a real server.
package poison

import (
	"fmt"
	"strings"
)

// Headers are header lines that the broker must not pass on to a target, each with a harmful value. TestCanaryHeaders
// compares their names with the source code of nats-server and nats.go.
var Headers = []string{
	"Nats-Msg-Id: forged", "Nats-Expected-Stream: OTHER", "Nats-Expected-Last-Sequence: 1",
	"Nats-Expected-Last-Subject-Sequence: 1", "Nats-Expected-Last-Subject-Sequence-Subject: a",
	"Nats-Expected-Last-Msg-Id: a", "Nats-Rollup: all", "Nats-Rollup: sub", "Nats-TTL: 1",
	"Nats-Schedule: @at 2030-01-01T00:00:00Z", "Nats-Schedule-Target: a", "Nats-Schedule-Source: a",
	"Nats-Schedule-TTL: 1s", "Nats-Schedule-Time-Zone: UTC", "Nats-Schedule-Rollup: sub", "Nats-Schedule-Next: purge",
	"Nats-Scheduler: a", "Nats-Batch-Id: a", "Nats-Batch-Sequence: 1", "Nats-Batch-Commit: 1", "Nats-Incr: +1",
	"Nats-Counter-Sources: {}", "Nats-Trace-Dest: a", "Nats-Trace-Only: true", "Nats-Trace-Hop: 1",
	"Nats-Trace-Origin-Account: A", "Nats-Request-Info: {}", "Nats-Server-Xkey: a", "Nats-Stream-Source: a",
	"Nats-Stream: a", "Nats-Subject: a", "Nats-Sequence: 1", "Nats-Last-Sequence: 1", "Nats-Time-Stamp: a",
	"Nats-Num-Pending: 1", "Nats-UpTo-Sequence: 1", "Nats-Consumer-Stalled: a", "Nats-Last-Consumer: 1",
	"Nats-Last-Stream: 1", "Nats-Pending-Messages: 1", "Nats-Pending-Bytes: 1", "Nats-Pin-Id: a", "Nats-Msg-Size: 1",
	"Nats-Response-Type: a", "Nats-Required-Api-Level: 9", "Nats-Marker-Reason: MaxAge", "Nats-Stream-Identity: a",
	"Nats-Service-Error: a", "Nats-Service-Error-Code: 500", "Nats-No-Masking: 1", "Nats-Wrong-Pin-Id: a",
	"Nats-Of-Tomorrow: a", "Nats-: a",
	"Nmqtt-Pub: 1", "Nmqtt-Subject: a", "Nmqtt-Mapped: a", "Nmqtt-PubRel: 1", "Nmqtt-RTopic: a", "Nmqtt-ROrigin: a",
	"Nmqtt-RFlags: 1", "Nmqtt-RSource: a", "Nmqtt-Of-Tomorrow: a",
	"Status: 409", "Status: 100", "Description: Idle Heartbeat", "KV-Operation: PURGE",
	"Delay-Id: a-1-1", "Delay-Due: 2020-01-01T00:00:00Z", "Delay-Accepted: 2020-01-01T00:00:00Z", "Delay-Msg-Id: forged",
	"Delay-Format: 9", "Delay-Hop: 9", "Delay-Attempts: 9", "Delay-First-Failure: 2020-01-01T00:00:00Z",
	"Delay-Last-Failure: 2020-01-01T00:00:00Z", "Delay-Retry-At: 2099-01-01T00:00:00Z", "Delay-Paced: abc",
	"Delay-Error-Code: a", "Delay-Error: a", "Delay-Subject: a",
}

// A Disguise changes the spelling of a header line, so that some parsers do not recognise the header. Lines returns the
// raw lines of a header block.
type Disguise struct {
	Name  string
	Lines func(line string) string
}

// Disguises are the plain header and the known disguises.
var Disguises = []Disguise{
	{"plain", func(l string) string { return l }},
	{"lower case", strings.ToLower},
	{"upper case", strings.ToUpper},
	{"odd case", func(l string) string {
		return strings.ToUpper(l[:2]) + strings.ToLower(l[2:5]) + strings.ToUpper(l[5:])
	}},
	{"bare LF in a value", func(l string) string { return "X-Harmless: 1\n" + l }},
	{"bare LF, lower case", func(l string) string { return "X-Harmless: 1\n" + strings.ToLower(l) }},
	{"two bare LF in a value", func(l string) string { return "X-Harmless: 1\nX-Other: 2\n" + l }},
	{"bare LF behind", func(l string) string { return l + "\nX-Harmless: 1" }},
	{"CR CR LF", func(l string) string { return "X-Harmless: 1\r\r\n" + l }},
	{"bare CR in a value", func(l string) string { return "X-Harmless: 1\r" + l }},
	{"twice", func(l string) string { return l + "\r\n" + l }},
	{"twice in two cases", func(l string) string { return l + "\r\n" + strings.ToLower(l) }},
	{"padded before", func(l string) string { return " " + l }},
	{"tab before", func(l string) string { return "\t" + l }},
	{"padded behind", func(l string) string { return strings.Replace(l, ":", " :", 1) }},
	{"tab behind", func(l string) string { return strings.Replace(l, ":", "\t:", 1) }},
	{"CR behind", func(l string) string { return strings.Replace(l, ":", "\r:", 1) }},
	{"no space", func(l string) string { return strings.Replace(l, ": ", ":", 1) }},
	{"no-break space", func(l string) string { return "\u00a0" + l }},
	{"folded", func(l string) string { return "X-Harmless: 1\r\n " + l }},
	{"colon first", func(l string) string { return ":" + l }},
	{"inside a value", func(l string) string { return "X-Harmless: " + l }},
	{"Kelvin sign", func(l string) string { return strings.NewReplacer("K", "\u212a", "k", "\u212a").Replace(l) }},
}

// Targets returns the forbidden targets, each with a part of the error text that gives the reason. Roots are the first
// tokens that the broker reserves for its own subjects.
func Targets(roots []string) map[string]string {
	m := map[string]string{
		"": "no target", ".": "empty token", "..": "empty token", ".x": "empty token", "x.": "empty token",
		"x..y": "empty token", "x.y.": "empty token", "...x": "empty token", "orders.x..": "empty token",
		"*": "wildcard", ">": "wildcard", "orders.*": "wildcard", "orders.>": "wildcard", "*.x": "wildcard",
		"orders.*.x": "wildcard", "orders.x*": "wildcard", "orders.>x": "wildcard", "a>b": "wildcard", "<b>.x": "wildcard",
		strings.Repeat("x", 257): "257 bytes", strings.Repeat("x", 5000): "5000 bytes",
		strings.Repeat("x.", 200): "400 bytes", strings.Repeat("é", 129): "258 bytes",
		tokens(17): "17 tokens", tokens(100): "100 tokens",
		"grüße.x": "0xc3", "orders.😀": "0xf0", "orders.x\u00a0": "0xc2", "orders\u2024x": "0xe2",
		"ｏrders.x": "0xef", "x\xff": "0xff",
		"＄SYS.REQ": "0xef", "＿INBOX.x": "0xef", "ｄelay.30m.x": "0xef", "\u200b$SYS.REQ": "0xe2", "$SYS\u2024REQ": "0xe2",
	}
	for c := range 256 { // every byte that is not visible ASCII, alone, at the beginning, inside, and at the end
		if c > ' ' && c < 0x7f {
			continue
		}
		b := string([]byte{byte(c)})
		for _, target := range []string{b, b + "orders.x", "orders." + b + ".x", "orders.x" + b} {
			m[target] = fmt.Sprintf("0x%02x", c)
		}
	}
	for _, root := range roots {
		for _, rest := range []string{"", ".x", ".30m.orders.x", ".hop.1h.x", ".bad_time.x"} {
			m[root+rest] = "namespace of this broker"
		}
	}
	for _, target := range []string{
		"$SYS.REQ.SERVER.PING", "$JS.API.STREAM.DELETE.ORDERS", "$JS.API.STREAM.PURGE.DELAY_30m", "$JS.ACK.a.b.c",
		"$KV.bucket.key", "$O.bucket.C.a", "$SRV.PING", "$NRG.x", "$MQTT.msgs.x", "$G.x", "$", "$.x", "$x", "$JSC.R.x",
		"$GR.x", "$LDS.x", "$DEV.x",
		"_INBOX.abc.def", "_INBOX_orders.x", "_R_.x", "_GR_.x", "_", "_.x", "_x", "__x", "_sys.x",
	} {
		m[target] = "namespace of the server"
	}
	return m
}

func tokens(n int) string { return strings.TrimSuffix(strings.Repeat("t.", n), ".") }
