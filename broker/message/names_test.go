package message_test

import (
	"slices"
	"strings"
	"testing"

	"delaybroker/broker/message"
)

func TestNewNamesRefuses(t *testing.T) {
	for _, prefix := range []string{
		"", "Delay", "delay.x", "delay_x", "1delay", "-delay", "delay*", ">", "delay ", " delay", "$delay", "_delay",
		"délai",
		"delay\n",
		"abcdefghijklmnopq",
	} {
		if _, err := message.NewNames(prefix); err == nil {
			t.Errorf("NewNames(%q): got no error, want one", prefix)
		}
	}
	for _, prefix := range []string{"d", "delay", "delay-2", "abcdefghijklmnop"} {
		if _, err := message.NewNames(prefix); err != nil {
			t.Errorf("NewNames(%q): got %v, want no error", prefix, err)
		}
	}
}

// TestNames has the subjects and stream names of the protocol.
func TestNames(t *testing.T) {
	n := mustNames("delay")
	for want, got := range map[string]string{
		"delay": n.Prefix(), "DELAY_30m": n.LevelStream("30m"), "DELAY_RETRY_30s": n.RetryStream("30s"),
		"DELAY_INTAKE": n.IntakeStream(), "DELAY_DEAD": n.DeadStream(), "DELAY_JOURNAL": n.JournalStream(),
		"delaysys.journal": n.JournalSubject(), "DELAY_TIMERS": n.TimersStream(),
		"delaytimer.*.>": n.TimerFilter(), "delaytimer.k.a.b": n.Timer("k", "a.b"), "delaysys.armed": n.TimersCursor(),
		"delaysys.hop.30m.timer": n.Marker("30m"),
		"delay.30m.>":            n.LevelFilter("30m"), "delayin.*.>": n.InFilter(), "delayat.*.>": n.AtFilter(),
		"delaydead.>":        n.DeadFilter(),
		"delaysys.hop.30m.>": n.HopFilter("30m"), "delaysys.retry.30s.>": n.RetryFilter("30s"),
		"delay.30m":            n.BareLevel("30m"),
		"delaysys.hop.30m.a.b": n.Hop("30m", "a.b"), "delaysys.retry.30s.a.b": n.Retry("30s", "a.b"),
		"delaydead.bad_time": n.Dead(message.BadTime, ""), "delaydead.expired.a.b": n.Dead(message.Expired, "a.b"),
		"LATE-2_1h": mustNames("late-2").LevelStream("1h"), "late-2sys.hop.1h.x": mustNames("late-2").Hop("1h", "x"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for stream, want := range map[string]bool{
		n.LevelStream("30m"): true, n.RetryStream("5s"): true, n.IntakeStream(): true, n.DeadStream(): true,
		n.OwnersStream(): true, n.JournalStream(): true, "DELAY_JOURNALS": false, "DELAY_orders": false, "ORDERS": false,
	} {
		if got := n.OwnsStream(stream); got != want {
			t.Errorf("%s is ours: %v, want %v", stream, got, want)
		}
	}
	want := []string{"delay", "delayin", "delayat", "delaytimer", "delaysys", "delaydead", "delayctl"}
	if got := n.Roots(); !slices.Equal(got, want) {
		t.Errorf("roots %q, want %q", got, want)
	}
}

func TestParseSubject(t *testing.T) {
	n := mustNames("delay")
	tests := []struct {
		subject string
		want    message.Address
	}{
		{"delay.30m.a.b", message.Address{Form: message.FormLevel, Token: "30m", Target: "a.b"}},
		{"delay.30m", message.Address{Form: message.FormLevel, Token: "30m"}},
		{"delay.30m.", message.Address{Form: message.FormLevel, Token: "30m"}},
		{"delay", message.Address{Form: message.FormLevel}},
		{"delayin.1h30m.a", message.Address{Form: message.FormIn, Token: "1h30m", Target: "a"}},
		{"delayat.1.a", message.Address{Form: message.FormTime, Token: "1", Target: "a"}},
		{"delaytimer.key.a.b", message.Address{Form: message.FormTimer, Token: "key", Target: "a.b"}},
		{"delaytimer", message.Address{Form: message.FormTimer}},
		{"delaysys.armed", message.Address{}},
		{"delaysys.hop.30m.a.b", message.Address{Form: message.FormHop, Token: "30m", Target: "a.b"}},
		{"delaysys.retry.30s.a", message.Address{Form: message.FormRetry, Token: "30s", Target: "a"}},
		{"delaysys.hop", message.Address{Form: message.FormHop}},
		{"delaysys.hops.30m.a", message.Address{}},
		{"delaysys.30m.a", message.Address{}},
		{"delaysys", message.Address{}},
		{"Delay.30m.a", message.Address{}},
		{"delays.30m.a", message.Address{}},
		{".delay.30m.a", message.Address{}},
		{"delaydead.expired.a", message.Address{}},
		{"", message.Address{}},
	}
	for _, tt := range tests {
		if got := n.Parse(tt.subject); got != tt.want {
			t.Errorf("Parse(%q) = %+v, want %+v", tt.subject, got, tt.want)
		}
	}
}

// TestBrokerOnly: only the broker may publish below delaysys and delaydead.
func TestBrokerOnly(t *testing.T) {
	n := mustNames("delay")
	for subject, want := range map[string]bool{
		"delaysys.hop.1h.x": true, "delaysys.retry.1s.x": true, "delaydead.expired.x": true, "delaydead": true,
		"delaysys":   true,
		"delay.1h.x": false, "delay.1h.delaysys.hop.1h.x": false, "delayin.1h.x": false, "delayat.1.x": false,
		"delaysysx.hop": false,
		"Delaysys.hop":  false, "": false, ".delaysys": false, strings.Repeat("delaysys", 2): false,
	} {
		if got := n.BrokerOnly(subject); got != want {
			t.Errorf("BrokerOnly(%q) = %t, want %t", subject, got, want)
		}
	}
}
