package doctor

import (
	"delaybroker/broker/inspect"
	"delaybroker/broker/streams"
)

// storeWarn is the minimum used share of the storage limit for a warning. From inspect.FullShare on, the finding is
// critical.
const storeWarn = 0.8

// EmbeddedFullAdvice is the advice for a full store of the embedded server.
const EmbeddedFullAdvice = "free space on the disk of DELAY_EMBEDDED_DIR and restart the broker, which then uses up " +
	"to three quarters of the free space; or set the size in DELAY_EMBEDDED_CONFIG (jetstream: max_file)"

// Usage is the used part of a store.
type Usage struct {
	Bytes uint64
	Limit int64 // zero or less: no limit
}

// Share returns the used share of the limit. Without a limit, it returns 0.
func (u Usage) Share() float64 {
	if u.Limit <= 0 {
		return 0
	}
	return float64(u.Bytes) / float64(u.Limit)
}

func checkStorage(f Facts) []Finding {
	var findings []Finding
	for _, check := range embeddedStorage {
		if detail := f.Host.Probe.detail(check, false); detail != "" {
			findings = append(findings, finding(Critical,
				"free space on the disk of DELAY_EMBEDDED_DIR: until then, the server stores no message",
				"the broker at %s reports: %s", f.Host.Probe.URL, detail)...)
		}
	}
	if f.account == nil && f.Infos == nil {
		return findings
	}
	for _, l := range f.lanes.Lanes {
		if l.Info != nil && inspect.IsFull(l.Info) {
			findings = append(findings, finding(Critical, f.makeRoom(l),
				"%s is full: %d messages, %d bytes", l.Stream, l.Pending, l.Bytes)...)
		}
	}
	if f.trial.refusal != "" {
		advice := "raise max_file_store of the servers: until then, they store no message"
		if f.serverName == EmbeddedName {
			advice = EmbeddedFullAdvice
		}
		findings = append(findings, finding(Critical, advice, "the servers refuse to store: %s", f.trial.refusal)...)
	}
	findings = append(findings, f.checkAccount()...)
	switch {
	case findings != nil:
		return findings
	case f.trial.known:
		return finding(Fine, "", "the server accepted a trial message")
	}
	return finding(Skipped, "run doctor as the broker's user, who may test it",
		"no known limit is near; the servers' own limit was not tested")
}

// makeRoom returns the advice for a full stream: the limit to raise.
func (f Facts) makeRoom(l inspect.Lane) string {
	want, _ := streams.SpecOf(f.want, l.Stream)
	limit, setting, wanted := "max_msgs", "DELAY_MAX_PENDING", want.MaxMsgs
	if inspect.IsFullOfBytes(l.Info) {
		limit, setting, wanted = "max_bytes", "DELAY_MAX_PENDING_BYTES", want.MaxBytes
	}
	if wanted > 0 {
		return "raise " + setting + ", and restart the broker"
	}
	return "raise " + limit + " of the stream: nats stream edit " + l.Stream
}

// checkAccount checks the account's limits. An account may have a limit for each tier: R1, R3 and so on.
func (f Facts) checkAccount() []Finding {
	if f.account == nil {
		return nil
	}
	stores := map[string]Usage{"": {f.account.Store, f.account.Limits.MaxStore}}
	for name, t := range f.account.Tiers {
		stores[name+" "] = Usage{t.Store, t.Limits.MaxStore}
	}
	var findings []Finding
	for tier, used := range stores {
		if used.Share() >= storeWarn {
			state := Warn
			if used.Share() >= inspect.FullShare {
				state = Critical
			}
			findings = append(findings, finding(state, "raise the account's storage limit",
				"the account's %sstorage has %d of %d bytes", tier, used.Bytes, used.Limit)...)
		}
	}
	return findings
}
