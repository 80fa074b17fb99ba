package journal

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync/atomic"
	"time"

	"delaybroker/broker/batch"
	"delaybroker/broker/ratelog"
)

const (
	// MaxStoreDelay is the maximum time from a delivery until its record is stored, if the stream works. The broker waits
	// for refusals by core subscribers, and then for further records of the batch.
	MaxStoreDelay = time.Second
	// flushInterval is the maximum time for which a record waits for further records. If a broker is killed, the waiting
	// records are lost.
	flushInterval = 150 * time.Millisecond
	// fullBatch is the size, in bytes, from which on a batch is stored immediately. A stream with a round trip of 10 ms
	// stores 25 MB of such batches in a second.
	fullBatch = 256 << 10
	// startChars is the length of a start's token, in characters.
	startChars = 10
	// When the broker stops, the writer stores the remaining records for the rest of the grace period, at least for
	// minFlush and at most for maxFlush.
	maxFlush = time.Second
	minFlush = 250 * time.Millisecond
	// logInterval is the minimum time between two log lines about a journal that cannot be stored.
	logInterval = time.Minute
)

// WriterConfig is the configuration of a writer.
type WriterConfig struct {
	Instance   string        // the broker's name
	Stream     string        // name of the journal's stream; acknowledgements of other streams are ignored
	Subject    string        // subject of the batches
	MaxWaiting int           // size of the waiting records, in bytes, from which on the writer drops further records
	MaxPayload int           // maximum size of a message in bytes
	Grace      time.Duration // maximum duration of a stop
	Log        *slog.Logger

	// Seal returns the broker's seal of a body on a subject.
	Seal func(subject string, body []byte) string
}

// Writer collects records, and stores them in batches. A nil Writer belongs to a broker without a journal: it has no
// records, and its Add may not be called.
type Writer struct {
	cfg       WriterConfig
	queue     *batch.Queue[Record, records, *records]
	logLimit  ratelog.Limit
	start     string        // random token of this start of the instance
	stored    atomic.Uint64 // stored records
	reported  atomic.Uint64 // dropped records that a stored batch reports
	stopUntil atomic.Int64  // local time at which a stop must end, unix nanoseconds; zero before BeginStop

	// Only Run uses these fields.
	number uint64 // number of the last batch
	buffer []byte // memory for the message's body
}

// NewWriter returns a writer. Run stores the records. Add may be called before Run.
func NewWriter(cfg WriterConfig) *Writer {
	return &Writer{cfg: cfg, start: rand.Text()[:startChars], queue: batch.New[Record, records](batch.Limits{
		Room: cfg.MaxWaiting, Full: min(fullBatch, cfg.MaxPayload/2), Wait: flushInterval,
	})}
}

// Add queues a record, or drops it if there is no room. It waits only for a mutex, because no delivery may depend on
// the journal. It may be called from any goroutine.
func (w *Writer) Add(r Record) { w.queue.Add(r) }

// Counts returns the number of stored and of dropped records. It may be called from any goroutine.
func (w *Writer) Counts() (stored, dropped uint64) {
	if w == nil {
		return 0, 0
	}
	return w.stored.Load(), w.queue.Dropped()
}

// Missing returns the number of records that a search should find and does not: records that have waited for longer
// than MaxStoreDelay, and dropped records that no batch reports yet. It may be called from any goroutine.
func (w *Writer) Missing() uint64 {
	if w == nil {
		return 0
	}
	missing := w.queue.Dropped() - w.reported.Load()
	if waiting, since := w.queue.Waiting(); waiting > 0 && time.Since(since) > MaxStoreDelay {
		missing += uint64(waiting)
	}
	return missing
}

// BeginStop begins the grace period of a stop.
func (w *Writer) BeginStop() {
	if w != nil {
		w.stopUntil.CompareAndSwap(0, time.Now().Add(w.cfg.Grace).UnixNano())
	}
}

// Run stores batches until ctx ends, and then stores the waiting records for at most maxFlush. The first batch is
// written immediately, without records: it shows that the broker keeps a journal.
func (w *Writer) Run(ctx context.Context, publisher publisher) {
	w.store(ctx, publisher, &records{}, time.Now())
	w.queue.Run(ctx, w.remainingTime, func(ctx context.Context, b *records, since time.Time) (dropped int) {
		return w.store(ctx, publisher, b, since)
	})
}

// remainingTime returns the time for which a stop may still store records.
func (w *Writer) remainingTime() time.Duration {
	until := w.stopUntil.Load()
	if until == 0 {
		return maxFlush
	}
	return min(max(time.Until(timeOf(until)), minFlush), maxFlush)
}
