package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/layout"
)

// storeWarn is the part of a limit from which an operator should know; FullAt is critical.
const storeWarn = 0.8

// EmbeddedFull is what to do when the embedded server is full.
const EmbeddedFull = "free space on the disk of DELAY_EMBEDDED_DIR and restart the broker," +
	" which takes three quarters of it again; or say how much in DELAY_EMBEDDED_CONFIG (jetstream: max_file)"

// Usage is how much of a store is used.
type Usage struct {
	Bytes uint64
	Limit int64 // zero or less is none
}

// Part is between 0 and 1, and 0 without a limit.
func (u Usage) Part() float64 {
	if u.Limit <= 0 {
		return 0
	}
	return float64(u.Bytes) / float64(u.Limit)
}

// trial is what became of a publish that the server traces and does not store.
type trial struct {
	known   bool
	refusal string
}

// try publishes as the broker does when it moves a message, as a trace: a server that knows tracing goes through all
// the checks and stores nothing. A full store cannot be seen otherwise. Servers that might not know it, and other
// accounts, where the trace may be cut off, are not tried.
func (i *Inspector) try(ctx context.Context, f *Facts) trial {
	const domestic = "$JS.API"
	level := someLevel(f.found)
	if f.apiPrefix != domestic || !knownAboveFloor(f.version) || level == "" {
		return trial{}
	}
	var t trial
	_ = i.ask(ctx, func(ctx context.Context) error { // unknown then
		answer, err := i.trace(ctx, i.names.Hop(level, "delaybroker.doctor"))
		if err != nil {
			return err
		}
		for _, e := range answer.Events {
			if e.Type == "in" && e.Error != "" { // we may not publish there, which says nothing of the store
				return errors.New(e.Error)
			}
		}
		if t.known = true; answer.Error != nil {
			t.refusal = answer.Error.Description
		}
		return nil
	})
	return t
}

// someLevel is one that this version writes to; empty when there is none.
func someLevel(found []layout.Spec) (level string) {
	for _, s := range found {
		if s.Kind == layout.Level && s.Format <= layout.Format && s.Broken == nil {
			level = s.Name
		}
	}
	return level
}

// traced is a server's answer to a trace (nats-server, server/msgtrace.go), or that of the stream.
type traced struct {
	Error  *jetstream.APIError `json:"error"`
	Events []struct {
		Type  string `json:"type"`
		Error string `json:"error"`
	} `json:"events"`
}

// trace publishes a message that is not delivered, and returns what would have become of it.
func (i *Inspector) trace(ctx context.Context, subject string) (answer traced, err error) {
	inbox := i.Conn.NewInbox()
	sub, err := i.Conn.SubscribeSync(inbox)
	if err != nil {
		return answer, err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only on a closed connection
	msg := nats.NewMsg(subject)
	msg.Reply = inbox
	msg.Header.Set("Nats-Trace-Dest", inbox)
	msg.Header.Set("Nats-Trace-Only", "true")
	if err := i.Conn.PublishMsg(msg); err != nil {
		return answer, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	m, err := sub.NextMsgWithContext(ctx)
	if err != nil {
		return answer, err
	}
	err = json.Unmarshal(m.Data, &answer)
	return answer, err
}

func checkStorage(f Facts) []Finding {
	const name = "storage"
	var all []Finding
	for _, what := range []string{"disk", "store"} { // of the embedded server, which knows better than a trial
		if said := f.Host.Probe.failing(what); said != "" {
			all = append(all, verdict(name, Critical,
				"free space on the disk of DELAY_EMBEDDED_DIR: nothing new is accepted or moved",
				"the broker at %s says: %s", f.Host.Probe.URL, said)...)
		}
	}
	if f.account == nil && f.all == nil {
		return all
	}
	for _, l := range f.lanes.Lanes {
		if l.info != nil && isFull(l.info) {
			all = append(all, verdict(name, Critical, "raise its max_bytes or max_msgs: nats stream edit "+l.Stream,
				"%s is full: %d messages, %d bytes", l.Stream, l.Pending, l.Bytes)...)
		}
	}
	if f.trial.refusal != "" {
		do := "free space, or raise max_file_store of the servers: nothing new is accepted or moved"
		if f.serverName == EmbeddedName {
			do = EmbeddedFull
		}
		all = append(all, verdict(name, Critical, do, "the servers refuse to store: %s", f.trial.refusal)...)
	}
	all = append(all, f.checkAccount()...)
	switch {
	case all != nil:
		return all
	case f.trial.known:
		return verdict(name, Fine, "", "a trial was accepted")
	}
	return verdict(name, Fine, "", "no limit in sight is near; the servers' own limit was not tried")
}

// checkAccount looks at the account's limits, which it may have for each tier: R1, R3 and so on.
func (f Facts) checkAccount() []Finding {
	if f.account == nil {
		return nil
	}
	stores := map[string]Usage{"": {f.account.Store, f.account.Limits.MaxStore}}
	for name, t := range f.account.Tiers {
		stores[name+" "] = Usage{t.Store, t.Limits.MaxStore}
	}
	var all []Finding
	for tier, used := range stores {
		state := Fine
		switch part := used.Part(); {
		case part >= FullAt:
			state = Critical
		case part >= storeWarn:
			state = Warn
		}
		if state > Fine {
			all = append(all, verdict("storage", state, "raise the account's limit, or delete what is not needed",
				"the account's %sstore holds %d of %d bytes", tier, used.Bytes, used.Limit)...)
		}
	}
	return all
}
