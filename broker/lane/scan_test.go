package lane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

func (r *rig) scan() Scan {
	return Scan{Conn: r.nc, JetStream: r.js, APIPrefix: "$JS.API", Stream: r.spec.Stream, Observer: "test"}
}

// scanned returns the sequences of a scan.
func (r *rig) scanned(s Scan) ([]uint64, error) {
	r.t.Helper()
	var sequences []uint64
	for m, err := range s.All(context.Background()) {
		if err != nil {
			return sequences, err
		}
		if got, want := m.Subject, "delay.30m.x"; got != want {
			r.t.Errorf("sequence %d is on %s, want %s", m.Sequence, got, want)
		}
		sequences = append(sequences, m.Sequence)
	}
	return sequences, nil
}

func TestScan(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		r.publish(1, 3)
		time.Sleep(time.Hour)
		since := time.Now()
		r.publish(4, 5)
		for _, tt := range []struct {
			name string
			edit func(*Scan)
			want []uint64
		}{
			{"all", func(*Scan) {}, []uint64{1, 2, 3, 4, 5}},
			{"headers only", func(s *Scan) { s.HeadersOnly = true }, []uint64{1, 2, 3, 4, 5}},
			{"from", func(s *Scan) { s.From = 4 }, []uint64{4, 5}},
			{"to", func(s *Scan) { s.To = 2 }, []uint64{1, 2}},
			{"from and to", func(s *Scan) { s.From, s.To = 2, 3 }, []uint64{2, 3}},
			{"in small batches", func(s *Scan) { s.Batch = 2 }, []uint64{1, 2, 3, 4, 5}},
			{"backwards", func(s *Scan) { s.From, s.To = 3, 2 }, nil},
			{"since", func(s *Scan) { s.Since = since }, []uint64{4, 5}},
			{"nothing there", func(s *Scan) { s.From = 6 }, nil},
			{"filtered out", func(s *Scan) { s.Filters = []string{"delay.30m.y", "delaysys.hop.30m.>"} }, nil},
			{"filtered in", func(s *Scan) { s.Filters = []string{"delay.30m.*"} }, []uint64{1, 2, 3, 4, 5}},
		} {
			scan := r.scan()
			tt.edit(&scan)
			if got, err := r.scanned(scan); err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("%s: got %v and %v, want %v", tt.name, got, err, tt.want)
			}
		}
		for m, err := range r.scan().All(context.Background()) {
			if err != nil || m.Sequence != 1 || m.Pending != 4 {
				t.Errorf("the first: got %+v and %v", m, err)
			}
			break
		}
		if names := r.consumers(); len(names) > 0 {
			t.Errorf("consumers are not deleted: %v", names)
		}
	})
}

// TestScanInBatches scans more messages, and more bytes, than fit into one batch.
func TestScanInBatches(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		r.burst(1, 2*scanBatch+1)
		synctest.Wait() // until all messages are stored
		got, err := r.scanned(r.scan())
		if err != nil || len(got) != 2*scanBatch+1 {
			t.Errorf("got %d and %v, want %d", len(got), err, 2*scanBatch+1)
		}
		r.purge()
		const large = 12 // messages of 900 KB, in batches of 4 MiB
		for range large {
			r.store(&nats.Msg{Subject: "delay.30m.x", Data: make([]byte, 900_000)})
		}
		if got, err := r.scanned(r.scan()); err != nil || len(got) != large {
			t.Errorf("got %v and %v, want %d", got, err, large)
		}
	})
}

// TestScanIgnoresForgedMessages: three kinds of messages do not end a scan: stored messages that look like control
// messages, forged control messages in its inbox, and control messages for another batch. Forged stored messages need
// no test: nats-server accepts no $JS.ACK reply from a client.
func TestScanIgnoresForgedMessages(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		for _, status := range []string{"100", "404", "408", "409", "503"} {
			r.store(&nats.Msg{Subject: "delay.30m.x",
				Header: nats.Header{"Status": {status}, "Description": {"Consumer Deleted"}}})
		}
		r.publish(6, 6)
		forger := s.Connect(nats.Name("forger"))
		tap := s.Connect(nats.Name("tap")) // learns the inboxes, by a permission that only the broker should have
		if _, err := tap.Subscribe("$JS.API.CONSUMER.MSG.NEXT.>", func(m *nats.Msg) {
			for _, forged := range []*nats.Msg{
				{Subject: m.Reply[:strings.LastIndexByte(m.Reply, '.')] + ".0", Header: nats.Header{"Status": {"404"}}},
				{Subject: m.Reply, Data: []byte("no status")},
			} {
				if err := forger.PublishMsg(forged); err != nil {
					t.Error(err)
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
		natstest.Flush(t, tap)
		if got, err := r.scanned(r.scan()); err != nil || !slices.Equal(got, []uint64{1, 2, 3, 4, 5, 6}) {
			t.Errorf("got %v and %v, want 1 to 6", got, err)
		}
	})
}

// TestScanBeforeConsumerIsKnown: on a cluster, the server of the connection answers requests with 503 until it knows
// the consumer on another server.
func TestScanBeforeConsumerIsKnown(t *testing.T) {
	for _, tt := range []struct {
		name    string
		unknown time.Duration
		want    error
	}{
		{"for a second", time.Second, nil},
		{"forever", time.Hour, errNoServer},
	} {
		t.Run(tt.name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				r := newRig(t, s)
				r.publish(1, 5)
				start := time.Now()
				natstest.Proxy(t, s, func(question string, m *nats.Msg) bool {
					unknown := strings.HasPrefix(question, "CONSUMER.MSG.NEXT.") && time.Since(start) < tt.unknown
					if unknown {
						if err := r.nc.PublishMsg(&nats.Msg{Subject: m.Reply, Header: nats.Header{"Status": {"503"}}}); err != nil {
							t.Error(err)
						}
					}
					return unknown
				})
				scan := r.scan()
				scan.APIPrefix, scan.Batch = natstest.ProxyAPI, 2
				got, err := r.scanned(scan)
				if !errors.Is(err, tt.want) || err == nil && !slices.Equal(got, []uint64{1, 2, 3, 4, 5}) {
					t.Errorf("got %v and %v, want %v", got, err, tt.want)
				}
				if took := time.Since(start); took < min(tt.unknown, scanTimeout) || took > scanTimeout+time.Second {
					t.Errorf("the scan took %v", took)
				}
			})
		})
	}
}

// TestScanRepeatsCreation: a scan repeats the request to create its consumer if the request is not answered. On a
// cluster, a leader that steps down may not answer.
func TestScanRepeatsCreation(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		r.publish(1, 5)
		lost := false
		natstest.Proxy(t, s, func(question string, _ *nats.Msg) bool {
			first := !lost && strings.HasPrefix(question, "CONSUMER.CREATE.")
			lost = lost || first
			return first
		})
		scan := r.scan()
		var err error
		if scan.JetStream, err = jetstream.NewWithAPIPrefix(r.nc, natstest.ProxyAPI); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if got, err := r.scanned(scan); err != nil || !slices.Equal(got, []uint64{1, 2, 3, 4, 5}) {
			t.Errorf("got %v and %v, want 1 to 5", got, err)
		}
		if took := time.Since(start); took != createTimeout || !lost {
			t.Errorf("the scan took %v, want %v; a request was lost: %t", took, createTimeout, lost)
		}
	})
}

// TestScanFails: a scan that does not reach the end returns an error.
func TestScanFails(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		r.burst(1, scanBatch+1)
		synctest.Wait()
		n := 0
		var failed error
		for _, err := range r.scan().All(context.Background()) {
			if failed = err; err != nil {
				break
			}
			if n++; n == scanBatch {
				r.deleteConsumers()
			}
		}
		if failed == nil || n != scanBatch {
			t.Errorf("without a consumer: got %d and %v, want an error after %d", n, failed, scanBatch)
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		cause := errors.New("enough")
		n = 0
		for _, err := range r.scan().All(ctx) {
			if failed = err; err != nil {
				break
			}
			if n++; n == 1 {
				cancel(cause)
			}
		}
		if !errors.Is(failed, cause) {
			t.Errorf("interrupted: got %v, want %v", failed, cause)
		}
		missing := r.scan()
		missing.Stream = "DELAY_99m"
		if _, err := r.scanned(missing); err == nil || !strings.Contains(fmt.Sprint(err), "stream not found") {
			t.Errorf("no stream: got %v", err)
		}
		s.Stop()
		if _, err := r.scanned(r.scan()); err == nil {
			t.Error("no server: got no error")
		}
		s.Start()
	})
}

// TestScanCounts: Count counts the messages of a scan, without deleted messages, and deletes its consumer.
func TestScanCounts(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		r.publish(1, 3)
		time.Sleep(time.Hour)
		since := time.Now()
		r.publish(4, 9)
		st, err := r.js.Stream(context.Background(), r.spec.Stream)
		if err != nil {
			t.Fatal(err)
		}
		for _, seq := range []uint64{2, 5} {
			if err := st.DeleteMsg(context.Background(), seq); err != nil {
				t.Fatal(err)
			}
		}
		for _, tt := range []struct {
			name string
			edit func(*Scan)
			want uint64
		}{
			{"all", func(*Scan) {}, 7},
			{"since", func(s *Scan) { s.Since = since }, 5},
			{"since before all", func(s *Scan) { s.Since = since.Add(-24 * time.Hour) }, 7},
			{"since later", func(s *Scan) { s.Since = since.Add(24 * time.Hour) }, 0},
			{"from a deleted one", func(s *Scan) { s.From = 5 }, 4},
			{"of another subject", func(s *Scan) { s.Filters = []string{"delay.30m.nobody"} }, 0},
			{"of some subjects", func(s *Scan) { s.Filters = []string{"delay.30m.x", "delaysys.hop.30m.>"} }, 7},
		} {
			scan := r.scan()
			tt.edit(&scan)
			if got, err := scan.Count(context.Background()); err != nil || got != tt.want {
				t.Errorf("%s: got %d and %v, want %d", tt.name, got, err, tt.want)
			}
		}
		if names := r.consumers(); len(names) > 0 {
			t.Errorf("consumers are not deleted: %v", names)
		}
		missing := r.scan()
		missing.Stream = "DELAY_99m"
		if n, err := missing.Count(context.Background()); err == nil {
			t.Errorf("no stream: got %d", n)
		}
	})
}
