package lane

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

const (
	pullBatch = 500     // messages asked for at a time
	pullBytes = 8 << 20 // and bytes, unless one message may be larger
	// behindFor is how long a consumer may lack what the leader has before it is replaced. R1 consumers land on
	// random peers, and one that is cut off from the leader goes on sending heartbeats.
	behindFor = 2 * time.Second
)

// pull is one consumer's life: one request outstanding, replaced when half of it is used.
type pull struct {
	r         *Reader
	name      string
	start     uint64
	clustered bool
	maxBytes  int
	msgs      chan *nats.Msg
	sub       *nats.Subscription

	consumer  uint64 // number of the consumer's last message
	wanted    int    // messages asked for and not yet come
	heartbeat time.Duration
	tail      bool      // nothing was behind the last message
	behind    time.Time // since when the leader has what we lack; zero when it has not
}

func newPull(r *Reader, info *jetstream.StreamInfo, start uint64) *pull {
	maxMsg := int(info.Config.MaxMsgSize)
	if maxMsg <= 0 {
		maxMsg = int(r.nc.MaxPayload())
	}
	return &pull{
		r: r, name: "delaybroker-" + nuid.Next(), start: start, clustered: info.Cluster != nil && info.Cluster.Name != "", // a single server names only itself
		// The server answers 409 for ever to a request that is smaller than the next message with its headers.
		maxBytes: max(pullBytes, maxMsg+8<<10),
		msgs:     make(chan *nats.Msg, 3*pullBatch),
		tail:     info.State.LastSeq <= r.read.Sequence || info.State.Msgs == 0,
	}
}

// open creates the consumer and listens to its inbox.
func (p *pull) open(ctx context.Context) error {
	sub, err := p.r.nc.ChanSubscribe(p.r.inbox+"."+nuid.Next(), p.msgs)
	if err != nil {
		return fmt.Errorf("subscribe to the inbox: %w", err)
	}
	p.sub = sub
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	_, err = p.r.js.CreateConsumer(ctx, p.r.lane.Stream, jetstream.ConsumerConfig{
		Name:              p.name,
		Description:       "delaybroker reads this lane",
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       p.start,
		AckPolicy:         jetstream.AckNonePolicy,
		MemoryStorage:     true,
		Replicas:          1,
		InactiveThreshold: inactiveThreshold,
	})
	if err != nil {
		return fmt.Errorf("create the consumer: %w", err)
	}
	return nil
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
		_ = p.r.js.DeleteConsumer(ctx, p.r.lane.Stream, p.name) // the threshold does it otherwise
	}
}

// run hands messages over until the consumer cannot be trusted any more, and says why.
func (p *pull) run(ctx context.Context, status <-chan nats.Status) error {
	if err := p.ask(); err != nil {
		return err
	}
	heard := time.Now()
	silence := time.NewTimer(p.patience())
	defer silence.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case s := <-status:
			if s != nats.CONNECTED {
				return errOffline
			}
		case m := <-p.msgs:
			if err := p.receive(ctx, m); err != nil {
				return err
			}
			heard = time.Now() // after receive, which may have waited for the owner
		case <-silence.C:
			if quiet := time.Since(heard); quiet >= p.patience() && len(p.msgs) == 0 {
				return errSilent
			}
			silence.Reset(max(p.patience()-time.Since(heard), time.Millisecond))
		}
	}
}

func (p *pull) patience() time.Duration { return p.heartbeat * 5 / 2 }

// ask requests another batch.
func (p *pull) ask() error {
	heartbeat, expires := Watch(p.r.lane.Delay, p.tail, p.clustered)
	n := pullBatch - p.wanted
	body, err := json.Marshal(struct {
		Batch     int           `json:"batch"`
		MaxBytes  int           `json:"max_bytes"`
		Expires   time.Duration `json:"expires"`
		Heartbeat time.Duration `json:"idle_heartbeat"`
	}{n, p.maxBytes, expires, heartbeat})
	if err != nil {
		return fmt.Errorf("encode the request: %w", err)
	}
	if err := p.r.nc.PublishRequest(p.r.api+"CONSUMER.MSG.NEXT."+p.r.lane.Stream+"."+p.name, p.sub.Subject, body); err != nil {
		return fmt.Errorf("ask for messages: %w", err)
	}
	p.heartbeat = heartbeat
	p.wanted += n
	return nil
}

func (p *pull) receive(ctx context.Context, m *nats.Msg) error {
	s, ok := parseStored(m)
	if !ok {
		return p.control(ctx, m)
	}
	if s.consumer <= p.consumer {
		return nil // of a request that was served twice, around a reconnect
	}
	if s.consumer != p.consumer+1 {
		return errLost
	}
	p.consumer = s.consumer
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
	status := m.Header.Get("Status")
	if status == "100" {
		if last, err := strconv.ParseUint(m.Header.Get("Nats-Last-Consumer"), 10, 64); err == nil && last > p.consumer {
			return errLost
		}
		return p.compare(ctx)
	}
	if left, err := strconv.Atoi(m.Header.Get("Nats-Pending-Messages")); err == nil {
		p.wanted = max(0, p.wanted-left)
	}
	description := m.Header.Get("Description")
	switch {
	case status == "408", status == "409" && ends(description):
		if p.wanted <= pullBatch/2 {
			return p.ask()
		}
		return nil
	case status == "":
		return nil // no server writes that
	}
	return fmt.Errorf("the server says %s %s", status, description)
}

// ends reports whether a 409 ends a request and not its consumer.
func ends(description string) bool {
	return strings.HasPrefix(description, "Message Size Exceeds MaxBytes") || strings.HasPrefix(description, "Batch Completed")
}

// compare asks the leader of a clustered stream whether we lack something.
func (p *pull) compare(ctx context.Context) error {
	if !p.clustered || !p.tail {
		return nil
	}
	_, sample, err := p.r.look(ctx)
	if err != nil {
		return err
	}
	if p.lags(sample.LastSeq, sample.Messages, time.Now()) {
		return errBehind
	}
	return nil
}

// lags reports whether the leader has had more than we were given for longer than behindFor.
func (p *pull) lags(last, messages uint64, now time.Time) bool {
	if messages == 0 || last <= p.r.read.Sequence {
		p.behind = time.Time{}
		return false
	}
	if p.behind.IsZero() {
		p.behind = now
	}
	return now.Sub(p.behind) >= behindFor
}
