package config

import (
	"errors"
	"testing"
	"time"

	"delaybroker/broker/deliver"
	"delaybroker/levels"
)

// TestCompleteNamesTheField: each problem names the field, the value and the bound, and is an ErrConfig.
func TestCompleteNamesTheField(t *testing.T) {
	for _, test := range []struct {
		config Config
		want   FieldError
	}{
		{Config{Attempts: -1}, FieldError{Field: "Attempts", Value: "-1", Problem: "want a whole number from 1 to 1000000"}},
		{Config{Replicas: 6}, FieldError{Field: "Replicas", Value: "6", Problem: "want a whole number from 1 to 5"}},
		{Config{DedupWindow: 25 * time.Hour}, FieldError{Field: "DedupWindow", Value: "25h0m0s", Problem: "want 1s to 1d"}},
		{Config{ReplyTimeout: 8 * time.Second}, FieldError{
			Field: "ReplyTimeout", Value: "8s", OtherField: "ShutdownGrace",
			Problem: "want at most 7s500ms, three quarters of ShutdownGrace: " +
				"a clean stop must wait for replies"}},
		{Config{ShutdownGrace: time.Millisecond}, FieldError{Field: "ShutdownGrace", Value: "1ms", Problem: "want 1s to 1h"}},
		{Config{ShutdownGrace: 2 * time.Hour}, FieldError{Field: "ShutdownGrace", Value: "2h0m0s", Problem: "want 1s to 1h"}},
		{Config{MaxPending: -1}, FieldError{
			Field: "MaxPending", Value: "-1", Problem: "want a whole number from 1, or 0 for no bound"}},
		{Config{Secrets: []string{"0123456789abcdef", "short"}}, FieldError{
			Field: "Secrets", Problem: "secret 2 of 2 has 5 bytes, want at least 16: use the output of openssl rand -hex 16"}},
		{Config{JSDomain: "a.b"}, FieldError{
			Field: "JSDomain", Value: "a.b", Problem: "want one token: no dots, wildcards or spaces"}},
		{Config{JSDomain: "hub", APIPrefix: "js"}, FieldError{
			Field: "JSDomain", Value: "hub", Problem: `set together with APIPrefix "js"; remove one of them`}},
		{Config{HeaderTargets: []string{"a", "b..c"}}, FieldError{
			Field: "HeaderTargets", Value: "b..c",
			Problem: `target pattern "b..c": tokens separated by dots; * for one token, > for the rest`}},
		{Config{AttemptRules: RetryLimits{{Pattern: "a.b", Value: 1_000_001}}}, FieldError{
			Field: "AttemptRules", Value: "a.b=1000001",
			Problem: "attempts 1000001 for a.b: want a whole number from 1 to 1000000"}},
		{Config{AttemptRules: RetryLimits{{Pattern: "a..b", Value: 1}}}, FieldError{
			Field: "AttemptRules", Value: "a..b",
			Problem: `target pattern "a..b": tokens separated by dots; * for one token, > for the rest`}},
		{Config{RetryRules: RetryWaits{{Pattern: "a..b", Value: mustLadder(t, "1s")}}}, FieldError{
			Field: "RetryRules", Value: "a..b",
			Problem: `target pattern "a..b": tokens separated by dots; * for one token, > for the rest`}},
		{Config{RetryJitter: RetryJitter{{Pattern: "a.b", Value: 101}}}, FieldError{
			Field: "RetryJitter", Value: "a.b=101", Problem: "jitter 101 for a.b: want a percentage from 0 to 100"}},
		{Config{RetryRules: RetryWaits{{Pattern: "a.b"}}}, FieldError{
			Field: "RetryRules", Value: "a.b", Problem: "no waits for a.b: want at least one"}},
		{Config{RetryRules: RetryWaits{{Pattern: "a.b", Value: mustLadder(t, "5000ms")}}}, FieldError{
			Field: "RetryRules", Value: "",
			Problem: `no retry lanes for the waits of all targets together: bad ladder: ` +
				`levels "5s" and "5000ms" are equally long: keep one`}},
		{Config{Rates: deliver.Rates{{Pattern: "a..b", Value: 1}}}, FieldError{
			Field: "Rates", Value: "a..b",
			Problem: `target pattern "a..b": tokens separated by dots; * for one token, > for the rest`}},
	} {
		_, err := test.config.Complete()
		if !errors.Is(err, ErrConfig) {
			t.Errorf("%s: got %v, want it to wrap ErrConfig", test.want.Field, err)
		}
		all, _ := errors.AsType[FieldErrors](err)
		if len(all) != 1 || all[0] != test.want {
			t.Errorf("got %+v, want only %+v", all, test.want)
		}
	}
}

// TestCompleteReportsAllProblems: the error has all problems, so that an operator can correct them before one restart.
func TestCompleteReportsAllProblems(t *testing.T) {
	if _, err := (Config{Ladder: mustLadder(t, "1s")}).Complete(); err != nil {
		t.Fatalf("a valid configuration: got %v, want no error", err)
	}
	_, err := Config{
		Prefix:        "No",
		Attempts:      -1,
		ReplyTimeout:  2 * time.Hour,
		ShutdownGrace: 2 * time.Hour,
		Targets:       []string{"a..b", ".c"},
	}.Complete()
	all, _ := errors.AsType[FieldErrors](err)
	for _, field := range []string{"Prefix", "Attempts", "ReplyTimeout", "ShutdownGrace", "Targets"} {
		if !all.Has(field) {
			t.Errorf("got %v, want a problem with %s", err, field)
		}
	}
	if len(all) != 6 {
		t.Errorf("got %d problems, want 6: %v", len(all), err)
	}
	want := `configuration: Prefix "No": prefix "No": want a letter, then lower-case letters, digits or '-', ` +
		"at most 16 characters"
	if got := all[0].Error(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func mustLadder(t *testing.T, s string) levels.Ladder {
	t.Helper()
	l, err := levels.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
