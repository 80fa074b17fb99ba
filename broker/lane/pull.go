package lane

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/streams"
)

const (
	// lagTimeout is the time after which the reader replaces a consumer that lacks a message that the leader has.
	// nats-server places a consumer with one replica on any server of the stream. If that server is cut off from the
	// leader, the consumer lacks new messages, but still sends heartbeats.
	lagTimeout      = 2 * time.Second
	compareInterval = 5 * time.Second // see mustCompare
	// ConsumerPrefix is the prefix of the names of the readers' consumers.
	ConsumerPrefix = "delaybroker-"
)

// pull holds the consumer of one epoch and the requests to that consumer.
type pull struct {
	r         *Reader
	name      string // of the consumer
	start     uint64 // the stream sequence at which the consumer starts
	clustered bool   // in a cluster, or behind a leaf node: see leaderIsRemote
	msgs      chan *nats.Msg
	requests  requests

	batch           int // messages in one request: pullBatch, or the server's limit
	maxMessageBytes int // bytes of a request with room for the largest message that the stream allows

	lastConsumerSeq uint64    // consumer sequence of the last message received
	nextIsLarge     bool      // the next message may not fit into a request of ReaderConfig.Buffer bytes
	tail            bool      // pending is zero; before the first message: the stream had no unread message
	pending         uint64    // Message.Pending of the last message received; zero before the first
	inBatchWindow   bool      // messages collect at the tail: the reader sends no request until the window ends
	hasAnswered     bool      // the consumer has sent a message or a heartbeat since its creation or the last Probe
	comparedAt      time.Time // when the reader last asked the leader whether the consumer lacks a message
	lackingSince    time.Time // the time since which the consumer has lacked a message; zero if it lacks none
}

func newPull(r *Reader, info *jetstream.StreamInfo, start uint64) *pull {
	maxMsg := int(info.Config.MaxMsgSize)
	if maxMsg <= 0 {
		maxMsg = int(r.cfg.Conn.MaxPayload())
	}
	return &pull{
		r: r, name: ConsumerPrefix + rand.Text(), start: start,
		clustered:       leaderIsRemote(info, r.cfg.Conn.ConnectedServerName()),
		batch:           pullBatch,
		maxMessageBytes: maxMsg + 8<<10,
		msgs:            make(chan *nats.Msg, (maxRequests+1)*pullBatch), // room for requested and control messages
		tail:            info.State.LastSeq < r.knowledge.next || info.State.Msgs == 0,
	}
}

// leaderIsRemote reports whether the stream's leader can be lost while the reader's connection to server stays up: in a
// cluster, and behind a leaf node. A single server reports itself as the leader.
func leaderIsRemote(info *jetstream.StreamInfo, server string) bool {
	return info.Cluster != nil && (info.Cluster.Name != "" || info.Cluster.Leader != server)
}

// open subscribes to the inbox and creates the consumer.
func (p *pull) open(ctx context.Context) error {
	if err := p.requests.subscribe(p.r.cfg.Conn, p.r.cfg.Inbox, p.msgs); err != nil {
		return err
	}
	var filters []string // a list even for one filter: the API's field for a single filter needs another permission
	if p.r.cfg.Filter != allSubjects {
		filters = []string{p.r.cfg.Filter}
	}
	return p.r.request(ctx, func(ctx context.Context) error {
		_, err := createConsumer(ctx, p.r.cfg.JetStream, p.r.cfg.Stream, jetstream.ConsumerConfig{
			FilterSubjects:    filters,
			Name:              p.name,
			Description:       "delaybroker reads this lane",
			DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
			OptStartSeq:       p.start,
			AckPolicy:         jetstream.AckNonePolicy,
			MemoryStorage:     true,
			InactiveThreshold: streams.InactiveThreshold,
		})
		if err != nil {
			return fmt.Errorf("create the consumer: %w", err)
		}
		return nil
	})
}

// close ends the subscriptions. If ctx has ended and the connection is up, close also deletes the consumer. Otherwise
// the server deletes the consumer after streams.InactiveThreshold.
func (p *pull) close(ctx context.Context) {
	p.requests.unsubscribe()
	if ctx.Err() != nil && p.r.cfg.Conn.IsConnected() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = p.r.cfg.JetStream.DeleteConsumer(ctx, p.r.cfg.Stream, p.name) // on failure, the server deletes it later
	}
}

// run hands messages to the owner until ctx ends or the consumer must be replaced, and returns the reason.
func (p *pull) run(ctx context.Context) error {
	if err := p.ask(); err != nil {
		return err
	}
	receivedAt := time.Now()
	timeout := p.silenceTimeout()
	silence := time.NewTimer(timeout)
	defer silence.Stop()
	windowEnd := time.NewTimer(0)
	defer windowEnd.Stop()
	var watch <-chan time.Time // nil without a watch
	watchTimer, interval := time.NewTimer(max(p.watchInterval(), minWatch)), p.watchInterval()
	defer watchTimer.Stop()
	if interval > 0 {
		watch = watchTimer.C
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case s := <-p.r.status:
			if s != nats.CONNECTED {
				return ErrOffline
			}
		case <-p.r.probeSignal:
			p.hasAnswered, p.inBatchWindow = false, false
			p.requests.endAll()
			if err := p.ask(); err != nil {
				return err
			}
			receivedAt, timeout = time.Now(), p.silenceTimeout()
			silence.Reset(timeout)
		case epoch := <-p.r.invalidEpochs:
			if epoch == p.r.epoch {
				return p.r.forget()
			}
		case <-watch:
			if p.tail && p.hasAnswered && len(p.msgs) == 0 {
				if err := p.askLeader(ctx, false); err != nil {
					return err
				}
			}
			watchTimer.Reset(interval)
			if !p.lackingSince.IsZero() {
				watchTimer.Reset(lagTimeout)
			}
		case <-windowEnd.C:
			p.inBatchWindow = false
			if err := p.ask(); err != nil {
				return err
			}
		case m := <-p.msgs:
			inWindow := p.inBatchWindow
			if err := p.receive(ctx, m); err != nil {
				return err
			}
			if p.inBatchWindow && !inWindow {
				windowEnd.Reset(p.r.cfg.BatchWindow)
			}
			receivedAt = time.Now() // after receive, which may have waited for the owner
			if d := p.silenceTimeout(); d < timeout {
				timeout = d
				silence.Reset(timeout)
			}
		case <-silence.C:
			if time.Since(receivedAt) >= p.silenceTimeout() && len(p.msgs) == 0 {
				return ErrSilent
			}
			timeout = max(p.silenceTimeout()-time.Since(receivedAt), time.Millisecond)
			silence.Reset(timeout)
		}
	}
}

// silenceTimeout returns the time after which the reader replaces a consumer that sends neither messages nor
// heartbeats. It uses the heartbeat that a request would have now, not that of the latest request: when the latest
// request has ended, an earlier one with a slower heartbeat may still be open.
func (p *pull) silenceTimeout() time.Duration {
	heartbeat, _ := p.requestTimes()
	return heartbeat * 5 / 2
}

// requestTimes returns the heartbeat and the lifetime of the next request. If the broker has no permission to pull, the
// server does not answer, and the reader notices that only by the missing heartbeats. So both times are short until the
// consumer has answered.
func (p *pull) requestTimes() (heartbeat, expires time.Duration) {
	if !p.hasAnswered {
		return quickHeartbeat, 2 * time.Second
	}
	return requestTimes(p.r.cfg.Delay, p.tail, p.clustered)
}

// ask sends a request for another batch, if a request is needed. If the lane has a batch window, and fewer than
// batch messages follow the last one received, ask sends a request only if no request is open. This request has
// body.NoWait.
func (p *pull) ask() error {
	noWait := p.hasAnswered && p.r.cfg.BatchWindow > 0 && p.pending < uint64(p.batch)
	place, ok := p.requests.nextPlace(p.tail, p.nextIsLarge)
	if !ok || p.inBatchWindow || p.requests.covers(p.pending) || noWait && p.requests.anyOpen() {
		return nil
	}
	heartbeat, expires := p.requestTimes()
	return p.requests.send(p.r.cfg.Conn, p.r.api.API+".CONSUMER.MSG.NEXT."+p.r.cfg.Stream+"."+p.name, place,
		body{Batch: p.batch, MaxBytes: p.bytes(), NoWait: noWait, Expires: expires, Heartbeat: heartbeat})
}

// bytes returns the maximum number of bytes of the next request. If the next message with its headers is larger, the
// server answers 409 and sends no message.
func (p *pull) bytes() int {
	if p.nextIsLarge {
		return max(p.maxMessageBytes, p.r.cfg.Buffer)
	}
	return p.r.cfg.Buffer
}

// receive handles a message that arrived for a request: a stored message or a control message.
func (p *pull) receive(ctx context.Context, m *nats.Msg) error {
	q := p.requests.lookup(m)
	s, ok := parseStored(m, p.requests.inbox, p.r.cfg.Stream, p.name)
	if !ok {
		return p.control(ctx, q, m)
	}
	if s.consumerSeq != p.lastConsumerSeq+1 {
		return errLost
	}
	p.lastConsumerSeq = s.consumerSeq
	p.hasAnswered = true
	p.nextIsLarge = p.nextIsLarge && s.Size > p.r.cfg.Buffer/2
	p.lackingSince = time.Time{}
	p.r.endTrouble()
	p.tail, p.pending = s.Pending == 0, s.Pending
	q.messagesLeft--
	q.bytesLeft -= m.Size()
	if err := p.ask(); err != nil {
		return err
	}
	return p.r.accept(ctx, s)
}

// control handles m, which arrived for the place q and is not a stored message. A client may have forged m. If m is for
// an earlier request in q, control ignores m.
func (p *pull) control(ctx context.Context, q *place, m *nats.Msg) error {
	if m.Subject != q.reply {
		return nil
	}
	c := parseControl(m.Header)
	switch {
	case c.kind == noControl:
		return nil
	case c.kind == heartbeat && c.seqValid && c.lastConsumerSeq != p.lastConsumerSeq:
		return errLost
	case c.kind == heartbeat:
		p.hasAnswered = true
		if skipped := c.position >= p.r.knowledge.next; p.mustCompare(skipped, time.Now()) {
			return p.askLeader(ctx, skipped)
		}
		return nil
	case c.kind == requestFull && (c.bytesLeft == 0 || c.bytesLeft >= p.maxMessageBytes):
		return errTooSmall // the next epoch reads the stream's MaxMsgSize again
	case c.kind == requestFull:
		// If the request has delivered messages, another request of its size may have room for the message.
		p.nextIsLarge = p.nextIsLarge || c.bytesLeft >= p.r.cfg.Buffer
	case c.kind == batchTooLarge && c.limit < p.batch: // otherwise a client has forged the message
		p.batch = c.limit
	case c.kind == batchTooLarge, c.kind == consumerEnded:
		return fmt.Errorf("%w: %s", ErrEnded, c.status)
	}
	q.end()
	p.inBatchWindow = p.inBatchWindow || q.noWait
	return p.ask()
}

// mustCompare reports whether the reader must ask the leader, after a heartbeat, whether the consumer lacks a message.
//
// The reader must ask after every heartbeat in four cases:
//
//   - The consumer has skipped sequences: its position is after sequences that the reader has not read. Usually, the
//     messages with these sequences were deleted. But the server may have created the consumer again: if the first
//     messages of the new consumer were lost on the wire, the heartbeat may have the expected consumer sequence by
//     chance.
//   - Messages follow the last message read, although the consumer is idle.
//   - The lane is in trouble: only the leader's answer ends it.
//   - In a cluster, the consumer lacked a message when the reader last asked, and has sent no message since.
//
// At the tail of a lane in a cluster, the reader must also ask if it has not asked for compareInterval. Here, "in a
// cluster" includes a stream behind a leaf node.
func (p *pull) mustCompare(skipped bool, now time.Time) bool {
	return skipped || !p.tail || p.r.trouble.Load() != nil ||
		p.clustered && (!p.lackingSince.IsZero() || now.Sub(p.comparedAt) >= compareInterval)
}

// askLeader asks the leader whether the consumer lacks a message.
func (p *pull) askLeader(ctx context.Context, skipped bool) error {
	p.comparedAt = time.Now()
	lacking, err := p.r.hasMore(ctx)
	if err != nil {
		return err
	}
	switch {
	case lacking && skipped:
		return errLost
	case p.lags(lacking, time.Now()):
		return p.whyBehind(ctx)
	case !lacking:
		p.r.endTrouble()
	}
	return nil
}

// lags records whether the consumer lacks a message that the leader has. It reports whether the consumer has lacked a
// message for lagTimeout.
func (p *pull) lags(lacking bool, now time.Time) bool {
	if !lacking {
		p.lackingSince = time.Time{}
		return false
	}
	if p.lackingSince.IsZero() {
		p.lackingSince = now
	}
	return now.Sub(p.lackingSince) >= lagTimeout
}
