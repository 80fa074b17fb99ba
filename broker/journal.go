package broker

import (
	"context"
	"sync"

	"delaybroker/broker/acks"
	"delaybroker/broker/journal"
)

const (
	// The records that are not stored yet take at most maxUnstored bytes, and at most Config.HoldBytes / journalShare.
	maxUnstored  = 8 << 20
	journalShare = 16
)

// startJournal starts the writer of the journal. The returned function stops the writer, and waits until the writer has
// stored or dropped the last record. If the configuration has no journal, the writer is nil.
func (b *Broker) startJournal(ctx context.Context, write *acks.Inbox) (*journal.Writer, func()) {
	cfg := b.cfg
	if cfg.Journal == 0 {
		return nil, func() {}
	}
	w := journal.NewWriter(journal.WriterConfig{
		Instance: b.id, Stream: b.names.JournalStream(), Subject: b.names.JournalSubject(),
		MaxWaiting: min(maxUnstored, cfg.HoldBytes/journalShare), MaxPayload: int(b.links.Control.MaxPayload()),
		Grace: cfg.ShutdownGrace, Log: b.log, Seal: b.keys.Policy.Keys.Seal,
	})
	b.journalWriter.Store(w)
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx, write) })
	return w, func() {
		stop()
		running.Wait()
	}
}
