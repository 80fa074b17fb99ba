package doctor

import (
	"fmt"

	"github.com/dustin/go-humanize/english"

	"delaybroker/broker/streams"
	"delaybroker/broker/text"
)

// checkKeys reports the keys of DELAY_SECRET that only verify seals, and the entries of timers that are sealed with a
// key that the brokers do not have. The brokers seal new messages with the first key, and verify seals with all keys.
// An instance's answer counts only if the answer has a valid seal.
func checkKeys(f Facts) []Finding {
	var findings []Finding
	for _, a := range f.instances.ProvenAnswers {
		for _, l := range a.Lanes {
			if l.UnopenedEntries > 0 {
				findings = append(findings, finding(Critical,
					"add the secret of these entries to DELAY_SECRET, after the first secret",
					"%d entries of %s are sealed with a secret that the brokers do not have, so these timers do not fire",
					l.UnopenedEntries, l.Stream)...)
			}
		}
	}
	for n, id := range f.keys[min(1, len(f.keys)):] {
		key := fmt.Sprintf("key %d (%s)", n+2, id)
		findings = append(findings, keyFinding(key, id, f.sealCounts)...)
	}
	return findings
}

// keyFinding reports the messages that are sealed with a key that only verifies seals. The id of the key is public:
// each seal begins with the id.
func keyFinding(key, id string, counts []sealCount) []Finding {
	var sealed []string
	for _, s := range counts {
		if s.err != nil {
			return finding(Warn, "run doctor as a user who may create consumers on the streams of the brokers",
				"cannot count the messages sealed with %s, so keep it in DELAY_SECRET: %v", key, s.err)
		}
		more := ""
		if s.truncated {
			more = " or more"
		}
		if n := int(s.byKey[id]); n > 0 || s.truncated {
			word := english.PluralWord(n, unit(s.kind), "")
			sealed = append(sealed, fmt.Sprintf("%d%s %s of %s%s", n, more, word, s.stream, removal(s.kind)))
		}
	}
	if len(sealed) == 0 {
		return finding(Fine, "", "%s seals nothing: if it is new, put it first in DELAY_SECRET (step 2 of a rotation);"+
			" if it is old, remove it (step 3)", key)
	}
	return finding(Fine, "", "keep %s in DELAY_SECRET: it is the key of %s", key, text.ShortList(sealed))
}

func unit(kind streams.Kind) string {
	switch kind {
	case streams.Timers:
		return "entry"
	case streams.Dead:
		return "letter"
	case streams.Journal:
		return "batch"
	}
	return "message"
}

// removal returns the operator's action that empties a kind of stream, or "" if the brokers empty the stream.
func removal(kind streams.Kind) string {
	switch kind {
	case streams.Paused:
		return " (resume the targets)"
	case streams.Dead:
		return " (resend or remove them)"
	}
	return ""
}
