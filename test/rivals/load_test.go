package rivals_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	bodySize = 256
	// outstanding bounds the publishes without an acknowledgement. A server that is too slow for a rate shows as a
	// lower rate, not as a queue.
	outstanding = 20_000
)

// load publishes, and counts the accepted messages.
type load struct {
	b        *testing.B
	nc       *nats.Conn
	js       jetstream.JetStream
	inbox    string
	accepted atomic.Int64
	refused  atomic.Int64
}

func newLoad(b *testing.B, nc *nats.Conn) *load {
	b.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		b.Fatal(err)
	}
	l := &load{b: b, nc: nc, js: js, inbox: nats.NewInbox()}
	sub, err := nc.Subscribe(l.inbox, func(m *nats.Msg) {
		if len(m.Data) == 0 || bytes.Contains(m.Data, []byte(`"error"`)) {
			if l.refused.Add(1) == 1 {
				b.Logf("refused: %s %v", m.Data, m.Header)
			}
			return
		}
		l.accepted.Add(1)
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		b.Fatal(err)
	}
	return l
}

// stream creates a stream for the subjects.
func (l *load) stream(cfg jetstream.StreamConfig) {
	l.b.Helper()
	if _, err := l.js.CreateStream(context.Background(), cfg); err != nil {
		l.b.Fatalf("create stream %s: %v", cfg.Name, err)
	}
}

// message makes the n-th message at the present time. Its reply subject and body are set by the caller.
type message func(n int) *nats.Msg

// run publishes count messages at a rate, or as fast as it can at the rate 0, awaits their acknowledgements, and
// returns the rate it achieved.
func (l *load) run(rate, count int, next message) float64 {
	l.b.Helper()
	const pace = time.Millisecond
	l.accepted.Store(0)
	l.refused.Store(0)
	start := time.Now()
	for n := 0; n < count; {
		most := count
		if rate > 0 {
			most = min(count, int(time.Since(start)*time.Duration(rate)/time.Second))
		}
		for ; n < most && int64(n)-l.answered() < outstanding; n++ {
			m := next(n)
			m.Reply, m.Data = l.inbox, make([]byte, bodySize)
			binary.BigEndian.PutUint64(m.Data, uint64(n))
			if err := l.nc.PublishMsg(m); err != nil {
				l.b.Fatalf("publish: %v", err)
			}
		}
		time.Sleep(pace)
	}
	took := time.Since(start)
	for deadline := time.Now().Add(10 * time.Second); l.answered() < int64(count); {
		if time.Now().After(deadline) {
			l.b.Fatalf("%d of %d publishes answered 10s after the last", l.answered(), count)
		}
		time.Sleep(pace)
	}
	if refused := l.refused.Load(); refused > 0 {
		l.b.Errorf("%d of %d publishes refused", refused, count)
	}
	return float64(count) / took.Seconds()
}

func (l *load) answered() int64 { return l.accepted.Load() + l.refused.Load() }

// arrival is a message at its target: when it was stored, when it was due, and its number.
type arrival struct {
	stored, due time.Time
	number      uint64
}

// await waits until a subject of a stream holds this many messages, or no more arrive, and returns how many it holds.
func (l *load) await(stream, subject string, want int) int {
	l.b.Helper()
	const poll, patience = 100 * time.Millisecond, 15 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	s, err := l.js.Stream(ctx, stream)
	if err != nil {
		l.b.Fatalf("look at %s: %v", stream, err)
	}
	there, since := 0, time.Now()
	for there < want && time.Since(since) < patience {
		info, err := s.Info(ctx, jetstream.WithSubjectFilter(subject))
		if err != nil {
			l.b.Fatalf("look at %s: %v", stream, err)
		}
		if now := int(info.State.Subjects[subject]); now > there {
			there, since = now, time.Now()
		}
		time.Sleep(poll)
	}
	return there
}

// arrivals reads this many messages of a subject.
func (l *load) arrivals(stream, subject string, there int, due func(nats.Header) time.Time) []arrival {
	l.b.Helper()
	consumer, err := l.js.OrderedConsumer(context.Background(), stream,
		jetstream.OrderedConsumerConfig{FilterSubjects: []string{subject}})
	if err != nil {
		l.b.Fatalf("read %s: %v", stream, err)
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(2000))
	if err != nil {
		l.b.Fatalf("read %s: %v", stream, err)
	}
	defer messages.Stop()
	all := make([]arrival, 0, there)
	for range there {
		m, err := messages.Next()
		if err != nil {
			l.b.Fatalf("read %s: %v", stream, err)
		}
		meta, err := m.Metadata()
		if err != nil {
			l.b.Fatalf("read %s: %v", stream, err)
		}
		all = append(all, arrival{stored: meta.Timestamp, due: due(m.Headers()),
			number: binary.BigEndian.Uint64(m.Data())})
	}
	return all
}
