package message_test

import (
	"testing"

	"delaybroker/broker/message"
)

// TestRules: Lookup returns the value of the first rule whose pattern matches, even a zero value. Without a match, it
// returns the fallback.
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
