package doctor

import (
	"fmt"
	"strconv"

	"delaybroker/broker/streams"
	"delaybroker/broker/text"
)

// checkKeys reports what the keys after the first one have sealed, when each can be removed, and what is sealed with a
// key that the brokers do not have. Only sealed answers count.
func checkKeys(f Facts) []Finding {
	var all []Finding
	for _, a := range f.instances.Proven {
		for _, l := range a.Lanes {
			if l.Unopened > 0 {
				all = append(all, verdict(Critical, "name their secret in DELAY_SECRET, behind the first one",
					"%d entries of %s are sealed with a secret that the brokers do not know: these timers do not fire",
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

// keyFinding reports one key that only verifies. The id is no secret: each seal begins with it.
func keyFinding(key, id string, counts []sealedWith) []Finding {
	var still []string
	for _, s := range counts {
		if s.err != nil {
			return verdict(Warn, "run doctor as a user who may create consumers on the streams of the brokers",
				"what is sealed with %s cannot be counted: keep it in DELAY_SECRET: %v", key, s.err)
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
		return verdict(Fine, "", "nothing is sealed with %s any more; DELAY_SECRET can drop it", key)
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

// ends returns how the messages of a kind of stream come to an end, if not by time alone.
func ends(kind streams.Kind) string {
	switch kind {
	case streams.Paused:
		return " (resume the targets)"
	case streams.Dead:
		return " (resend or remove them)"
	}
	return ""
}
