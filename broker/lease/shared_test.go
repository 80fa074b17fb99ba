package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/test/natstest"
)

// settle is the maximum time to pass a lane from one instance to another: some rounds, each after a pause.
const settle = 20 * time.Millisecond

var meeting = Subjects{Stream: "OWNERS", All: "sys.owners.>", Table: "sys.owners.table", Beat: "sys.owners.beat.",
	Call: "ctl.owners"}

// peer is an instance whose workers only hold their leases.
type peer struct {
	*Shared
	t      *testing.T
	nc     *nats.Conn
	stop   func() // cleanly
	crash  func()
	mu     sync.Mutex
	leases map[string]Lease
	ready  map[string]bool
	stuck  map[string]bool // loops that are stuck
	lost   int             // leases that ended without a request
	next   uint64          // the cursor to release with
}

type option func(*SharedConfig)

func named(name string) option { return func(c *SharedConfig) { c.Name = name } }
func creating(js jetstream.JetStream) option {
	return func(c *SharedConfig) { c.Create = func(context.Context) error { return makeStream(js) } }
}

func makeStream(js jetstream.JetStream) error {
	_, err := js.CreateStream(context.Background(),
		jetstream.StreamConfig{Name: meeting.Stream, Subjects: []string{meeting.All}, MaxMsgsPerSubject: 1})
	return err
}

func lanes(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("L%d", i))
	}
	return all
}

func startPeer(t *testing.T, s *natstest.Server, lanes []string, options ...option) *peer {
	t.Helper()
	cfg := SharedConfig{
		Conn: s.Connect(nats.ReconnectBufSize(-1)), APIPrefix: "$JS.API", Subjects: meeting, MaxOwners: 3, Host: "h",
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	for _, o := range options {
		o(&cfg)
	}
	nc := cfg.Conn
	p := &peer{Shared: NewShared(cfg), t: t, nc: nc, leases: make(map[string]Lease), ready: make(map[string]bool),
		stuck: make(map[string]bool)}
	working, stop := context.WithCancel(context.Background())
	base, end := context.WithCancel(context.Background())
	var loops, run sync.WaitGroup
	for _, lane := range lanes {
		loops.Go(func() { p.own(working, lane) })
	}
	run.Go(func() { p.Run(base) })
	p.stop = sync.OnceFunc(func() {
		stop()
		loops.Wait()
		end()
		run.Wait()
		nc.Close()
	})
	p.crash = func() { nc.Close(); p.stop() }
	t.Cleanup(p.stop)
	return p
}

// own owns a lane whenever possible.
func (p *peer) own(ctx context.Context, lane string) {
	for {
		lease, err := p.Acquire(ctx, lane, func() { p.mu.Lock(); p.ready[lane] = true; p.mu.Unlock() })
		if err != nil {
			return
		}
		p.mu.Lock()
		p.leases[lane], p.ready[lane] = lease, true
		p.mu.Unlock()
		for working := true; working; {
			p.mu.Lock()
			beats := lease.Beats()
			if p.stuck[lane] {
				beats = nil
			}
			p.mu.Unlock()
			select {
			case <-beats:
			case <-lease.Done():
				working = false
			case <-ctx.Done():
				working = false
			}
		}
		p.mu.Lock()
		stuck := p.stuck[lane]
		if ctx.Err() == nil && !lease.Held() {
			p.lost++
		}
		p.mu.Unlock()
		if stuck { // it does not notice that it should stop, and acquires no other lease
			<-ctx.Done()
			return
		}
		p.mu.Lock()
		delete(p.leases, lane)
		at := Cursor{Next: p.next}
		p.mu.Unlock()
		giveUp, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		if err := lease.Release(giveUp, at); err != nil && p.nc.IsConnected() {
			p.t.Errorf("release %s: %v", lane, err)
		}
		cancel()
	}
}

// holds returns the lanes that a peer may act on.
func (p *peer) holds() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for lane, l := range p.leases {
		if l.Held() {
			all = append(all, lane)
		}
	}
	slices.Sort(all)
	return all
}

// all returns the leases of a peer.
func (p *peer) all() map[string]Lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.leases)
}

// checkHolds compares the numbers of lanes that the peers hold, and fails if two hold one lane.
func checkHolds(t *testing.T, want string, peers ...*peer) {
	t.Helper()
	synctest.Wait()
	holder, counts := make(map[string]int), []string{}
	for n, p := range peers {
		held := p.holds()
		counts = append(counts, fmt.Sprint(len(held)))
		for _, lane := range held {
			if other, twice := holder[lane]; twice {
				t.Errorf("%s is held by %d and by %d", lane, other, n)
			}
			holder[lane] = n
		}
	}
	if got := strings.Join(counts, " "); got != want {
		t.Errorf("peers hold %s lanes, want %s", got, want)
	}
}

func meet(t *testing.T, f func(t *testing.T, s *natstest.Server, js jetstream.JetStream)) {
	t.Helper()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		js := s.JetStream(s.Connect())
		if err := makeStream(js); err != nil {
			t.Fatal(err)
		}
		f(t, s, js)
	})
}

// TestAloneCostsLittle: an instance that is alone owns everything at once, and then sends one request every ten
// seconds.
func TestAloneCostsLittle(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
		a := startPeer(t, s, lanes(24))
		time.Sleep(settle)
		checkHolds(t, "24", a)
		sent := func() uint64 { return a.nc.Stats().OutMsgs }
		before, stored := sent(), lastSequence(t, js)
		if before > 20 {
			t.Errorf("to begin with it sent %d messages", before)
		}
		time.Sleep(time.Hour)
		if got := sent() - before; got > 360 {
			t.Errorf("in an hour it sent %d messages, want 360", got)
		}
		if got := lastSequence(t, js) - stored; got != 0 {
			t.Errorf("in an hour it stored %d messages, want none", got)
		}
		checkHolds(t, "24", a)
	})
}

// TestJoinWaitsAndMovesFewest: after a join no lane moves for 5 s, and then as few as possible.
func TestJoinWaitsAndMovesFewest(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := startPeer(t, s, lanes(10))
		time.Sleep(time.Minute)
		b := startPeer(t, s, lanes(10))
		time.Sleep(5*time.Second - time.Millisecond)
		checkHolds(t, "10 0", a, b)
		time.Sleep(settle)
		checkHolds(t, "5 5", a, b)
		kept := b.holds()
		c := startPeer(t, s, lanes(10))
		time.Sleep(settle) // so that it is the first of the two
		d := startPeer(t, s, lanes(10))
		time.Sleep(10 * time.Second)
		checkHolds(t, "4 3 3 0", a, b, c, d)
		for _, lane := range b.holds() {
			if !slices.Contains(kept, lane) {
				t.Errorf("%s moved although it need not", lane)
			}
		}
		d.mu.Lock()
		ready := len(d.ready)
		d.mu.Unlock()
		if ready != 10 {
			t.Errorf("who stands by is ready for %d lanes of 10", ready)
		}
		c.crash()
		time.Sleep(6 * time.Second)
		checkHolds(t, "4 3 3", a, b, d)
	})
}

// TestStopHandsOverAtOnce: the lanes that a clean stop frees have another owner at once, which begins at the first
// one's cursor.
func TestStopHandsOverAtOnce(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
		a := startPeer(t, s, lanes(6))
		b := startPeer(t, s, lanes(6))
		time.Sleep(10 * time.Second)
		checkHolds(t, "3 3", a, b)
		gone := a.holds()
		a.mu.Lock()
		a.next = 4711
		a.mu.Unlock()
		a.stop()
		time.Sleep(settle)
		checkHolds(t, "6", b)
		for _, lane := range gone {
			if got := b.all()[lane].From().Next; got != 4711 {
				t.Errorf("%s begins at %d, want 4711", lane, got)
			}
		}
		time.Sleep(time.Hour)
		if list := subjects(t, js); len(list) != 2 {
			t.Errorf("after an hour there are %v, want the table and one counter", list)
		}
	})
}

// lastSequence returns the last sequence of the stream.
func lastSequence(t *testing.T, js jetstream.JetStream) uint64 {
	t.Helper()
	st, err := js.Stream(context.Background(), meeting.Stream)
	if err != nil {
		t.Fatal(err)
	}
	return st.CachedInfo().State.LastSeq
}

// subjects returns the subjects in the stream, each with its number of messages.
func subjects(t *testing.T, js jetstream.JetStream) map[string]uint64 {
	t.Helper()
	st, err := js.Stream(context.Background(), meeting.Stream)
	if err != nil {
		t.Fatal(err)
	}
	info, err := st.Info(context.Background(), jetstream.WithSubjectFilter(">"))
	if err != nil {
		t.Fatal(err)
	}
	return info.State.Subjects
}

// TestCrashIsNoticed: whenever an instance dies, its lanes have another owner at most 5.5 s later, and not before it
// would have stopped trusting itself. The result is the same if it was alone.
func TestCrashIsNoticed(t *testing.T) {
	for _, alone := range []bool{true, false} {
		for phase := time.Duration(0); phase < time.Second; phase += 130 * time.Millisecond {
			meet(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
				a := startPeer(t, s, lanes(4))
				time.Sleep(300 * time.Millisecond)
				peers := []*peer{}
				if !alone {
					peers = append(peers, startPeer(t, s, lanes(4)))
				}
				time.Sleep(10*time.Second + phase)
				crashed := time.Now()
				a.nc.Close()
				if alone {
					peers = append(peers, startPeer(t, s, lanes(4)))
				}
				for len(peers[0].holds()) < 4 && time.Since(crashed) < time.Minute {
					time.Sleep(time.Millisecond)
				}
				took := time.Since(crashed)
				// The last beat is read half a second after it was sent at the latest.
				if took > 5500*time.Millisecond+settle || took < 4*time.Second-settle {
					t.Errorf("alone: %t, after %s: taken over after %s", alone, phase, took)
				}
				checkHolds(t, "0 4", append([]*peer{a}, peers...)...)
				time.Sleep(time.Minute)
				if list := subjects(t, js); len(list) != 2 {
					t.Errorf("a minute later there are %v, want the table and one counter", list)
				}
			})
		}
	}
}

// TestNameIsResumed: an instance with a name resumes as soon as its earlier run did not answer.
func TestNameIsResumed(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := startPeer(t, s, lanes(4), named("one"))
		time.Sleep(time.Minute)
		a.crash()
		b := startPeer(t, s, lanes(4), named("one"))
		time.Sleep(takeoverAfter - time.Millisecond)
		checkHolds(t, "0", b)
		time.Sleep(settle)
		checkHolds(t, "4", b)
	})
}

// TestStuckLoopLosesItsLane: a loop that receives no beat loses its lane, and only that, to an instance whose loops
// run.
func TestStuckLoopLosesItsLane(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := startPeer(t, s, lanes(4))
		b := startPeer(t, s, lanes(4))
		time.Sleep(10 * time.Second)
		checkHolds(t, "2 2", a, b)
		lane := a.holds()[0]
		a.mu.Lock()
		a.stuck[lane] = true
		lease := a.local.leases[lane]
		a.mu.Unlock()
		for ; lease.Held(); time.Sleep(time.Millisecond) {
		}
		stopped := time.Now()
		for ; b.Owner(lane) != b.Instance(); time.Sleep(time.Millisecond) {
			if time.Since(stopped) > 2*time.Second {
				t.Fatalf("2s after its loop was given up, %s is owned by %q", lane, b.Owner(lane))
			}
		}
	})
}

// TestStartAtOnce: instances that start at the same time compete for the table, and every lane has one owner in the
// end.
func TestStartAtOnce(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		var peers []*peer
		for range 6 {
			peers = append(peers, startPeer(t, s, lanes(24)))
		}
		for n := range 2000 {
			time.Sleep(time.Duration(1+n/100) * time.Millisecond)
			synctest.Wait()
			held := make(map[string]bool)
			for _, p := range peers {
				for _, lane := range p.holds() {
					if held[lane] {
						t.Fatalf("%s has two owners", lane)
					}
					held[lane] = true
				}
			}
		}
		total, owners := 0, 0
		for _, p := range peers {
			if n := len(p.holds()); n > 0 {
				owners++
				total += n
			}
		}
		if total != 24 || owners != 3 {
			t.Errorf("%d lanes are owned by %d instances, want 24 and 3", total, owners)
		}
	})
}

// TestServerAway: while the server is away, no owner acts beyond its grace, and none is replaced. When it is back,
// every owner goes on with its lease.
func TestServerAway(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a, b := startPeer(t, s, lanes(4)), startPeer(t, s, lanes(4))
		time.Sleep(10 * time.Second)
		checkHolds(t, "2 2", a, b)
		had := a.all()
		s.Stop()
		time.Sleep(6 * time.Second)
		checkHolds(t, "0 0", a, b)
		time.Sleep(time.Minute)
		s.Start()
		time.Sleep(500 * time.Millisecond)
		checkHolds(t, "2 2", a, b)
		if !maps.Equal(had, a.all()) {
			t.Error("the leases are others")
		}
	})
}

// gate is a proxy to a server that can be closed.
type gate struct {
	*natstest.Server
	mu    sync.Mutex
	shut  bool
	conns []net.Conn
}

func (g *gate) Dial(network, address string) (net.Conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return nil, net.ErrClosed
	}
	c, err := g.Server.Dial(network, address)
	g.conns = append(g.conns, c)
	return c, err
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	for _, c := range g.conns {
		if shut && c != nil {
			_ = c.Close() // like a pulled cable
		}
	}
}

func through(g *gate) option {
	return func(c *SharedConfig) {
		c.Conn.Close()
		c.Conn = g.Connect(nats.ReconnectBufSize(-1), nats.SetCustomDialer(g))
	}
}

// TestAloneIsCutOff: an instance that was alone and cut off, however briefly, reads the table before it goes on. If
// another has taken over meanwhile, the two never hold a lane at the same time.
func TestAloneIsCutOff(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
		g := &gate{Server: s}
		a := startPeer(t, s, lanes(4), through(g))
		time.Sleep(10 * time.Second)
		lease := a.all()["L0"]
		stored := func() uint64 {
			st, err := js.Stream(context.Background(), meeting.Stream)
			if err != nil {
				t.Fatal(err)
			}
			return st.CachedInfo().State.LastSeq
		}
		before := stored()
		g.set(true)
		time.Sleep(50 * time.Millisecond)
		checkHolds(t, "0", a)
		g.set(false)
		time.Sleep(100 * time.Millisecond)
		checkHolds(t, "4", a)
		if got := stored() - before; got != 1 || a.all()["L0"] != lease {
			t.Errorf("after a moment without a connection it asked %d times, want once; the same lease: %t", got,
				a.all()["L0"] == lease)
		}

		g.set(true)
		b := startPeer(t, s, lanes(4))
		time.Sleep(5*time.Second + settle)
		checkHolds(t, "0 4", a, b)
		g.set(false)
		for range 200 {
			time.Sleep(time.Millisecond)
			checkHolds(t, "0 4", a, b)
		}
		time.Sleep(8 * time.Second)
		checkHolds(t, "2 2", a, b)
	})
}

// TestStaleAnswer: an instance does not trust a server that does not show a stored message.
func TestStaleAnswer(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := NewShared(SharedConfig{Conn: s.Connect(), APIPrefix: "$JS.API", Subjects: meeting,
			Log: slog.New(slog.DiscardHandler)})
		seq, err := a.store.put(context.Background(), meeting.Beat+"x", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.store.shows(context.Background(), seq+1); !errors.Is(err, errStale) {
			t.Errorf("got %v, want errStale", err)
		}
		if err := a.store.shows(context.Background(), seq); err != nil {
			t.Errorf("got %v, want nil", err)
		}
	})
}

// TestSwapIsConditional: a table is replaced only by an instance that has read it.
func TestSwapIsConditional(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		nc := s.Connect()
		ctx, b := context.Background(), store{conn: nc, api: jsapi.Client{Conn: nc, API: "$JS.API"}, Subjects: meeting}
		first, err := b.swap(ctx, meeting.Table, []byte("a"), 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.swap(ctx, meeting.Table, []byte("b"), 0); !errors.Is(err, errConflict) {
			t.Errorf("a second first one: got %v, want errConflict", err)
		}
		if _, err := b.swap(ctx, meeting.Table, []byte("c"), first); err != nil {
			t.Errorf("who has read it: got %v", err)
		}
		if _, err := b.swap(ctx, meeting.Table, []byte("d"), first); !errors.Is(err, errConflict) {
			t.Errorf("who has read it before: got %v, want errConflict", err)
		}
	})
}

// TestAnotherStreamsAcknowledgement: an acknowledgement by another stream does not count as a successful write.
func TestAnotherStreamsAcknowledgement(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		nc := s.Connect()
		if _, err := nc.Subscribe("fake", func(m *nats.Msg) { _ = m.Respond([]byte(acknowledgement)) }); err != nil {
			t.Fatal(err)
		}
		b := store{conn: nc, api: jsapi.Client{Conn: nc, API: "$JS.API"}, Subjects: meeting}
		if seq, err := b.put(context.Background(), "fake", nil); err == nil {
			t.Errorf("stored at %d, by another stream's word", seq)
		}
	})
}

// TestStreamDeleted: an instance that may create the stream creates it again, and every instance keeps its lanes.
// Without the permission, owners go on, and still own their lanes when somebody has created the stream.
func TestStreamDeleted(t *testing.T) {
	natstest.Long(t)
	for _, may := range []bool{true, false} {
		meet(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
			var options []option
			if may {
				options = append(options, creating(js))
			}
			a, b := startPeer(t, s, lanes(4), options...), startPeer(t, s, lanes(4), options...)
			time.Sleep(10 * time.Second)
			checkHolds(t, "2 2", a, b)
			had := a.all()
			if err := js.DeleteStream(context.Background(), meeting.Stream); err != nil {
				t.Fatal(err)
			}
			time.Sleep(13 * time.Second)
			checkHolds(t, "2 2", a, b)
			if !may {
				for range 3600 {
					time.Sleep(time.Second)
					checkHolds(t, "2 2", a, b)
				}
				if err := makeStream(js); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(20 * time.Second)
			checkHolds(t, "2 2", a, b)
			if !maps.Equal(had, a.all()) {
				t.Error("the leases are others")
			}
		})
	}
}
