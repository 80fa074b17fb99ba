package doctor

import (
	"fmt"
	"strconv"

	"delaybroker/broker/streams"
	"delaybroker/broker/text"
)

// checkKeys reports three things: messages sealed with a key other than the first, the time when such a key can be
// removed, and messages sealed with a key that the brokers do not have. Only sealed answers count.
func checkKeys(f Facts) []Finding {
	var all []Finding
	for _, a := range f.instances.Proven {
		for _, l := range a.Lanes {
			if l.Unopened > 0 {
				all = append(all, verdict(Critical, "add their secret to DELAY_SECRET, after the first one",
					"%d entries of %s are sealed with a secret that the brokers do not have, so these timers do not fire",
					l.Unopened, l.Stream)...)
			}
		}
	}
	for at, id := range f.keys[min(1, len(f.keys)):] {
		key := fmt.Sprintf("key %d (%s)", at+2, id)
		all = append(all, keyFinding(key, id, f.sealedWith)...)
	}
	return all
}

// keyFinding reports one key that only verifies. The id of the key is public: each seal begins with it.
func keyFinding(key, id string, counts []sealedWith) []Finding {
	var still []string
	for _, s := range counts {
		if s.err != nil {
			return verdict(Warn, "run doctor as a user who may create consumers on the streams of the brokers",
				"cannot count the messages sealed with %s, so keep it in DELAY_SECRET: %v", key, s.err)
		}
		n := strconv.FormatUint(s.by[id], 10)
		if s.more {
			n += " or more"
		}
		if n != "0" {
			still = append(still, fmt.Sprintf("%s %s of %s%s", n, thing(s.kind), s.stream, ends(s.kind)))
		}
	}
	if len(still) == 0 {
		return verdict(Fine, "", "no message is sealed with %s any more; remove it from DELAY_SECRET", key)
	}
	return verdict(Fine, "", "keep %s in DELAY_SECRET, which still seals %s", key, text.Few(still))
}

func thing(kind streams.Kind) string {
	switch kind {
	case streams.Timers:
		return "entries"
	case streams.Dead:
		return "letters"
	case streams.Journal:
		return "batches"
	}
	return "messages"
}

// ends returns the operator's action that empties a kind of stream; "" if time empties it.
func ends(kind streams.Kind) string {
	switch kind {
	case streams.Paused:
		return " (resume the targets)"
	case streams.Dead:
		return " (resend or remove them)"
	}
	return ""
}
