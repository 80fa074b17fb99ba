package promises

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestPoison publishes messages of kinds that have harmed consumers, brokers or targets elsewhere, together with
// healthy messages. Each poisonous message is delivered without the harmful part, or becomes a dead letter with a
// reason. The healthy messages are on time.
func TestPoison(t *testing.T) {
	t.Parallel()
	// The server accepts subjects of 5,000 bytes. With its defaults it would close the connection of the publisher.
	natstest.BubbleWith(t, server.Options{MaxControlLine: 16 << 10}, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{HeaderTargets: []string{"headers.ok"}})
		p := &poisoner{
			Client: harness.NewClient(t, s), raw: harness.DialRaw(t, s), dead: make(map[string]int), start: time.Now(),
		}
		p.Target("ORDERS", "orders.>")
		named := p.Subscribe("headers.ok")
		p.serverStatuses()
		p.badHeaders()
		p.badTargets()
		p.badTimes()
		p.forgedState()
		p.Publish("delay.1s", "clean", message.HeaderTarget, "headers.ok")
		const healthy = 200
		for i := range healthy {
			p.Publish("delay.1s.orders.healthy", fmt.Sprint("healthy", i))
		}
		for i, ok := range p.raw.AwaitAcks() {
			if !ok {
				t.Errorf("raw message %d was not stored", i)
			}
		}
		time.Sleep(time.Minute)
		p.checkDelivered(healthy)
		harness.CheckBodies(t, named.Arrivals(), "clean")
		p.checkDeadLetters()
		p.CheckEmptyBut("DELAY_DEAD")
	})
}

// A poisoner publishes poisonous messages, and counts the expected outcomes.
type poisoner struct {
	*harness.Client
	raw   *harness.RawConn
	dead  map[string]int // the expected number of dead letters, by code
	clean int            // messages of which the harmful part is removed
	start time.Time
}

func (p *poisoner) bad(code message.Code, subject, body string, headers ...string) {
	p.T.Helper()
	p.Publish(subject, body, headers...)
	p.dead[string(code)]++
}

// badBlock is like bad, with a header block in the format of the protocol.
func (p *poisoner) badBlock(code message.Code, subject, block, body string) {
	p.T.Helper()
	p.raw.Publish(subject, block, body)
	p.dead[string(code)]++
}

// serverStatuses publishes messages whose headers look like a status of the server.
func (p *poisoner) serverStatuses() {
	for _, status := range []string{"100", "404", "408", "409", "503", "409 Consumer Deleted", "409 Server Shutdown"} {
		p.raw.Publish("delay.1s.orders.clean", "NATS/1.0\r\nStatus: "+status+
			"\r\nDescription: Consumer Deleted\r\nNats-Pending-Messages: 500\r\n\r\n", "clean")
		p.raw.Publish("delay.1s.orders.clean", "NATS/1.0 "+status+"\r\n\r\n", "")
		p.clean += 2
	}
}

// badHeaders publishes headers that cannot be parsed, and headers beyond a limit of the broker. If the broker ignored
// them, it would lose a Delay-Until.
func (p *poisoner) badHeaders() {
	for _, block := range []string{"NATS/1.0\r\nDelay-Until: 2030-01-01T00:00:00Z\r\nno colon\r\n\r\n",
		"NATS/1.0\r\n\xff\xfe\r\n\r\n", "NATS/1.0\r\nDelay-Until 2030\r\n\r\n"} {
		p.badBlock(message.BadHeaders, "delay.1s.orders.bad", block, "bad")
	}
	p.bad(message.BadHeaders, "delay.1s.orders.bad", "many", manyHeaders(65)...)
	p.bad(message.BadHeaders, "delay.1s.orders.bad", "large", "X-Large", strings.Repeat("x", 9000))
	p.badBlock(message.BadHeaders, "delay.1s.orders.bad", "NATS/1.0\r\nX(y): z\r\n\r\n", "bad key")
}

// badTargets publishes to targets that are too long, missing, or not allowed in a header.
func (p *poisoner) badTargets() {
	p.badBlock(message.BadTarget, "delay.1s."+strings.Repeat("x", 5000), "", "long")
	p.bad(message.BadTarget, "delay.1s", "bare")
	p.bad(message.BadTarget, "delay.1s", "bare", message.HeaderTarget, "orders.notlisted")
}

// badTimes publishes times that are malformed, too far, given twice, or too early, and an unknown mode of delivery.
func (p *poisoner) badTimes() {
	for _, subject := range []string{"delayat.1732060800.123.orders.x", "delayin.1.5s.orders.x",
		"delayat.2000-01-02T00:00:00.000Z.orders.x", "delayin.soon.orders.x",
		"delayin.15.orders.x", "delayat.2000-01-02T00:00:00.orders.x", "delayin.1h30.orders.x",
		"delayat.tomorrow.orders.x"} {
		p.bad(message.BadTime, subject, "bad")
	}
	p.bad(message.TooFar, "delayat.4102444800.orders.x", "bad")
	p.bad(message.TimeTwice, "delayin.1s.orders.x", "bad", message.HeaderUntil, "2000-01-02T00:00:00Z")
	p.bad(message.TimeTwice, "delay.1s.orders.x", "bad", message.HeaderUntil, "2000-01-02T00:00:00Z", "delay-until",
		"2000-01-03T00:00:00Z")
	p.bad(message.UntilEarly, "delay.1h.orders.x", "bad", message.HeaderUntil, "2000-01-01T00:00:05Z")
	p.bad(message.BadOption, "delay.1s.orders.x", "bad", message.HeaderDeliver, "pigeon")
}

// forgedState publishes on internal subjects, as a user with too many rights.
func (p *poisoner) forgedState() {
	p.bad(message.BadInternal, "delaysys.hop.1s.orders.x", "bad")
	p.bad(message.BadInternal, "delaysys.hop.1s.orders.x", "bad", message.HeaderID, "x", message.HeaderDue,
		"2000-01-01T00:00:00Z")
}

// checkDelivered expects exactly the healthy messages on time, and the cleaned messages without their harmful parts.
func (p *poisoner) checkDelivered(healthy int) {
	t, due := p.T, p.start.Add(time.Second)
	nHealthy, nClean := 0, 0
	for _, a := range p.Arrivals("ORDERS") {
		switch a.Subject {
		case "orders.healthy":
			nHealthy++
			if !a.At.Equal(due) {
				t.Errorf("%s arrived at %s, want %s", a.Body, a.At, due)
			}
		case "orders.clean":
			nClean++
			for _, k := range []string{"Status", "Description", "Nats-Pending-Messages"} {
				if a.Header.Get(k) != "" {
					t.Errorf("the reserved header %s: %s was passed on", k, a.Header.Get(k))
				}
			}
			if !a.Due.Equal(due) {
				t.Errorf("%s has the due time %s, want %s", a.ID, a.Due, due)
			}
		default:
			t.Errorf("%q arrived on %s", a.Body, a.Subject)
		}
	}
	if nHealthy != healthy || nClean != p.clean {
		t.Errorf("%d healthy and %d clean messages arrived, want %d and %d", nHealthy, nClean, healthy, p.clean)
	}
}

// checkDeadLetters expects the counted number of letters of each code, each with its reason, subject and id.
func (p *poisoner) checkDeadLetters() {
	t, letters := p.T, p.Client.DeadLetters()
	for code, want := range p.dead {
		if got := len(letters[code]); got != want {
			t.Errorf("%d dead letters %s, want %d", got, code, want)
		}
	}
	for code, all := range letters {
		for _, a := range all {
			if a.Header.Get(message.HeaderError) == "" || a.Header.Get(message.HeaderSubject) == "" || a.ID == "" {
				t.Errorf("the dead letter %s on %s lacks its reason, its subject or its id: %v", code, a.Subject,
					a.Header)
			}
		}
		if p.dead[code] == 0 {
			t.Errorf("%d dead letters %s, want none: %s", len(all), code, all[0].Header.Get(message.HeaderError))
		}
	}
}

func manyHeaders(n int) []string {
	var h []string
	for i := range n {
		h = append(h, fmt.Sprintf("X-%d", i), "v")
	}
	return h
}
