package message_test

import (
	"testing"

	"delaybroker/broker/message"
)

// TestRules: the first rule with a matching pattern applies, whatever its value, and otherwise the default.
func TestRules(t *testing.T) {
	rules := message.Rules[int]{
		{Pattern: "shop.mail", Value: 0}, {Pattern: "shop.*", Value: 3}, {Pattern: "shop.mail", Value: 9},
		{Pattern: "*.sms", Value: 5},
	}
	for target, want := range map[string]int{"shop.mail": 0, "shop.sms": 3, "bank.sms": 5, "bank.mail": 7} {
		if got := rules.Lookup(target, 7); got != want {
			t.Errorf("%s: %d, want %d", target, got, want)
		}
	}
}
