package config

import (
	"maps"
	"testing"
	"time"
)

// TestDigests: equal settings have equal digests, and a change of one setting changes only its own digest.
func TestDigests(t *testing.T) {
	rules, _, jitter, err := ParseRetryWaits("shop.mail=1s,1m;1s,5s ~20%")
	if err != nil {
		t.Fatal(err)
	}
	of := func(change func(*Config)) map[string]string {
		c := Config{RetryRules: rules, RetryJitter: jitter, MaxDelay: time.Hour, Targets: []string{"a.>"}}
		change(&c)
		return c.Digests()
	}
	same := of(func(*Config) {})
	if !maps.Equal(same, of(func(c *Config) { c.Instance, c.HoldBytes = "b", 7 })) {
		t.Error("a setting of one instance changes a digest")
	}
	for name, change := range map[string]func(*Config){
		"DELAY_MAX_DELAY": func(c *Config) { c.MaxDelay++ }, "DELAY_TARGETS": func(c *Config) { c.Targets = []string{"b.>"} },
		"DELAY_RETRY": func(c *Config) { c.RetryJitter = nil },
	} {
		for setting, digest := range of(change) {
			if (digest != same[setting]) != (setting == name) {
				t.Errorf("after a change of %s: the digest of %s is %s, was %s", name, setting, digest, same[setting])
			}
		}
	}
}
