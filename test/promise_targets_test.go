package test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
	"delaybroker/test/poison"
)

// TestForbiddenTargets requests a delivery to each subject that is not allowed: in every form of request, by header,
// with forged state on the internal subjects, and outside DELAY_TARGETS. Nothing is delivered, each request becomes a
// dead letter with a reason, and healthy traffic beside it is on time.
func TestForbiddenTargets(t *testing.T) {
	t.Parallel()
	// The server accepts subjects of 5,000 bytes. With its defaults it would close the connection of the publisher.
	bubble(t, server.Options{MaxControlLine: 16 << 10}, func(t *testing.T, s *natstest.Server) {
		few := ladder(t, "1s 5s")
		startBroker(t, s, broker.Config{Ladder: few, HeaderTargets: []string{">", "*", "*.>"}})
		startBroker(t, s, broker.Config{Ladder: few, Prefix: "narrow",
			Targets: []string{"orders.>", "mail.*.send", "exact"}})
		c := newClient(t, s)
		c.target("ORDERS", "orders.>")
		in := c.subscribe(">")
		raw := dialRaw(t, s)
		start := time.Now()

		codes := make(map[string][]message.Code) // by body, the possible codes of its dead letter
		number := make(map[string]int)
		targets := make(map[string]string)
		keys := map[string]*message.Keys{"delaysys": c.keys("delay"), "narrowsys": c.keys("narrow")}
		ask := func(subject, block, target string, may ...message.Code) {
			body := fmt.Sprintf("%.60q %.60q %.60q %d", target, subject, block, len(codes))
			if root, _, _ := strings.Cut(subject, "."); block == forged {
				block = forgedState(keys[root], subject, body, len(codes), start)
			}
			codes[body], targets[body] = may, target
			number[body] = raw.publish(subject, block, body)
		}
		names, err := message.NewNames(message.DefaultPrefix)
		if err != nil {
			t.Fatal(err)
		}
		const healthy = 200
		for i := range healthy / 2 {
			c.publish("delay.1s.orders.healthy", fmt.Sprint("before ", i))
		}
		all := poison.Targets(names.Roots())
		for target := range all {
			if !strings.ContainsAny(target, " \t\r\n") { // white space would end the subject
				ask("delay.1s."+target, "", target, message.BadTarget)
				ask("delayin.1500ms."+target, "", target, message.BadTarget, message.BadTime)
				ask(fmt.Sprintf("delayat.%d.%s", start.Unix()+2, target), "", target, message.BadTarget,
					message.BadTime)
				for _, kind := range []string{"hop", "retry"} {
					ask("delaysys."+kind+".1s."+target, "", target, message.BadInternal)
					ask("delaysys."+kind+".1s."+target, forged, target, message.BadTarget)
				}
			}
			if trimmed := strings.TrimSpace(target); all[trimmed] != "" {
				// A line feed in a target makes a second line, which is not a header.
				ask("delay.1s", "NATS/1.0\r\nDelay-Target: "+target+"\r\n\r\n", target, message.BadTarget,
					message.BadHeaders)
			}
		}
		for _, target := range []string{"payments.capture", "orders", "Orders.x", "ordersx.y", "mail.send",
			"mail.a.b.send", "exact.x", "delay.1s.orders.x"} {
			ask("narrow.1s."+target, "", target, message.BadTarget)
			ask("narrowin.1500ms."+target, "", target, message.BadTarget)
			ask(fmt.Sprintf("narrowat.%d.%s", start.Unix()+2, target), "", target, message.BadTarget)
			ask("narrowsys.hop.1s."+target, forged, target, message.BadTarget)
		}
		for i := range healthy / 2 {
			c.publish("delay.1s.orders.healthy", fmt.Sprint("behind ", i))
		}
		accepted := raw.accepted()
		time.Sleep(time.Minute)

		letters := append(c.arrivals("DELAY_DEAD"), c.arrivals("NARROW_DEAD")...)
		times := make(map[string]int)
		for _, a := range letters {
			times[a.Body]++
			code := message.Code(a.Header.Get(message.HeaderErrorCode))
			if !slices.Contains(codes[a.Body], code) {
				t.Errorf("%s is a dead letter %s, want %v", a.Body, code, codes[a.Body])
			}
			if _, token, _ := strings.Cut(a.Subject, "."); token != string(code) {
				t.Errorf("%s is a dead letter on %s, want no target in it", a.Body, a.Subject)
			}
			if a.Header.Get(message.HeaderError) == "" || a.Header.Get(message.HeaderSubject) == "" || a.ID == "" {
				t.Errorf("the dead letter %s lacks a sentence, its subject or its id: %v", a.Body, a.Header)
			}
		}
		refused := make(map[string]bool)
		for body, n := range number {
			want := 0
			if accepted[n] {
				want = 1
				refused[targets[body]] = true
			}
			if got := times[body]; got != want {
				t.Errorf("%s is %d dead letters, want %d", body, got, want)
			}
			// The server itself refuses only subjects with an empty token.
			if !accepted[n] && !slices.Contains(strings.Split(targets[body], "."), "") {
				t.Errorf("%s was not stored", body)
			}
		}
		for _, target := range targets { // each target must reach the broker in some form
			if !refused[target] {
				t.Errorf("nobody but the server refused %.60q", target)
			}
		}
		if got := len(refused); got < 100 {
			t.Errorf("%d targets were tried", got)
		}
		for _, a := range in.all() {
			// Only a delivery has an id and none of the internal headers.
			if a.ID != "" && a.Header.Get(message.HeaderHop) == "" && a.Header.Get(message.HeaderErrorCode) == "" &&
				a.Subject != "orders.healthy" {
				t.Errorf("%q was delivered to %.60q", a.Body, a.Subject)
			}
		}
		on := c.arrivals("ORDERS")
		for _, a := range on {
			if want := start.Add(time.Second); !a.At.Equal(want) || a.Subject != "orders.healthy" {
				t.Errorf("%s came to %s at %s, want %s", a.Body, a.Subject, a.At, want)
			}
		}
		if len(on) != healthy {
			t.Errorf("%d healthy messages arrived, want %d", len(on), healthy)
		}
		c.checkEmptyLanes()
	})
}

// forged stands for a header block made by forgedState.
const forged = "forged"

// forgedState is the header block of a message that hops, made by a user with too many rights who knows the secret. Its
// id is not in use: such a user could also make a dead letter look like a copy of another one.
func forgedState(k *message.Keys, subject, body string, n int, at time.Time) string {
	now := at.UTC().Format(time.RFC3339Nano)
	h := message.Header{
		message.HeaderFormat: {"1"}, message.HeaderHop: {"1"},
		message.HeaderID:  {fmt.Sprintf("FORGED-%d-%d", n+1, at.UnixNano())},
		message.HeaderDue: {now}, message.HeaderAccepted: {now},
	}
	k.SealMessage(subject, h, []byte(body), at)
	block := "NATS/1.0\r\n"
	for name, values := range h {
		block += name + ": " + values[0] + "\r\n"
	}
	return block + "\r\n"
}
