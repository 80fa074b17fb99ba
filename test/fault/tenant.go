//go:build linux

package fault

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
)

const (
	// grants is the file with a tenant's documented permissions, and payments the tenant's name there.
	grants   = "client-payments.conf"
	payments = "payments"
	// ledger is the tenant's own stream.
	ledger = "PAYMENTS"
	// attackPause is the pause between two rounds of an attack.
	attackPause = 50 * time.Millisecond
	// guesses is the number of reply subjects that the tenant guesses from one that it has seen.
	guesses = 40
)

// tenantUsers returns the documented user of a tenant, unchanged, and a second user of the same tenant, who has a
// stream.
func tenantUsers() (string, error) {
	text, err := os.ReadFile(filepath.Join("..", "permissions", grants))
	if err != nil {
		return "", fmt.Errorf("the grants of a tenant: %w", err)
	}
	return fmt.Sprintf(`
    { user: %[1]s, password: p
      %[2]s }
    { user: %[1]s-stream, password: p, permissions {
        publish: ["%[1]s.ledger", "$JS.API.DIRECT.GET.%[3]s"], subscribe: ["_INBOX_%[1]s.>"] } }
`, payments, text, ledger), nil
}

// tenant attacks with the documented permissions of a tenant. It makes servers send their answers to subjects on which
// the tenant may not publish.
type tenant struct {
	nc     *nats.Conn // the user with the documented grants
	owner  *nats.Conn // the user with the stream
	gate   *gate
	levels []string
	stored uint64 // number of messages in the tenant's stream, which are all forgeries

	mu    sync.Mutex
	reply string // the last reply subject that the tenant has seen
	sent  atomic.Int64
}

func (w *world) newTenant(ctx context.Context) (*tenant, error) {
	t := &tenant{gate: &w.gate, levels: strings.Split(w.plan.ladder.levels, ",")}
	var err error
	inbox := nats.CustomInboxPrefix("_INBOX_" + payments)
	if t.nc, err = w.connect(w.cluster.urls(1), payments, nats.UserInfo(payments, "p"), inbox); err != nil {
		return nil, err
	}
	if t.owner, err = w.connect(w.cluster.urls(2), payments+"-stream", nats.UserInfo(payments+"-stream", "p"),
		inbox); err != nil {
		return nil, err
	}
	_, err = t.nc.Subscribe(payments+".>", func(m *nats.Msg) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.reply = m.Reply
	})
	if err != nil {
		return nil, err
	}
	err = retry(ctx, func(ctx context.Context) error {
		_, err := w.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: ledger, Subjects: []string{payments + ".ledger"}, Replicas: servers, AllowDirect: true,
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return t, t.prepare(ctx)
}

// prepare stores the forgeries that servers will relay: a hop of a message that was never published, an empty table of
// lanes, and a heartbeat.
func (t *tenant) prepare(ctx context.Context) error {
	js, err := jetstream.New(t.owner)
	if err != nil {
		return err
	}
	now := time.Now()
	id := message.ID{Stream: intake, Sequence: 1 << 40, At: now}.String()
	hop := nats.Header(message.Request{ID: id, Accepted: now, Due: now.Add(time.Second)}.HopHeader())
	for _, m := range []*nats.Msg{{Header: hop, Data: []byte("forged-1:")}, {Data: []byte("{}")}, {Data: []byte("1")}} {
		m.Subject = payments + ".ledger"
		err := retry(ctx, func(ctx context.Context) error {
			_, err := js.PublishMsg(ctx, m)
			return err
		})
		if err != nil {
			return err
		}
		t.stored++
	}
	return nil
}

// attack repeats the attacks until stop is closed.
func (t *tenant) attack(stop <-chan struct{}) {
	tick := time.NewTicker(attackPause)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		case <-tick.C:
			if t.gate.enter() {
				t.round(n)
				t.gate.inside.Done()
			}
		}
	}
}

// round makes each kind of attack, but the relays only in every fifth round. A flood has many publishes in a round. An
// attack that needs to succeed only once has few.
func (t *tenant) round(n int) {
	level := t.levels[n%len(t.levels)]
	own := "delay." + level + "." + payments + ".x"
	for i := range 20 { // a flood of delays, whose answers go to the subject of the instances' heartbeats
		t.ask(own, fmt.Sprintf("delaysys.owners.beat.x%d", i%3))
	}
	t.ask("delayin.700ms."+payments+".x", "delaysys.owners.table")
	t.ask(own, "delaysys.hop."+level+".orders.forged.1")
	t.ask(own, "delaydead.bad_time.orders.forged.1")
	t.guess(own)
	if n%5 == 0 {
		for seq := range t.stored {
			for _, reply := range []string{
				"delaysys.hop." + level + ".orders.forged.2", "delaysys.retry.1s.orders.forged.2",
				"delaysys.hop.30m.orders.forged.2",
				"delaysys.owners.table", "delaysys.owners.beat.x",
			} {
				t.relay(seq+1, reply)
			}
		}
	}
}

// ask publishes a delay with the given reply subject, to which the server sends the acknowledgement.
func (t *tenant) ask(subject, reply string) {
	if t.nc.PublishRequest(subject, reply, []byte("attack-1:")) == nil {
		t.sent.Add(1)
	}
}

// relay makes the server send a message of the tenant's stream to the reply subject.
func (t *tenant) relay(seq uint64, reply string) {
	if t.owner.PublishRequest("$JS.API.DIRECT.GET."+ledger, reply, fmt.Appendf(nil, `{"seq":%d}`, seq)) == nil {
		t.sent.Add(1)
	}
}

// isAttack reports whether a body belongs to an attack: a message of the tenant, or a server's answer to such a
// message.
func isAttack(body []byte) bool {
	b := string(body)
	return strings.HasPrefix(b, "attack-") || strings.HasPrefix(b, "forged-") || strings.HasPrefix(b, "{") || b == "1"
}

// guess computes later reply subjects from the last one that the tenant has seen, and uses each for a request. A later
// reply subject belongs to another delivery.
func (t *tenant) guess(own string) {
	t.mu.Lock()
	seen := t.reply
	t.mu.Unlock()
	i := strings.LastIndexByte(seen, '.')
	n, err := strconv.ParseUint(seen[i+1:], 36, 64)
	if err != nil { // the tenant has seen no reply subject, or one without a number
		return
	}
	for k := range uint64(guesses) {
		t.ask(own, seen[:i+1]+strconv.FormatUint(n+k+1, 36))
	}
}

func attackByTenant(w *world) (func() (string, error), error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	t, err := w.newTenant(ctx)
	if err != nil {
		return nil, err
	}
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.attack(stop)
	}()
	return func() (string, error) {
		close(stop)
		<-done
		n := t.sent.Load()
		if n == 0 {
			return "", fmt.Errorf("the tenant sent nothing")
		}
		return fmt.Sprintf("%d publishes with reply subjects of others", n), nil
	}, nil
}
