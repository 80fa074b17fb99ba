package lane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	apiTimeout  = 5 * time.Second
	backoffLow  = 50 * time.Millisecond
	backoffHigh = 2 * time.Second
	bufferItems = 256

	// inactiveThreshold removes the consumer of a broker that crashed, and of a lane that is not read for a while
	// because nothing in it is due; the latter gets a new one when it asks again.
	inactiveThreshold = 5 * time.Minute
)

// Epoch begins what follows in [Reader.Items]: a consumer was created on a stream that was looked at first.
type Epoch struct {
	Number uint64
	// Fresh means that the stream is not the one we knew: deleted and created again, restored, or cut back by a crash
	// of its server. What was read before is not in it under the same sequences, so cursors mean nothing any more.
	Fresh bool
	Info  Sample
}

// Sample is a look at a stream through its leader.
type Sample struct {
	ServerTime time.Time // the leader's clock when it answered; it cannot be later than that now
	Received   time.Time // our clock when the answer was here
	Leader     string    // empty on a single server
	LastSeq    uint64
	Messages   uint64
}

// Item is either a stored message or, when Epoch is set, the beginning of another life of the consumer.
type Item struct {
	Epoch *Epoch
	Stored
}

// Reader reads one lane in order and hands it to one owner. It blocks, and soon stops asking the server, while the owner
// does not take what it has.
type Reader struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	api    string // prefix of the JetStream API subjects, with the final dot
	inbox  string
	lane   Spec
	log    *slog.Logger
	items  chan Item
	live   atomic.Uint64 // the number of the epoch whose consumer is believed alive; zero when there is none
	number uint64

	// What is known of the stream; touched by Run alone.
	created time.Time
	first   uint64 // lowest sequence to deliver
	read    Stored // the last message handed over; its headers and body are dropped
}

// ReaderConfig is what a reader needs to know.
type ReaderConfig struct {
	Conn      *nats.Conn // for reading alone: a large pull must not delay other answers
	JetStream jetstream.JetStream
	APIPrefix string // "$JS.API" unless a domain or an import says otherwise
	Inbox     string // prefix of reply subjects, "_INBOX" unless permissions say otherwise
	Lane      Spec
	// From is the lowest sequence to hand over, as the previous owner left it. A lagging replica may still show what
	// was purged below.
	From uint64
	Log  *slog.Logger
}

// NewReader makes a reader. Don't forget to Run it.
func NewReader(cfg ReaderConfig) *Reader {
	return &Reader{
		nc: cfg.Conn, js: cfg.JetStream, api: cfg.APIPrefix + ".", inbox: cfg.Inbox, lane: cfg.Lane,
		log: cfg.Log, items: make(chan Item, bufferItems), first: cfg.From,
	}
}

// Items delivers epochs and messages in order. It is never closed.
func (r *Reader) Items() <-chan Item { return r.items }

// Live is the number of the epoch whose consumer is believed alive, or zero. To purge is safe only while it is the epoch
// of the message whose sequence is purged.
func (r *Reader) Live() uint64 { return r.live.Load() }

// Run reads until ctx ends, through as many consumers as it takes.
func (r *Reader) Run(ctx context.Context) {
	status := r.nc.StatusChanged(nats.CONNECTED, nats.RECONNECTING, nats.DISCONNECTED, nats.CLOSED)
	defer r.nc.RemoveStatusListener(status)
	pause := backoffLow
	for ctx.Err() == nil {
		p, err := r.begin(ctx)
		if err == nil {
			pause = backoffLow
			err = p.run(ctx, status)
			if ctx.Err() == nil {
				r.live.Store(0)
			}
			p.close(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		r.log.Info("reading anew", "stream", r.lane.Stream, "reason", err, "after", r.read.Sequence)
		r.rest(ctx, status, pause)
		pause = min(2*pause, backoffHigh)
	}
}

// Unchanged reports, after Run has returned, whether the stream still has the history that was read. Nobody watches it
// any more, so a last purge has to ask.
func (r *Reader) Unchanged(ctx context.Context) (bool, error) {
	info, _, err := r.look(ctx)
	if err != nil {
		return false, err
	}
	return info.Created.Equal(r.created) && info.State.LastSeq >= r.read.Sequence, nil
}

// rest waits for a while, or until the connection is back.
func (r *Reader) rest(ctx context.Context, status <-chan nats.Status, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-status:
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
	before, _, err := r.look(ctx)
	if err != nil {
		return nil, err
	}
	fresh := before.Created != r.created || before.State.LastSeq < r.read.Sequence
	known := !r.created.IsZero()
	if fresh {
		if known {
			r.log.Warn("the stream has another history: starting at its first message", "stream", r.lane.Stream,
				"created", before.Created, "last", before.State.LastSeq, "read", r.read.Sequence)
			r.first = 0
		}
		r.read = Stored{}
		if r.first > before.State.LastSeq+1 {
			r.first = 0 // the previous owner knew another history
		}
	}
	start := max(before.State.FirstSeq, r.first, r.read.Sequence, 1)
	p := newPull(r, before, start)
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
	r.created = before.Created
	r.number++
	r.live.Store(r.number)
	epoch := &Epoch{Number: r.number, Fresh: fresh, Info: sample}
	if err := r.hand(ctx, Item{Epoch: epoch}); err != nil {
		p.close(ctx)
		return nil, err
	}
	return p, nil
}

// look asks the stream's leader.
func (r *Reader) look(ctx context.Context) (*jetstream.StreamInfo, Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	s, err := r.js.Stream(ctx, r.lane.Stream)
	if err != nil {
		return nil, Sample{}, fmt.Errorf("look at the stream: %w", err)
	}
	info := s.CachedInfo()
	return info, SampleOf(info, time.Now()), nil
}

// SampleOf takes what matters from a stream's info, received at the given moment.
func SampleOf(info *jetstream.StreamInfo, received time.Time) Sample {
	s := Sample{ServerTime: info.TimeStamp, Received: received, LastSeq: info.State.LastSeq, Messages: info.State.Msgs}
	if info.Cluster != nil {
		s.Leader = info.Cluster.Leader
	}
	return s
}

// hand gives an item to the owner.
func (r *Reader) hand(ctx context.Context, it Item) error {
	select {
	case r.items <- it:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// accept takes a message from a consumer in its order.
func (r *Reader) accept(ctx context.Context, s Stored) error {
	switch {
	case s.Sequence < r.first:
		return nil
	case s.Sequence == r.read.Sequence:
		if !s.At.Equal(r.read.At) {
			r.created = time.Time{}.Add(1) // no stream was created then: the next epoch is fresh
			return errHistory
		}
		return nil // where we resumed
	case s.Sequence < r.read.Sequence:
		return nil
	}
	r.read = Stored{Sequence: s.Sequence, At: s.At, Behind: s.Behind}
	return r.hand(ctx, Item{Stored: s})
}

var (
	errHistory = errors.New("the stream has another history")
	errLost    = errors.New("a message was lost on the wire")
	errSilent  = errors.New("no heartbeat from the consumer")
	errOffline = errors.New("the connection was lost")
	errBehind  = errors.New("the consumer's replica is behind the leader")
)
