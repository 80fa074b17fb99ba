package journal

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"delaybroker/broker/ratelog"
)

const (
	// flushInterval is the maximum time for which a record waits for further records. If a broker is killed, the waiting
	// records are lost.
	flushInterval = 150 * time.Millisecond
	// heartbeatInterval is the interval at which a broker without records writes an empty batch.
	heartbeatInterval = time.Minute
	// fullBatch is the size, in bytes, from which on a batch is stored immediately. While the stream is slow, the writer
	// joins several full batches, up to maxBatch. Otherwise, each round trip would store only 64 KiB.
	fullBatch = 64 << 10
	maxBatch  = 256 << 10
	// lineRoom is the buffer space for the line that makes a batch full, in bytes.
	lineRoom = 4 << 10
	// startChars is the length of a start's token, in characters.
	startChars = 10
	// When the broker stops, the writer stores the remaining records for the rest of the grace period, at least for
	// minFlush and at most for maxFlush.
	maxFlush = time.Second
	minFlush = 250 * time.Millisecond
	// logInterval is the minimum time between two log lines about a journal that cannot be stored.
	logInterval = time.Minute
)

// Counts counts records. It is safe for concurrent use.
type Counts struct {
	Stored  atomic.Uint64
	Dropped atomic.Uint64
}

// WriterConfig is the configuration of a writer.
type WriterConfig struct {
	Instance   string        // the broker's name
	Stream     string        // name of the journal's stream; acknowledgements of other streams are ignored
	Subject    string        // subject of the batches
	MaxWaiting int           // size of the waiting records, in bytes, from which on the writer drops further records
	MaxPayload int           // maximum size of a message in bytes
	Grace      time.Duration // maximum duration of a stop
	Counts     *Counts
	Log        *slog.Logger

	// Seal returns the broker's seal of a body on a subject.
	Seal func(subject string, body []byte) string
}

// Writer collects records, and stores them in batches. Add blocks only for a mutex, and drops a record for which there
// is no room, because no delivery may depend on the journal.
type Writer struct {
	cfg       WriterConfig
	fullBytes int           // size, in bytes, from which on a batch is stored immediately
	maxBytes  int           // maximum size of joined batches, in bytes
	wake      chan struct{} // wakes Run; capacity 1; never closed
	logLimit  ratelog.Limit
	start     string // random token of this start of the instance

	// Only Run uses these fields.
	number   uint64 // number of the last batch
	previous uint64 // number of the last batch that was acknowledged
	buffer   []byte // memory for the message's body

	mu           sync.Mutex // guards the fields below; held while one line is encoded
	openBatch    batch      // the batch to which Add appends
	fullBatches  []batch    // batches to store, oldest first
	waitingBytes int        // bytes of openBatch, fullBatches and the batch that is being stored
	freeBuffer   []byte     // memory of a stored batch, for reuse; nil if there is none
	sendingSpan  span       // records of the batch that is being stored, with the losses that the batch reports
	lostSpan     span       // records dropped and not yet reported
	deadline     time.Time  // local time at which a stop must end; zero before BeginStop
	closed       bool       // if true, Add drops all records
}

// NewWriter returns a writer. Run stores the records. Add may be called before Run.
func NewWriter(cfg WriterConfig) *Writer {
	return &Writer{
		cfg: cfg, start: rand.Text()[:startChars], wake: make(chan struct{}, 1),
		fullBytes: min(fullBatch, cfg.MaxPayload/2), maxBytes: min(maxBatch, cfg.MaxPayload/2),
	}
}

// Add queues a record. It may be called from any goroutine.
func (w *Writer) Add(r Record) {
	now := time.Now()
	ended := r.At.UnixNano()
	w.mu.Lock()
	defer w.mu.Unlock()
	single := span{1, ended, ended}
	if w.waitingBytes >= w.cfg.MaxWaiting || w.closed {
		w.lostSpan = w.lostSpan.union(single)
		w.cfg.Counts.Dropped.Add(1)
		return
	}
	if w.openBatch.span.Records == 0 {
		w.openBatch.firstAdded = now
		w.signal()
	}
	size := len(w.openBatch.lines)
	w.openBatch.lines = r.append(w.openBatch.lines)
	w.openBatch.span = w.openBatch.span.union(single)
	w.waitingBytes += len(w.openBatch.lines) - size
	if len(w.openBatch.lines) >= w.fullBytes {
		w.fullBatches = append(w.fullBatches, w.openBatch)
		w.openBatch, w.freeBuffer = batch{lines: w.freeBuffer}, nil
		if w.openBatch.lines == nil {
			w.openBatch.lines = make([]byte, 0, w.fullBytes+lineRoom)
		}
		w.signal()
	}
}

// signal wakes Run.
func (w *Writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// BeginStop begins the grace period of a stop. A nil Writer belongs to a broker without a journal: BeginStop then does
// nothing.
func (w *Writer) BeginStop() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deadline.IsZero() {
		w.deadline = time.Now().Add(w.cfg.Grace)
	}
}

// Run stores batches until ctx ends, and then stores the waiting records for at most maxFlush. The last batch marks the
// end of this start.
func (w *Writer) Run(ctx context.Context, publisher Publisher) {
	// work ends later than ctx: see remainingTime.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(w.remainingTime(), stop) })()
	timer := time.NewTimer(0)
	defer timer.Stop()
	// The first batch is written immediately. It shows that the broker keeps a journal.
	lastWrite := time.Now().Add(-heartbeatInterval)
	for ctx.Err() == nil {
		b, wait, ok := w.take(time.Now(), lastWrite, false)
		if ok {
			w.store(work, publisher, b, false)
			lastWrite = time.Now()
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-timer.C:
		}
	}
	for end := false; !end; {
		b, _, ok := w.take(time.Now(), lastWrite, true)
		end = !ok || w.closeIfEmpty()
		w.store(work, publisher, b, end)
	}
}

// take returns the next batch to store, or the maximum time until there is one. The batch joins full batches, or its
// first record has waited for flushInterval, or it is an empty heartbeat. If flush is true, take also returns records
// that have waited for less than flushInterval.
func (w *Writer) take(now, lastWrite time.Time, flush bool) (b batch, wait time.Duration, ok bool) {
	if batches := w.takeFull(); len(batches) > 0 {
		b = batches[0]
		for _, next := range batches[1:] {
			b.lines, b.span = append(b.lines, next.lines...), b.span.union(next.span)
		}
		return b, 0, true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	wait = lastWrite.Add(heartbeatInterval).Sub(now)
	if w.openBatch.span.Records > 0 {
		wait = min(wait, w.openBatch.firstAdded.Add(flushInterval).Sub(now))
		if flush || wait <= 0 {
			b, w.openBatch = w.openBatch, batch{}
			w.sendingSpan = b.span
			return b, 0, true
		}
	}
	return batch{firstAdded: now}, wait, wait <= 0
}

// takeFull returns the full batches to store as one: one batch, or several with together at most maxBytes.
func (w *Writer) takeFull() []batch {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, bytes := 0, 0
	for n < len(w.fullBatches) && (n == 0 || bytes+len(w.fullBatches[n].lines) <= w.maxBytes) {
		bytes += len(w.fullBatches[n].lines)
		n++
	}
	batches := w.fullBatches[:n:n]
	w.fullBatches = w.fullBatches[n:]
	for _, b := range batches {
		w.sendingSpan = w.sendingSpan.union(b.span)
	}
	return batches
}

// closeIfEmpty reports whether no record waits. If none waits, Add drops all further records.
func (w *Writer) closeIfEmpty() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = len(w.fullBatches) == 0 && w.openBatch.span.Records == 0
	return w.closed
}

// remainingTime returns the time for which a stop may still store records.
func (w *Writer) remainingTime() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deadline.IsZero() {
		return maxFlush
	}
	return min(max(time.Until(w.deadline), minFlush), maxFlush)
}
