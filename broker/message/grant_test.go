package message_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"delaybroker/broker/message"
)

// granted reports whether a NATS permission allows a subject. It does not use Match, which it tests.
func granted(permission, subject string) bool {
	want, have := strings.Split(permission, "."), strings.Split(subject, ".")
	for i, token := range want {
		switch {
		case token == ">" && i == len(want)-1:
			return len(have) > i
		case i >= len(have) || token != "*" && token != have[i]:
			return false
		}
	}
	return len(want) == len(have)
}

// hostile returns a random subject whose tokens could confuse the parser. A tenant may publish on most of these
// subjects.
func hostile(rng *rand.Rand, prefix, tenant string) string {
	roots := []string{"", "in", "at", "timer", "sys", "dead", "ctl"}
	words := []string{
		tenant, tenant + "x", "x" + tenant, strings.ToUpper(tenant), "payments", "capture", "30m", "1h", "1s", "1", "5s",
		"0s", "1500ms", "1h30m", "000Z", "123", "732060800123e+09", "1732060800", "1795176000", "1795176000123",
		"2026-11-20T10:00:00Z", "2026-11-20T10:00:00", "999999d", "hop", "retry", "timer", "in", "at", "sys", "", "*", ">",
		"$JS", "$SYS", "_INBOX", "API", "\x00", " ", "é", "\r\n", "a:b", "%2e", prefix, prefix + "in", prefix + "at",
		prefix + "sys", prefix + "dead", prefix + "timer", strings.Repeat("x", 300),
	}
	pick := func(s []string) string { return s[rng.IntN(len(s))] }
	tokens := []string{prefix + pick(roots), pick(words), tenant}
	if rng.IntN(2) == 0 {
		tokens[1] = pick([]string{"30m", "1h", "1s", "0s", "1h30m", "1795176000", "1795176000123", "2026-11-20T10:00:00Z"})
	}
	if rng.IntN(4) == 0 {
		tokens = tokens[:rng.IntN(len(tokens)+1)]
	}
	for range rng.IntN(6) {
		tokens = append(tokens, pick(words))
	}
	if rng.IntN(50) == 0 {
		tokens = append(tokens, strings.Split(strings.Repeat("t.", 20), ".")...)
	}
	if rng.IntN(10) == 0 && len(tokens) > 0 { // a byte anywhere
		i := rng.IntN(len(tokens))
		tokens[i] += string([]byte{byte(rng.IntN(256))})
	}
	return strings.Join(tokens, ".")
}

// TestGrantReachesOwnTargetsOnly: a client whose NATS permissions end with "<tenant>.>" reaches only targets of this
// tenant, whether its request is accepted or becomes a dead letter.
func TestGrantReachesOwnTargetsOnly(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	headers := []message.Header{
		nil, {"Delay-Target": {"payments.capture"}}, {"Delay-Until": {"2026-11-20T12:00:00Z"}},
		{"delay-target": {"payments.capture"}, "Delay-Id": {"x-1-1"}, "Delay-Due": {"2020-01-01T00:00:00Z"}},
	}
	for _, prefix := range []string{"delay", "late-2", "d"} {
		for _, tenant := range []string{"orders", "o"} {
			names := mustNames(prefix)
			p := message.Policy{Names: names, MaxDelay: 366 * day, HeaderTargets: []string{">"}} // any Delay-Target
			var grants []string
			for _, root := range []string{prefix, prefix + "in", prefix + "at", prefix + "timer"} {
				grants = append(grants, root+".*."+tenant+".>")
			}
			var admitted, reached int
			for range 5_000 {
				subject := hostile(rng, prefix, tenant)
				if !slices.ContainsFunc(grants, func(g string) bool { return granted(g, subject) }) {
					continue
				}
				admitted++
				for _, h := range headers {
					r, problem := p.Parse(incoming(subject, h))
					if r.Target != "" && !strings.HasPrefix(r.Target, tenant+".") {
						t.Fatalf("%q with %v reaches %q", subject, h, r.Target)
					}
					if names.BrokerOnly(subject) {
						t.Fatalf("a tenant may publish on %q, on which only the broker may publish", subject)
					}
					if problem == nil {
						reached++
						checkAccepted(t, p, subject, r)
					}
				}
			}
			if admitted < 1000 || reached < 100 {
				t.Errorf("prefix %s, tenant %s: of %d subjects %d reached a target, want at least 1000 and 100", prefix, tenant,
					admitted, reached)
			}
		}
	}
}

// checkAccepted checks the properties of each accepted request.
func checkAccepted(t testing.TB, p message.Policy, subject string, r message.Request) {
	t.Helper()
	if problem := p.CheckTarget(r.Target); problem != nil {
		t.Errorf("%q: the target %q is not allowed: %v", subject, r.Target, problem)
	}
	if r.NextAttempt().Before(r.Accepted) || r.Due.Before(r.Accepted) {
		t.Errorf("%q: due %v, before it was accepted %v", subject, r.Due, r.Accepted)
	}
	if p.MaxDelay > 0 && r.NextAttempt().Sub(r.Accepted) > p.MaxDelay {
		t.Errorf("%q: due %v, later than %v after %v", subject, r.Due, p.MaxDelay, r.Accepted)
	}
	if !r.Expires.IsZero() && r.Expires.Before(r.Due) {
		t.Errorf("%q: expires %v, before it is due %v", subject, r.Expires, r.Due)
	}
	if _, err := message.ParseID(r.ID); err != nil {
		t.Errorf("%q: the id is not valid: %v", subject, err)
	}
}
