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
	// flushEvery is how long a record waits for others. So much is lost with a broker that is killed.
	flushEvery = 150 * time.Millisecond
	// markEvery is how often a broker that has nothing to say writes that it has not.
	markEvery = time.Minute
	// mostBatch is how many bytes of records do not wait for more. While the stream is slow, several such batches become
	// one, of at most mostJoined: otherwise 64 KiB in the time of a round trip would be all that can be stored.
	mostBatch  = 64 << 10
	mostJoined = 256 << 10
	startChars = 10
	// spareLine is room for the line that makes a batch full.
	spareLine = 4 << 10
	// What is not stored yet when all lanes have stopped gets a second, or what is left of the grace period, and at least
	// leastWords: a broker that is to start again must not wait for its journal.
	lastWords  = time.Second
	leastWords = 250 * time.Millisecond
	// sayEvery is how often the log says that records are dropped.
	sayEvery = time.Minute
)

// Counts are of records. They are safe for concurrent use.
type Counts struct {
	Stored  atomic.Uint64
	Dropped atomic.Uint64
}

// WriterConfig is the configuration of a writer.
type WriterConfig struct {
	Instance string        // the broker's name
	Stream   string        // whose acknowledgement counts
	Subject  string        // of the stream
	Room     int           // bytes of records that may wait; what is over that is dropped
	Payload  int           // bytes that the server takes in a message
	Grace    time.Duration // how long a stop may take
	Counts   *Counts
	Log      *slog.Logger

	// Seal is the proof that we put a body on a subject.
	Seal func(subject string, body []byte) string
}

// Writer collects records, and stores them in batches. Add never waits for anything but a moment's turn, and drops what
// finds no room: no delivery depends on the journal.
type Writer struct {
	cfg          WriterConfig
	most, joined int // bytes of a batch
	bell         chan struct{}
	said         ratelog.Limit

	mu      sync.Mutex // guards what follows; it is held for as long as one line takes to write
	open    batch      // takes records
	full    []batch    // wait to be stored, in their order
	waiting int        // bytes of all of them
	spare   []byte     // of a batch that was stored; nil if there is none
	sending span       // of what was taken, and is not stored yet
	lost    span       // since the last batch that says so
	ends    time.Time  // local; when a stop has to be done; zero before it is asked for
	closed  bool       // nothing more is taken

	series
}

// series is the numbering of the batches. It is Run's alone.
type series struct {
	start  string // tells this writer from others of the instance
	number uint64 // of the last batch
	before uint64 // of the last one that was acknowledged
	buffer []byte // for the message
}

// NewWriter returns a writer that takes records at once, and stores them when it runs.
func NewWriter(cfg WriterConfig) *Writer {
	return &Writer{
		cfg: cfg, series: series{start: rand.Text()[:startChars]}, bell: make(chan struct{}, 1),
		most: min(mostBatch, cfg.Payload/2), joined: min(mostJoined, cfg.Payload/2),
	}
}

// Add takes in a record. It may be called from any goroutine.
func (w *Writer) Add(r Record) {
	now := time.Now()
	when := r.At.UnixNano()
	w.mu.Lock()
	defer w.mu.Unlock()
	one := span{1, when, when}
	if w.waiting >= w.cfg.Room || w.closed {
		w.lost = w.lost.add(one)
		w.cfg.Counts.Dropped.Add(1)
		return
	}
	if w.open.span.Records == 0 {
		w.open.since = now
		w.ring()
	}
	before := len(w.open.lines)
	w.open.lines = r.append(w.open.lines)
	w.open.span = w.open.span.add(one)
	w.waiting += len(w.open.lines) - before
	if len(w.open.lines) >= w.most {
		w.full = append(w.full, w.open)
		w.open, w.spare = batch{lines: w.spare}, nil
		if w.open.lines == nil {
			w.open.lines = make([]byte, 0, w.most+spareLine)
		}
		w.ring()
	}
}

// ring wakes Run.
func (w *Writer) ring() {
	select {
	case w.bell <- struct{}{}:
	default:
	}
}

// Stopping says that the broker stops: the grace period begins. A nil Writer, of a broker that keeps no journal, does
// nothing.
func (w *Writer) Stopping() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ends.IsZero() {
		w.ends = time.Now().Add(w.cfg.Grace)
	}
}

// Run stores batches until ctx ends and then, for a second at most, what waits. The last batch says that nothing
// follows.
func (w *Writer) Run(ctx context.Context, to Publisher) {
	// The work goes on for a while when ctx has ended.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(w.left(), stop) })()
	timer := time.NewTimer(0)
	defer timer.Stop()
	marked := time.Now().Add(-markEvery) // the first batch says that there is a journal from now on
	for ctx.Err() == nil {
		b, wait, ok := w.take(time.Now(), marked, false)
		if ok {
			w.store(work, to, b, false)
			marked = time.Now()
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-w.bell:
		case <-timer.C:
		}
	}
	for end := false; !end; {
		b, _, some := w.take(time.Now(), marked, true)
		end = !some || w.last()
		w.store(work, to, b, end)
	}
}

// take returns the next batch to store, or how long until there is one: a full one, one whose first record has waited,
// or an empty one as a mark. All takes what there is.
func (w *Writer) take(now, marked time.Time, all bool) (b batch, wait time.Duration, ok bool) {
	if some := w.takeFull(); len(some) > 0 {
		for _, next := range some[1:] {
			some[0] = some[0].join(next)
		}
		return some[0], 0, true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	wait = marked.Add(markEvery).Sub(now)
	if w.open.span.Records > 0 {
		wait = min(wait, w.open.since.Add(flushEvery).Sub(now))
		if all || wait <= 0 {
			b, w.open = w.open, batch{}
			w.sending = b.span
			return b, 0, true
		}
	}
	return batch{since: now}, wait, wait <= 0
}

// takeFull takes as many of the full batches as may be joined.
func (w *Writer) takeFull() []batch {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, bytes := 0, 0
	for n < len(w.full) && (n == 0 || bytes+len(w.full[n].lines) <= w.joined) {
		bytes += len(w.full[n].lines)
		n++
	}
	some := w.full[:n:n]
	w.full = w.full[n:]
	for _, b := range some {
		w.sending = w.sending.add(b.span)
	}
	return some
}

// last reports whether nothing is left to take, and sees to it that nothing comes.
func (w *Writer) last() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = len(w.full) == 0 && w.open.span.Records == 0
	return w.closed
}

// left is how long a stop may still take.
func (w *Writer) left() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ends.IsZero() {
		return lastWords
	}
	return min(max(time.Until(w.ends), leastWords), lastWords)
}
