package journal

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/acks"
	"delaybroker/broker/lane"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// kit has a server with the journal's stream, and a connection to the server.
type kit struct {
	testing.TB
	s      *natstest.Server
	conn   *nats.Conn
	js     jetstream.JetStream
	policy message.Policy
	room   int // WriterConfig.MaxWaiting of the writers
}

func newKit(t testing.TB, s *natstest.Server) *kit {
	t.Helper()
	names, err := message.NewNames("delay")
	if err != nil {
		t.Fatal(err)
	}
	k := &kit{TB: t, s: s, conn: s.Connect(), room: 8 << 20}
	k.js = s.JetStream(k.conn)
	k.policy = message.Policy{Names: names, Keys: message.NewKeys([]string{"a secret of sixteen"})}
	return k
}

// create creates the stream.
func (k *kit) create() {
	k.Helper()
	if _, err := k.js.CreateStream(context.Background(), jetstream.StreamConfig{
		Name: k.policy.Names.JournalStream(), Subjects: []string{k.policy.Names.JournalSubject()}, MaxAge: 240 * time.Hour,
	}); err != nil {
		k.Fatal(err)
	}
}

// writer returns a writer of an instance that runs until stop is called.
func (k *kit) writer(instance string) (w *Writer, stop func()) {
	k.Helper()
	conn := k.s.Connect()
	box, err := acks.New(conn, nats.NewInbox())
	if err != nil {
		k.Fatal(err)
	}
	w = NewWriter(WriterConfig{
		Instance: instance, Stream: k.policy.Names.JournalStream(), Subject: k.policy.Names.JournalSubject(),
		MaxWaiting: k.room, MaxPayload: int(conn.MaxPayload()), Grace: 2 * time.Second,
		Log: slog.New(slog.NewTextHandler(k.Output(), nil)), Seal: k.policy.Keys.Seal,
	})
	answers, end := context.WithCancel(context.Background())
	ctx, cancel := context.WithCancel(context.Background())
	var running, writing sync.WaitGroup
	running.Go(func() { box.Run(answers) })
	writing.Go(func() { w.Run(ctx, box) })
	stop = sync.OnceFunc(func() {
		w.BeginStop()
		cancel()
		writing.Wait()
		end()
		running.Wait()
	})
	k.Cleanup(stop)
	return w, stop
}

// put stores a batch of records with the given head.
func (k *kit) put(h head, all ...Record) {
	k.Helper()
	var b records
	for _, r := range all {
		b.Add(r)
	}
	k.store(b.body(h, nil))
}

// store stores a sealed message.
func (k *kit) store(body []byte) {
	k.Helper()
	subject := k.policy.Names.JournalSubject()
	if _, err := k.js.PublishMsg(context.Background(), &nats.Msg{
		Subject: subject, Header: nats.Header{message.HeaderSeal: {k.policy.Keys.Seal(subject, body)}}, Data: body,
	}); err != nil {
		k.Fatal(err)
	}
}

// search returns the entries found, and the report.
func (k *kit) search(q Query) ([]Entry, Report) {
	k.Helper()
	var all []Entry
	r, err := k.open().Search(context.Background(), q, func(e Entry) error {
		all = append(all, e)
		return nil
	})
	if err != nil {
		k.Fatal(err)
	}
	return all, r
}

func (k *kit) open() Journal {
	return Journal{lane.Scan{Conn: k.conn, JetStream: k.js, APIPrefix: "$JS.API"}, k.policy}
}

// batches returns the heads, the times and the sizes of the stored batches.
func (k *kit) batches() (heads []head, at []time.Time, sizes []int) {
	k.Helper()
	st, err := k.js.Stream(context.Background(), k.policy.Names.JournalStream())
	if err != nil {
		k.Fatal(err)
	}
	for seq := uint64(1); seq <= st.CachedInfo().State.LastSeq; seq++ {
		m, err := st.GetMsg(context.Background(), seq)
		if err != nil {
			k.Fatal(err)
		}
		h, _, ok := parseHead(m.Data)
		if !ok {
			k.Fatalf("message %d has no valid head", seq)
		}
		heads, at, sizes = append(heads, h), append(at, m.Time), append(sizes, len(m.Data))
	}
	return heads, at, sizes
}

// record returns the record with number n.
func record(n int) Record {
	id := message.ID{Stream: "DELAY_1s", Sequence: uint64(n) + 1, At: time.Now().Add(-time.Second)}
	return Record{ID: id.String(), Target: "orders.a", At: time.Now().UTC(), Due: id.At.Add(time.Second).UTC()}
}
