package lane

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
)

const (
	minBackoff  = 50 * time.Millisecond
	maxBackoff  = 2 * time.Second
	bufferItems = 256 // capacity of the channel of items
	allSubjects = ">" // the filter of a lane that is a whole stream
)

// Item is a stored message, with the number of the epoch in which it was read.
type Item struct {
	Epoch uint64
	Message
}

// Reader reads one lane in order and hands the messages to one owner. If the owner takes no messages, the channel of
// items fills, and the reader stops sending requests to the server.
type Reader struct {
	cfg    ReaderConfig
	api    jsapi.Client
	status <-chan nats.Status // of the connection; set by Run

	items         chan Item
	epochs        chan Epoch
	itemBytes     atomic.Int64  // size of the items handed over and not yet released
	releaseSignal chan struct{} // capacity 1; has a value after the owner released an item
	probeSignal   chan struct{} // capacity 1; has a value after Probe
	invalidEpochs chan uint64   // capacity 1; number of the epoch passed to Invalidate
	liveEpoch     atomic.Uint64 // number of the epoch whose consumer is believed alive; zero if there is none

	trouble atomic.Pointer[error] // see Trouble; nil without trouble

	epoch     uint64    // number of the latest epoch, alive or not; used only by Run
	knowledge knowledge // used only by Run
}

// knowledge is the reader's knowledge of its stream.
type knowledge struct {
	judge        Judge
	created      time.Time // creation time of the stream that was read
	newHistory   bool      // the stream has another history, and no epoch has reported that
	first        uint64    // lowest stream sequence to hand over
	firstCreated time.Time // creation time of the stream to which first applies; zero if unknown
	lastRead     Message   // Sequence and At of the last message handed over
	next         uint64    // all messages below it are handled: see "The reader skips no message" in doc.go
	deletedRuns  runs      // sequences in the middle of the stream that were deleted when the epoch began
}

// ReaderConfig is the configuration of a reader.
type ReaderConfig struct {
	Conn      *nats.Conn // should have no other use, because a large pull delays the answers to other requests
	JetStream jetstream.JetStream
	APIPrefix string // prefix of JetStream's API: "$JS.API", or that of a domain or an account's import
	Inbox     string // prefix of reply subjects, such as "_INBOX"
	Stream    string
	Filter    string        // the subjects of the lane, if it is only a part of the stream; empty for all
	Delay     time.Duration // the time for which every message waits in the lane; zero for a lane without a delay
	// From is the lowest stream sequence to hand over: the cursor of the previous owner. A replica that lags may still
	// show purged messages below From. The reader ignores From if the stream was replaced: see recognize.
	From        uint64
	FromCreated time.Time // creation time of the stream to which From applies; zero if unknown
	// Sparse means that any message of the stream may be deleted at any time, that most sequences may be deleted, and that
	// From may lie in the middle of the stream. The reader then asks the leader at each gap, and does not list the deleted
	// sequences when an epoch begins.
	Sparse bool
	// Buffer is the maximum number of bytes of one request, unless the next message is larger. Up to two requests overlap,
	// or three when messages follow an idle time. While the items that are handed over and not yet released have this
	// number of bytes or more, the reader hands over no item. The default is one mebibyte.
	Buffer int
	// BatchWindow is the time for which messages collect at the tail before the reader requests them. If it is zero, the
	// server sends each message immediately.
	BatchWindow time.Duration
	Log         *slog.Logger
}

// NewReader returns a reader. It reads nothing until Run is called.
func NewReader(cfg ReaderConfig) *Reader {
	cfg.Buffer, cfg.Filter = cmp.Or(cfg.Buffer, 1<<20), cmp.Or(cfg.Filter, allSubjects)
	return &Reader{
		cfg: cfg, api: jsapi.Client{Conn: cfg.Conn, API: cfg.APIPrefix},
		items: make(chan Item, bufferItems), epochs: make(chan Epoch),
		releaseSignal: make(chan struct{}, 1), probeSignal: make(chan struct{}, 1), invalidEpochs: make(chan uint64, 1),
		knowledge: knowledge{first: cfg.From, firstCreated: cfg.FromCreated, next: cfg.From},
	}
}

// Epochs delivers the epochs as they begin. The owner must always be ready to receive an epoch, even when it wants no
// items. It must not commit before it has received the current epoch. The channel is never closed.
func (r *Reader) Epochs() <-chan Epoch { return r.epochs }

// Items delivers the messages in order. The owner must call Release for each of them. The channel is never closed.
func (r *Reader) Items() <-chan Item { return r.items }

// Release frees an item's part of ReaderConfig.Buffer. The owner calls Release after it has received the item.
func (r *Reader) Release(it Item) {
	r.itemBytes.Add(-int64(it.Size))
	select {
	case r.releaseSignal <- struct{}{}:
	default:
	}
}

// Live returns the number of the epoch whose consumer is believed alive, or zero if there is none. The owner must
// commit only while Live returns the number of the latest epoch that it received: see "Invariants" in package engine.
func (r *Reader) Live() uint64 { return r.liveEpoch.Load() }

// Invalidate tells the reader that the stream of an epoch was replaced. If this is the current epoch, the reader begins
// another epoch, with Epoch.NewHistory. While the reader waits for its owner, it cannot detect the replacement itself.
func (r *Reader) Invalidate(epoch uint64) {
	select {
	case r.invalidEpochs <- epoch:
	default: // the reader has not handled an earlier call yet
	}
}

// Probe makes the reader check that its consumer still exists. The owner calls Probe after an outage of JetStream that
// did not close the connection. Such an outage may delete consumers that are kept in memory. Without Probe, the reader
// of an idle lane would notice the deletion only after a long timeout.
func (r *Reader) Probe() {
	select {
	case r.probeSignal <- struct{}{}:
	default:
	}
}

// Run reads until ctx ends. It replaces a consumer that fails.
func (r *Reader) Run(ctx context.Context) {
	status := r.cfg.Conn.StatusChanged(nats.CONNECTED, nats.RECONNECTING, nats.DISCONNECTED, nats.CLOSED)
	defer r.cfg.Conn.RemoveStatusListener(status)
	r.status = status
	backoff := minBackoff
	for ctx.Err() == nil {
		p, err := r.begin(ctx)
		if err == nil {
			start := time.Now()
			err = p.run(ctx)
			if time.Since(start) > maxBackoff { // if every consumer fails immediately, the backoff must grow
				backoff = minBackoff
			}
			if ctx.Err() == nil {
				r.liveEpoch.Store(0)
			}
			p.close(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		r.noteTrouble(ctx, err)
		r.wait(ctx, backoff)
		backoff = min(2*backoff, maxBackoff)
	}
}

// wait waits until the backoff has passed and there is a connection, or until a lost connection is back.
func (r *Reader) wait(ctx context.Context, backoff time.Duration) {
	timer := time.NewTimer(backoff)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-r.status:
			if s == nats.CONNECTED {
				return
			}
		case <-timer.C:
			if r.cfg.Conn.IsConnected() {
				return
			}
			r.trouble.Store(new(ErrOffline))
			timer.Reset(maxBackoff)
		}
	}
}

// accept handles a message that a consumer shows. It hands the message over if the message is not yet read and not
// deleted, and if no message of the lane is skipped.
func (r *Reader) accept(ctx context.Context, m Message) error {
	k := &r.knowledge
	if m.Sequence == k.lastRead.Sequence && !m.At.Equal(k.lastRead.At) {
		return r.forget()
	}
	if m.Sequence < k.next { // the consumer starts at the last message read, and a lagging replica shows older messages
		return nil
	}
	exists, err := r.proveGap(ctx, m.Sequence)
	if err != nil {
		return err
	}
	if exists {
		if err := r.handOver(ctx, Item{Epoch: r.epoch, Message: m}); err != nil {
			return err
		}
		k.lastRead = Message{Sequence: m.Sequence, At: m.At}
	}
	k.next = m.Sequence + 1
	return nil
}

// handOver gives an item to the owner. While the owner receives no item, handOver watches for the loss of the
// connection. Without that, the owner would still commit after a reconnect, although the stream may have been replaced.
func (r *Reader) handOver(ctx context.Context, it Item) error {
	for {
		items := r.items
		if r.itemBytes.Load() >= int64(r.cfg.Buffer) {
			items = nil
		}
		select {
		case items <- it:
			r.itemBytes.Add(int64(it.Size))
			return nil
		case <-r.releaseSignal:
		case epoch := <-r.invalidEpochs:
			if epoch == r.epoch {
				return r.forget()
			}
		case <-ctx.Done():
			return ctx.Err()
		case s := <-r.status:
			if s != nats.CONNECTED {
				return ErrOffline
			}
		}
	}
}

// forget makes the next epoch begin with a new history, and returns ErrOtherHistory.
func (r *Reader) forget() error {
	r.knowledge.created = time.Time{}.Add(1) // no stream has this creation time
	return ErrOtherHistory
}
