package lane

import (
	"context"
	"crypto/rand"
	"delaybroker/broker/layout"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	pullBatch = 500 // messages asked for at a time
	// behindFor is how long a consumer may lack what the leader has before it is replaced. R1 consumers land on random
	// peers, and one that is cut off from the leader goes on sending heartbeats.
	behindFor = 2 * time.Second
	// compareEvery is how often the leader is asked for what the consumer may lack, unless it lacked something lately.
	compareEvery = 5 * time.Second
	// ConsumerPrefix begins the names of the consumers by which brokers read.
	ConsumerPrefix = "delaybroker-"
)

// pull is one consumer's life. A request is replaced when half of it is used, so that two overlap at most, or three
// when work comes behind the tail.
type pull struct {
	r         *Reader
	name      string
	start     uint64
	clustered bool
	largest   int // bytes of a request that any message fits into
	msgs      chan *nats.Msg
	sub       *nats.Subscription

	consumer uint64    // number of the consumer's last message
	wanted   int       // messages asked for and not yet come
	idle     bool      // nothing came since the last request
	large    bool      // the next message is larger than the reader's buffer
	tail     bool      // nothing was behind the last message
	tried    bool      // the consumer counts as we do, so that a slow request may follow
	compared time.Time // when the leader was last asked for what we lack
	behind   time.Time // since when the leader has what we lack; zero when it has not
}

func newPull(r *Reader, info *jetstream.StreamInfo, start uint64) *pull {
	maxMsg := int(info.Config.MaxMsgSize)
	if maxMsg <= 0 {
		maxMsg = int(r.nc.MaxPayload())
	}
	return &pull{
		r: r, name: ConsumerPrefix + rand.Text(), start: start, clustered: far(info, r.nc.ConnectedServerName()),
		largest: maxMsg + 8<<10,
		msgs:    make(chan *nats.Msg, 3*pullBatch),
		tail:    info.State.LastSeq < r.next || info.State.Msgs == 0,
	}
}

// far reports whether the stream can go without our connection: in a cluster, or behind a leaf node. A single server
// names only itself.
func far(info *jetstream.StreamInfo, connected string) bool {
	return info.Cluster != nil && (info.Cluster.Name != "" || info.Cluster.Leader != connected)
}

// open creates the consumer and listens to its inbox.
func (p *pull) open(ctx context.Context) error {
	sub, err := p.r.nc.ChanSubscribe(p.r.inbox+"."+rand.Text(), p.msgs)
	if err != nil {
		return fmt.Errorf("subscribe to the inbox: %w", err)
	}
	p.sub = sub
	return p.r.request(ctx, func(ctx context.Context) error {
		_, err := p.r.js.CreateConsumer(ctx, p.r.stream, jetstream.ConsumerConfig{
			Name:              p.name,
			Description:       "delaybroker reads this lane",
			DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
			OptStartSeq:       p.start,
			AckPolicy:         jetstream.AckNonePolicy,
			MemoryStorage:     true,
			Replicas:          1,
			InactiveThreshold: layout.InactiveThreshold,
		})
		if err != nil {
			return fmt.Errorf("create the consumer: %w", err)
		}
		return nil
	})
}

// close lets the consumer go. On a clean stop it is also deleted; otherwise the server does that in a while, since
// after a loss of connection nobody would hear us.
func (p *pull) close(ctx context.Context) {
	if p.sub == nil {
		return
	}
	_ = p.sub.Unsubscribe() // fails only on a closed connection
	if ctx.Err() != nil && p.r.nc.IsConnected() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = p.r.js.DeleteConsumer(ctx, p.r.stream, p.name) // the threshold does it otherwise
	}
}

// run hands messages over until the consumer cannot be trusted any more, and says why.
func (p *pull) run(ctx context.Context) error {
	if err := p.ask(); err != nil {
		return err
	}
	heard := time.Now()
	armed := p.patience()
	silence := time.NewTimer(armed)
	defer silence.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case s := <-p.r.status:
			if s != nats.CONNECTED {
				return errOffline
			}
		case <-p.r.probed:
			p.tried, p.wanted = false, 0 // what was asked for may be forgotten with it
			if err := p.ask(); err != nil {
				return err
			}
			heard, armed = time.Now(), p.patience()
			silence.Reset(armed)
		case epoch := <-p.r.invalidated:
			if epoch == p.r.number {
				return p.r.forget()
			}
		case m := <-p.msgs:
			if err := p.receive(ctx, m); err != nil {
				return err
			}
			heard = time.Now() // after receive, which may have waited for the owner
			if patience := p.patience(); patience < armed {
				armed = patience
				silence.Reset(armed)
			}
		case <-silence.C:
			if quiet := time.Since(heard); quiet >= p.patience() && len(p.msgs) == 0 {
				return errSilent
			}
			armed = max(p.patience()-time.Since(heard), time.Millisecond)
			silence.Reset(armed)
		}
	}
}

// patience is how long nothing may come. It follows from where we are and not from what was asked last: of several
// requests, the one with the quick heartbeat may be used up before the slow one.
func (p *pull) patience() time.Duration {
	heartbeat, _ := p.watch()
	return heartbeat * 5 / 2
}

// watch is how to ask now. A request that the server refuses, for want of a right, gets no answer: so the first is a
// quick one, or it would be minutes until we ask again. It stays quick until a message, or a heartbeat, has shown that
// the consumer is the one we know.
func (p *pull) watch() (heartbeat, expires time.Duration) {
	if !p.tried {
		return time.Second, 2 * time.Second
	}
	return Watch(p.r.delay, p.tail, p.clustered)
}

// ask requests another batch.
func (p *pull) ask() error {
	heartbeat, expires := p.watch()
	n := pullBatch - p.wanted
	body, err := json.Marshal(struct {
		Batch     int           `json:"batch"`
		MaxBytes  int           `json:"max_bytes"`
		Expires   time.Duration `json:"expires"`
		Heartbeat time.Duration `json:"idle_heartbeat"`
	}{n, p.bytes(), expires, heartbeat})
	if err != nil {
		return fmt.Errorf("encode the request: %w", err)
	}
	if err := p.r.nc.PublishRequest(p.r.api.API+".CONSUMER.MSG.NEXT."+p.r.stream+"."+p.name, p.sub.Subject,
		body); err != nil {
		return fmt.Errorf("ask for messages: %w", err)
	}
	p.wanted += n
	p.idle = true
	return nil
}

// bytes is how many to ask for: a request that is smaller than the next message with its headers gets a 409 and
// nothing.
func (p *pull) bytes() int {
	if p.large {
		return max(p.largest, p.r.buffer)
	}
	return p.r.buffer
}

func (p *pull) receive(ctx context.Context, m *nats.Msg) error {
	s, ok := parseStored(m, p.r.stream, p.name)
	if !ok {
		return p.control(ctx, m)
	}
	if s.consumer != p.consumer+1 {
		return errLost // on the wire, or the server made the consumer anew and counts from one
	}
	p.consumer = s.consumer
	p.idle, p.tried = false, true
	p.large = p.large && s.Size > p.r.buffer/2
	p.wanted--
	p.behind = time.Time{}
	// Behind the tail comes work: a request that watches slowly will not do.
	slow := p.tail && s.Behind > 0
	p.tail = s.Behind == 0
	if slow || p.wanted <= pullBatch/2 {
		if err := p.ask(); err != nil {
			return err
		}
	}
	return p.r.accept(ctx, s)
}

// control reads what the server itself has to say.
func (p *pull) control(ctx context.Context, m *nats.Msg) error {
	if m.Subject != p.sub.Subject {
		return nil
	}
	c := parseControl(m.Header)
	p.wanted = max(0, p.wanted-c.left)
	switch {
	case c.kind == nothing:
		return nil
	case c.kind == heartbeat && c.counted && c.last != p.consumer:
		return errLost
	case c.kind == heartbeat:
		p.tried = true
		return p.compare(ctx, c.passed >= p.r.next)
	case c.kind == noRoom && (c.room == 0 || c.room >= p.largest):
		return errTooSmall // a new consumer looks at the stream's limit again
	case c.kind == noRoom:
		p.large = p.large || c.room >= p.r.buffer // otherwise it was used up
	case c.kind == consumerEnded:
		return fmt.Errorf("the server says %s", c.words)
	}
	if p.wanted <= pullBatch/2 {
		return p.ask()
	}
	return nil
}

// compare asks the leader whether we lack something: in a cluster now and then, and when the consumer is past what we
// have not read. It may have been deleted; or the consumer was made anew, its first messages were lost on the wire, and
// their number is that of those before.
func (p *pull) compare(ctx context.Context, past bool) error {
	now := time.Now()
	if !past && (!p.clustered || !p.tail || p.behind.IsZero() && now.Sub(p.compared) < compareEvery) {
		return nil
	}
	p.compared = now
	more := false
	if err := p.r.request(ctx, func(ctx context.Context) (err error) {
		more, err = p.r.more(ctx)
		return err
	}); err != nil {
		return err
	}
	switch {
	case more && past:
		return errLost
	case p.lags(more, time.Now()):
		return errBehind
	}
	return nil
}

// lags reports whether the leader has had more than we were given for longer than behindFor.
func (p *pull) lags(more bool, now time.Time) bool {
	if !more {
		p.behind = time.Time{}
		return false
	}
	if p.behind.IsZero() {
		p.behind = now
	}
	return now.Sub(p.behind) >= behindFor
}

// more asks the leader whether it holds a message behind the last one read. Its last sequence does not tell: that
// message may have been deleted. Nor does a direct get, which any replica may answer.
func (r *Reader) more(ctx context.Context) (bool, error) {
	_, err := r.api.Next(ctx, r.stream, r.next, ">")
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	return err == nil, err
}
