package poison

import (
	"fmt"
	"strings"
)

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
	for c := range 256 { // every byte that is not printable ASCII, at the beginning, inside, and at the end
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
