package main

import (
	"strings"
	"testing"
)

func TestVersionJSON(t *testing.T) {
	all := decodeLines[map[string]string](t, mustRunVerb(t, "", "version", "--json"))
	if len(all) != 1 || all[0]["nats-server"] == "" || all[0]["delaybroker"] == "" {
		t.Errorf("got %v, want the versions", all)
	}
}

func TestVersionFlag(t *testing.T) {
	if got, want := mustRunVerb(t, "", "--version"), "delaybroker "+readBuild().name()+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A shell completes the values of flags that have few.
func TestCompletion(t *testing.T) {
	for args, want := range map[string]string{
		"__complete dead ls --code ":     "undelivered\n",
		"__complete dead ls --by ":       "reason\n",
		"__complete streams --as ":       "nack\n",
		"__complete doctor --skip ":      "durability\n",
		"__complete pub x --level ":      "30m\n",
		"__complete dead resend --code ": "too_far\n",
	} {
		if got := mustRunVerb(t, "", strings.Split(args, " ")...); !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q in it", args, got, want)
		}
	}
}
