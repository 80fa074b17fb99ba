package lane

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"delaybroker/broker/jsapi"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	backoffLow  = 50 * time.Millisecond
	backoffHigh = 2 * time.Second
	// remindEvery is the interval at which a reader logs again that its lane cannot be read. The interval is long, because
	// a broker has about forty readers.
	remindEvery = time.Minute
	bufferItems = 256 // capacity of the channel of items
	everything  = ">" // the filter of a lane that is a whole stream
)

// Item is a stored message, with the number of the epoch in which it was read.
type Item struct {
	Epoch uint64
	Message
}

// Reader reads one lane in order and hands the messages to one owner. While the owner takes no message, the reader
// blocks, and soon sends no more requests to the server.
type Reader struct {
	cfg    ReaderConfig
	api    jsapi.Client
	status <-chan nats.Status // of the connection; set by Run

	items       chan Item
	epochs      chan Epoch
	bytes       atomic.Int64  // size of the items handed over and not yet taken
	taken       chan struct{} // capacity 1; has a value after the owner took an item
	probed      chan struct{} // capacity 1; has a value if the consumer may be gone
	invalidated chan uint64   // capacity 1; an epoch whose stream has another history by now, as the owner has found
	live        atomic.Uint64 // number of the epoch whose consumer is believed alive; zero if there is none

	number    uint64    // of the last epoch; used only by Run
	knowledge knowledge // used only by Run
}

// knowledge is the reader's knowledge of its stream.
type knowledge struct {
	judge        Judge
	created      time.Time // creation time of the stream that was read
	newHistory   bool      // the stream has another history, and the owner has not received an epoch since
	first        uint64    // lowest sequence to hand over
	firstCreated time.Time // creation time of the stream to which first applies; zero if unknown
	read         Message   // the last message handed over, without headers and body
	next         uint64    // see "The reader skips no message" in the package's documentation
	deleted      deleted   // sequences in the middle of the stream that were deleted when the epoch began
}

// ReaderConfig is the configuration of a reader.
type ReaderConfig struct {
	Conn      *nats.Conn // must be used only for reading: a large pull would delay other answers
	JetStream jetstream.JetStream
	APIPrefix string // prefix of JetStream's API: "$JS.API", or that of a domain or an account's import
	Inbox     string // prefix of reply subjects, such as "_INBOX"
	Stream    string
	Filter    string        // the subjects of the lane, if it is only a part of the stream; empty for all
	Delay     time.Duration // the time for which every message waits in the lane; zero for the intake
	// From is the lowest sequence to hand over: the cursor of the previous owner. A replica that lags may still show
	// purged messages below From.
	From uint64
	// FromCreated is the creation time of the stream to which From applies; zero if unknown. If the stream has another
	// creation time, the reader ignores From.
	FromCreated time.Time
	// Sparse means that any message of the stream may be deleted at any time, that most sequences may be deleted, and that
	// From may lie in the middle of the stream. The reader then asks the leader at each gap, instead of listing the
	// deleted sequences when an epoch begins.
	Sparse bool
	// Buffer is the maximum number of bytes of one request. Two requests overlap, or three when messages follow an idle
	// time. Buffer also bounds the bytes of the items that are handed over and not yet taken; one item may exceed it. The
	// default is one mebibyte.
	Buffer int
	// BatchWindow is the time for which messages collect at the tail before the reader requests them. If it is zero, the
	// server sends each message immediately.
	BatchWindow time.Duration
	Log         *slog.Logger
}

// NewReader returns a reader. It reads nothing until Run is called.
func NewReader(cfg ReaderConfig) *Reader {
	cfg.Buffer, cfg.Filter = cmp.Or(cfg.Buffer, 1<<20), cmp.Or(cfg.Filter, everything)
	return &Reader{
		cfg: cfg, api: jsapi.Client{Conn: cfg.Conn, API: cfg.APIPrefix},
		items: make(chan Item, bufferItems), epochs: make(chan Epoch),
		taken: make(chan struct{}, 1), probed: make(chan struct{}, 1), invalidated: make(chan uint64, 1),
		knowledge: knowledge{first: cfg.From, firstCreated: cfg.FromCreated, next: cfg.From},
	}
}

// Epochs delivers the epochs as they begin. The owner must always be ready to receive an epoch, even when it wants no
// items. It must not commit before it has received the current epoch. The channel is never closed.
func (r *Reader) Epochs() <-chan Epoch { return r.epochs }

// Items delivers the messages in order. The owner must call Took for each of them. The channel is never closed.
func (r *Reader) Items() <-chan Item { return r.items }

// Took frees the bytes of an item. The owner calls Took after it has received the item.
func (r *Reader) Took(it Item) {
	r.bytes.Add(-int64(it.Size))
	select {
	case r.taken <- struct{}{}:
	default:
	}
}

// Live returns the number of the epoch whose consumer is believed alive, or zero if there is none. The owner must
// commit only while this is the epoch that it has received last: see "Invariants" in package engine.
func (r *Reader) Live() uint64 { return r.live.Load() }

// Invalidate tells the reader that the stream of an epoch has another history by now, which the reader cannot detect
// while it waits for its owner. The reader then begins a fresh epoch.
func (r *Reader) Invalidate(epoch uint64) {
	select {
	case r.invalidated <- epoch:
	default: // the reader has not handled an earlier call yet, and will begin a fresh epoch for it
	}
}

// Probe makes the reader check that its consumer still exists. The owner calls Probe after an outage of JetStream that
// did not close the connection. The outage deletes consumers that are kept in memory. Without Probe, the reader of an
// idle lane would notice this only after a long timeout.
func (r *Reader) Probe() {
	select {
	case r.probed <- struct{}{}:
	default:
	}
}

// Run reads until ctx ends. It replaces a consumer that fails.
func (r *Reader) Run(ctx context.Context) {
	status := r.cfg.Conn.StatusChanged(nats.CONNECTED, nats.RECONNECTING, nats.DISCONNECTED, nats.CLOSED)
	defer r.cfg.Conn.RemoveStatusListener(status)
	r.status = status
	pause := backoffLow
	var o outage
	for ctx.Err() == nil {
		p, err := r.begin(ctx)
		if err == nil {
			started := time.Now()
			err = p.run(ctx)
			if time.Since(started) > backoffHigh { // otherwise, consumers that fail immediately would not be limited
				pause = backoffLow
			}
			if p.hasAnswered {
				o = outage{}
			}
			if ctx.Err() == nil {
				r.live.Store(0)
			}
			p.close(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		r.report(ctx, &o, err)
		r.backOff(ctx, pause)
		pause = min(2*pause, backoffHigh)
	}
}

// outage is a period in which no consumer answered. The zero value means no outage.
type outage struct {
	since  time.Time
	logged time.Time // when it was last logged
}

// report logs the first error of an outage, and then a reminder every remindEvery.
func (r *Reader) report(ctx context.Context, o *outage, err error) {
	switch now := time.Now(); {
	case o.since.IsZero():
		level := slog.LevelInfo
		// The program that owns the connection logs the loss of the connection once, so the readers do not log it.
		if errors.Is(err, errOffline) || strings.Contains(err.Error(), "Server Shutdown") {
			level = slog.LevelDebug
		}
		r.cfg.Log.Log(ctx, level, "reading the lane was interrupted; creating another consumer", "stream", r.cfg.Stream,
			"reason", err, "after", r.knowledge.read.Sequence)
		o.since, o.logged = now, now
	case now.Sub(o.logged) >= remindEvery:
		r.cfg.Log.Warn("the lane cannot be read; will retry. Check the stream, its leader, and the permissions to create "+
			"consumers and to pull", "stream", r.cfg.Stream, "reason", err, "since", o.since)
		o.logged = now
	}
}

// backOff waits for the pause, or until the connection is re-established.
func (r *Reader) backOff(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
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
			timer.Reset(backoffHigh)
		}
	}
}

// accept handles a message that a consumer shows. It hands the message over if no message of the stream is skipped.
func (r *Reader) accept(ctx context.Context, s Message) error {
	k := &r.knowledge
	if s.Sequence == k.read.Sequence && !s.At.Equal(k.read.At) {
		return r.forget()
	}
	if s.Sequence < k.next { // the consumer starts at the last message read, and a replica that lags shows older ones
		return nil
	}
	exists, err := r.adjoins(ctx, s.Sequence)
	if err != nil {
		return err
	}
	if exists {
		if err := r.handOver(ctx, Item{Epoch: r.number, Message: s}); err != nil {
			return err
		}
		k.read = Message{Sequence: s.Sequence, At: s.At, Behind: s.Behind}
	}
	k.next = s.Sequence + 1
	return nil
}

// handOver gives an item to the owner. While the owner receives no item, handOver watches for the loss of the
// connection. If it did not, the owner would still commit after a reconnect, although the stream may have been replaced
// meanwhile.
func (r *Reader) handOver(ctx context.Context, it Item) error {
	for {
		items := r.items
		if r.bytes.Load() >= int64(r.cfg.Buffer) {
			items = nil
		}
		select {
		case items <- it:
			r.bytes.Add(int64(it.Size))
			return nil
		case <-r.taken:
		case epoch := <-r.invalidated:
			if epoch == r.number {
				return r.forget()
			}
		case <-ctx.Done():
			return ctx.Err()
		case s := <-r.status:
			if s != nats.CONNECTED {
				return errOffline
			}
		}
	}
}

// forget makes the next epoch a fresh one, and returns ErrHistory.
func (r *Reader) forget() error {
	r.knowledge.created = time.Time{}.Add(1) // no stream has this creation time
	return ErrHistory
}
