package deliver

import (
	"strings"
	"testing"

	"delaybroker/broker/message"
)

// TestModes: the mode of a message is the first of these that exists: the requested mode, the mode of the first rule
// that matches, the default, auto.
func TestModes(t *testing.T) {
	for _, tt := range []struct {
		modes  string
		asked  message.Mode
		target string
		want   message.Mode
	}{
		{"", "", "shop.a", message.ModeAuto},
		{"core", "", "shop.a", message.ModeCore},
		{"shop.>=stream, shop.a=core,request", "", "shop.a", message.ModeStream},
		{"shop.>=stream,request", "", "ui.a", message.ModeRequest},
		{"shop.>=stream", "", "ui.a", message.ModeAuto},
		{"shop.>=stream", message.ModeCore, "shop.a", message.ModeCore},
	} {
		m, err := ParseModes(tt.modes)
		if err != nil {
			t.Fatalf("%q: %v", tt.modes, err)
		}
		if got := m.mode(tt.asked, tt.target); got != tt.want {
			t.Errorf("%q: %s with %q is %s, want %s", tt.modes, tt.target, tt.asked, got, tt.want)
		}
	}
	for modes, says := range map[string]string{
		"post": `"post"`, "shop.>=post": "for shop.>", "core,auto": "two defaults, core and auto",
	} {
		if _, err := ParseModes(modes); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v, want %q in it", modes, err, says)
		}
	}
}
