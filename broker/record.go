package broker

import (
	"context"
	"time"

	"delaybroker/broker/acks"
	"delaybroker/broker/journal"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
)

// This file keeps the journal: a record of how each message ended. No step of a message waits for it.

const (
	// journalRoom is how many bytes of records may wait, and journalShare which part of the instance's memory at most.
	journalRoom  = 8 << 20
	journalShare = 16
)

// keepJournal stores records until the returned function is called, which waits for the last. Without a journal, the
// writer is nil.
func (b *Broker) keepJournal(ctx context.Context, write *acks.Inbox) (*journal.Writer, func()) {
	cfg := b.cfg
	if cfg.Journal == 0 {
		return nil, func() {}
	}
	w := journal.NewWriter(journal.WriterConfig{
		Instance: b.id, Stream: b.names.JournalStream(), Subject: b.names.JournalSubject(),
		Room: min(journalRoom, cfg.HoldBytes/journalShare), Payload: int(b.conns.Control.MaxPayload()),
		Grace: cfg.ShutdownGrace, Counts: &b.tally.Journal, Log: b.log, Seal: b.keys.Policy.Keys.Seal,
	})
	b.records.Store(w)
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Run(ctx, write)
	}()
	return w, func() {
		stop()
		<-ended
	}
}

// deliveredRecord is the record of a message that its target has.
func deliveredRecord(f *flight, at leader.Time, late time.Duration) journal.Record {
	r := &f.request
	return journal.Record{
		ID: r.ID, Target: r.Target, At: at.Stamp(), Due: r.Due, Late: late, Refused: r.Attempts, Reason: r.LastError,
	}
}

// deadRecord is the record of a message whose dead letter is stored.
func deadRecord(f *flight, now leader.Time) journal.Record {
	as, why := f.sent.as, f.sent.why
	r := journal.Record{
		ID: as.ID, Target: as.Target, At: now.Stamp(), Refused: as.Attempts, Code: why.Code, Reason: why.Sentence,
	}
	if (message.Letter{Request: *as, Code: why.Code}).Understood() {
		r.Due, r.Late = as.Due, max(0, now.Sub(leader.At(as.Due)))
	}
	return r
}
