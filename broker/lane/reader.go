package lane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"delaybroker/broker/jsapi"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	apiTimeout  = 5 * time.Second
	backoffLow  = 50 * time.Millisecond
	backoffHigh = 2 * time.Second
	// remindEvery is how often a reader says that its lane cannot be read. There are forty of them.
	remindEvery = time.Minute
	bufferItems = 256 // handed over and not yet taken

)

// Item is a stored message, with the number of the epoch in which it was read.
type Item struct {
	Epoch uint64
	Stored
}

// Reader reads one lane in order and hands it to one owner. It blocks, and soon stops asking the server, while the
// owner does not take what it has.
type Reader struct {
	nc          *nats.Conn
	js          jetstream.JetStream
	api         jsapi.Client
	inbox       string
	stream      string
	delay       time.Duration
	buffer      int // bytes
	log         *slog.Logger
	items       chan Item
	epochs      chan Epoch
	bytes       atomic.Int64  // of the items handed over and not yet taken
	taken       chan struct{} // one slot: an item was taken since
	probed      chan struct{} // one slot: the consumer may be gone
	invalidated chan uint64   // one slot: the owner found the stream of this epoch to be another
	live        atomic.Uint64 // the number of the epoch whose consumer is believed alive; zero when there is none
	number      uint64

	// What is known of the stream; touched by Run alone.
	created time.Time
	judge   Judge
	fresh   bool      // another history was found, and the owner does not know yet
	first   uint64    // lowest sequence to deliver
	firstOf time.Time // when the stream was created that first speaks of, if known
	read    Stored    // the last message handed over; its headers and body are dropped
	next    uint64    // every undeleted message below it was handed over, or had arrived before we began
	deleted deleted   // what the leader had deleted from the midst of the stream when the epoch began
	status  <-chan nats.Status
}

// ReaderConfig is what a reader needs to know.
type ReaderConfig struct {
	Conn      *nats.Conn // for reading alone: a large pull must not delay other answers
	JetStream jetstream.JetStream
	APIPrefix string // "$JS.API" unless a domain or an import says otherwise
	Inbox     string // prefix of reply subjects, "_INBOX" unless permissions say otherwise
	Stream    string
	Delay     time.Duration // what every message waits in the lane; zero for the intake
	// From is the lowest sequence to hand over, as the previous owner left it. A lagging replica may still show what was
	// purged below.
	From uint64
	// FromCreated is when the stream was created that From speaks of, if that is known. Of another stream it says nothing.
	FromCreated time.Time
	// Buffer is how many bytes are asked for at a time, two requests overlapping, and as many are handed over and not yet
	// taken; of a larger message one at a time. Defaults to a mebibyte.
	Buffer int
	Log    *slog.Logger
}

// NewReader makes a reader. Don't forget to Run it.
func NewReader(cfg ReaderConfig) *Reader {
	return &Reader{
		nc: cfg.Conn, js: cfg.JetStream, api: jsapi.Client{Conn: cfg.Conn, API: cfg.APIPrefix}, inbox: cfg.Inbox,
		stream: cfg.Stream, delay: cfg.Delay,
		buffer: cmp.Or(cfg.Buffer, 1<<20), log: cfg.Log, items: make(chan Item, bufferItems), epochs: make(chan Epoch),
		taken:  make(chan struct{}, 1),
		probed: make(chan struct{}, 1), invalidated: make(chan uint64, 1),
		first: cfg.From, firstOf: cfg.FromCreated, next: cfg.From,
	}
}

// Epochs delivers the beginnings. The owner must always be ready to take one, also when it wants no items: until then
// nothing it knows may be committed. It is never closed.
func (r *Reader) Epochs() <-chan Epoch { return r.epochs }

// Items delivers messages in order. For each, the owner calls Took. It is never closed.
func (r *Reader) Items() <-chan Item { return r.items }

// Took makes room for further items.
func (r *Reader) Took(it Item) {
	r.bytes.Add(-int64(it.Size))
	select {
	case r.taken <- struct{}{}:
	default:
	}
}

// Live is the number of the epoch whose consumer is believed alive, or zero. To purge is safe only while it is the
// epoch of the message whose sequence is purged.
func (r *Reader) Live() uint64 { return r.live.Load() }

// Invalidate tells the reader what it cannot see while it waits for its owner: the stream of an epoch has another
// history by now. A fresh epoch follows.
func (r *Reader) Invalidate(epoch uint64) {
	select {
	case r.invalidated <- epoch:
	default: // it is about to hear so
	}
}

// Probe makes the reader see whether its consumer is there. JetStream was away and is back, though the connection
// stayed: consumers in memory do not survive that, and in an idle lane it would be long before their silence is
// noticed.
func (r *Reader) Probe() {
	select {
	case r.probed <- struct{}{}:
	default:
	}
}

// Run reads until ctx ends, through as many consumers as it takes.
func (r *Reader) Run(ctx context.Context) {
	status := r.nc.StatusChanged(nats.CONNECTED, nats.RECONNECTING, nats.DISCONNECTED, nats.CLOSED)
	defer r.nc.RemoveStatusListener(status)
	r.status = status
	pause := backoffLow
	var troubled, said time.Time // since when no consumer was served, and when that was said last
	for ctx.Err() == nil {
		p, err := r.begin(ctx)
		if err == nil {
			started := time.Now()
			err = p.run(ctx)
			if time.Since(started) > backoffHigh { // otherwise a consumer that fails at once would be made 20 times a second
				pause = backoffLow
			}
			if p.tried {
				troubled = time.Time{}
			}
			if ctx.Err() == nil {
				r.live.Store(0)
			}
			p.close(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		switch now := time.Now(); {
		case troubled.IsZero():
			level := slog.LevelInfo
			// which whoever holds the connection says once, and forty readers need not
			if errors.Is(err, errOffline) || strings.Contains(err.Error(), "Server Shutdown") {
				level = slog.LevelDebug
			}
			r.log.Log(ctx, level, "reading anew", "stream", r.stream, "reason", err, "after", r.read.Sequence)
			troubled, said = now, now
		case now.Sub(said) >= remindEvery:
			r.log.Warn("this lane is not read; trying on: look at the stream, its leader, and the rights to create consumers "+
				"and to pull",
				"stream", r.stream, "reason", err, "since", troubled)
			said = now
		}
		r.rest(ctx, pause)
		pause = min(2*pause, backoffHigh)
	}
}

// rest waits for a while, or until the connection is back.
func (r *Reader) rest(ctx context.Context, pause time.Duration) {
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
			if r.nc.IsConnected() {
				return
			}
			timer.Reset(backoffHigh)
		}
	}
}

// begin starts an epoch: look at the stream, create a consumer where we stopped, and look again, since the stream may
// have been replaced in between and would then never deliver what it holds.
func (r *Reader) begin(ctx context.Context) (*pull, error) {
	before, sample, err := r.look(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.recognize(ctx, sample); err != nil {
		return nil, err
	}
	// What lies below the first sequence was removed by its owners, who had seen it arrive, or by an operator.
	r.next = max(r.next, before.State.FirstSeq, r.first, 1)
	if r.deleted, err = r.listDeleted(ctx, before); err != nil {
		return nil, err
	}
	p := newPull(r, before, max(before.State.FirstSeq, r.first, r.read.Sequence, 1))
	if err := p.open(ctx); err != nil {
		p.close(ctx)
		return nil, err
	}
	after, sample, err := r.look(ctx)
	if err == nil && (after.Created != before.Created || after.State.LastSeq < before.State.LastSeq) {
		err = errHistory
	}
	if err != nil {
		p.close(ctx)
		return nil, err
	}
	r.number++
	r.live.Store(r.number)
	if err := r.announce(ctx, Epoch{Number: r.number, Fresh: r.fresh, Info: sample}); err != nil {
		p.close(ctx)
		return nil, err
	}
	r.created, r.fresh = before.Created, false
	return p, nil
}

// recognize finds out whether the stream is the one that was read, and forgets what was read when it is not.
func (r *Reader) recognize(ctx context.Context, look Sample) error {
	verdict, err := r.judge.Verdict(ctx, History{Created: r.created, Read: r.read.Sequence, At: r.read.At}, look,
		r.message)
	switch {
	case err != nil:
		return err
	case verdict == Unsure:
		return errUnsure
	case verdict == Same:
		return nil
	}
	r.fresh = true // until the owner knows, however often this fails
	if known := !r.created.IsZero(); known {
		r.log.Warn("the stream has another history: starting at its first message", "stream", r.stream,
			"created", look.Created, "last", look.LastSeq, "read", r.read.Sequence)
		r.first = 0
	}
	r.read, r.next = Stored{}, 0
	// The previous owner has committed up to there, and the leader knows of it. One that does not has another history,
	// though it may have been created when the other was: it was restored, or cut back by a loss of power.
	if look.FirstSeq < r.first || !r.firstOf.IsZero() && !look.Created.Equal(r.firstOf) {
		r.first = 0
	}
	return nil
}

// listDeleted asks the stream's leader what is deleted in the midst of the stream, if a look has shown that anything
// is.
func (r *Reader) listDeleted(ctx context.Context, look *jetstream.StreamInfo) (d deleted, err error) {
	if look.State.NumDeleted == 0 {
		return nil, nil
	}
	err = r.request(ctx, func(ctx context.Context) error {
		s, err := r.js.Stream(ctx, r.stream)
		if err != nil {
			return fmt.Errorf("look at what is deleted: %w", err)
		}
		info, err := s.Info(ctx, jetstream.WithDeletedDetails(true))
		if err != nil {
			return fmt.Errorf("look at what is deleted: %w", err)
		}
		d = deletedOf(info.State.Deleted)
		return nil
	})
	return d, err
}

// message asks the stream's leader for one message.
func (r *Reader) message(ctx context.Context, sequence uint64) (m jsapi.Message, err error) {
	err = r.request(ctx, func(ctx context.Context) error {
		m, err = r.api.Message(ctx, r.stream, sequence)
		return err
	})
	return m, err
}

func (r *Reader) announce(ctx context.Context, e Epoch) error {
	for {
		select {
		case r.epochs <- e:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case s := <-r.status:
			if s != nats.CONNECTED {
				return errOffline
			}
		}
	}
}

// look asks the stream's leader.
func (r *Reader) look(ctx context.Context) (info *jetstream.StreamInfo, sample Sample, err error) {
	err = r.request(ctx, func(ctx context.Context) error {
		s, err := r.js.Stream(ctx, r.stream)
		if err != nil {
			return fmt.Errorf("look at the stream: %w", err)
		}
		info = s.CachedInfo()
		sample = SampleOf(info, time.Now())
		return nil
	})
	return info, sample, err
}

// request asks the API something, and gives up as soon as the connection is lost: nobody will answer then, and the time
// until the timeout would be lateness.
func (r *Reader) request(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	answered := make(chan error, 1)
	go func() { answered <- ask(ctx) }()
	for {
		select {
		case err := <-answered:
			return err
		case s := <-r.status:
			if s != nats.CONNECTED {
				cancel()
				<-answered
				return errOffline
			}
		}
	}
}

// hand gives an item to the owner. An owner that does not take must not keep us from seeing that the connection was
// lost: what it has would be committed, and the stream may not be the same any more.
func (r *Reader) hand(ctx context.Context, it Item) error {
	for {
		items := r.items
		if r.bytes.Load() >= int64(r.buffer) {
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

// accept takes a message that a consumer shows, and hands it over if it is the next there is.
func (r *Reader) accept(ctx context.Context, s Stored) error {
	if s.Sequence == r.read.Sequence && !s.At.Equal(r.read.At) {
		return r.forget()
	}
	if s.Sequence < r.next { // where we resumed, or shown by a replica that lags
		return nil
	}
	there, err := r.adjoins(ctx, s.Sequence)
	if err != nil {
		return err
	}
	if there {
		if err := r.hand(ctx, Item{Epoch: r.number, Stored: s}); err != nil {
			return err
		}
		r.read = Stored{Sequence: s.Sequence, At: s.At, Behind: s.Behind}
	}
	r.next = s.Sequence + 1
	return nil
}

// forget makes the next epoch a fresh one.
func (r *Reader) forget() error {
	r.created = time.Time{}.Add(1) // no stream was created then
	return errHistory
}

var (
	errHistory = errors.New("the stream has another history")
	errUnsure  = errors.New("the stream seems to be older than what was read from it: cut back, or its leader was " +
		"deposed")
	errUnproven = errors.New("the consumer shows what the leader does not have")
	errLost     = errors.New("a message was lost on the wire, or the server made the consumer anew")
	errSilent   = errors.New("no heartbeat from the consumer")
	errOffline  = errors.New("the connection was lost")
	errBehind   = errors.New("the consumer's replica is behind the leader")
	errTooSmall = errors.New("the next message is larger than the stream allowed when reading began")
)
