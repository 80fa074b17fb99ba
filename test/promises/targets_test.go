package promises

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
	"delaybroker/test/poison"
)

// TestForbiddenTargets requests deliveries to forbidden subjects: in every form of request, by header, and with a
// forged state on the internal subjects. A second broker also forbids the targets outside its DELAY_TARGETS. The
// brokers make no such delivery, each stored request becomes a dead letter with a reason, and healthy messages are on
// time.
func TestForbiddenTargets(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	// Some subjects have 5,000 bytes. With the default of MaxControlLine, the server would close the publisher's
	// connection.
	natstest.BubbleWith(t, server.Options{MaxControlLine: 16 << 10}, func(t *testing.T, s *natstest.Server) {
		few := harness.Ladder(t, "1s 5s")
		harness.StartBroker(t, s, broker.Config{Ladder: few, HeaderTargets: []string{">", "*", "*.>"}})
		harness.StartBroker(t, s, broker.Config{Ladder: few, Prefix: "narrow",
			Targets: []string{"orders.>", "mail.*.send", "exact"}})
		c := harness.NewClient(t, s)
		c.Target("ORDERS", "orders.>")
		in := c.Subscribe(">")
		f := &forbidden{
			Client: c, raw: harness.DialRaw(t, s), start: time.Now(), asked: make(map[string]request),
			keys: map[string]*message.Keys{"delaysys": c.Keys("delay"), "narrowsys": c.Keys("narrow")},
		}
		const healthy = 200
		for i := range healthy / 2 {
			c.Publish("delay.1s.orders.healthy", fmt.Sprint("before ", i))
		}
		f.askEverywhere()
		f.askOutsideTargets()
		for i := range healthy / 2 {
			c.Publish("delay.1s.orders.healthy", fmt.Sprint("behind ", i))
		}
		accepted := f.raw.AwaitAcks()
		time.Sleep(time.Minute)

		f.checkRefused(f.checkDeadLetters(), accepted)
		for _, a := range in.Arrivals() {
			// Only a delivery has an id and none of the internal headers.
			if a.ID != "" && a.Header.Get(message.HeaderState) == "" && a.Header.Get(message.HeaderErrorCode) == "" &&
				a.Subject != "orders.healthy" {
				t.Errorf("%q was delivered to %.60q", a.Body, a.Subject)
			}
		}
		on := c.Arrivals("ORDERS")
		for _, a := range on {
			if want := f.start.Add(time.Second); !a.At.Equal(want) || a.Subject != "orders.healthy" {
				t.Errorf("%s arrived on %s at %s, want %s", a.Body, a.Subject, a.At, want)
			}
		}
		harness.CheckCount(t, on, healthy)
		c.CheckEmptyBut("DELAY_DEAD", "NARROW_DEAD")
	})
}

// forbidden requests deliveries that are not allowed.
type forbidden struct {
	*harness.Client
	raw   *harness.RawConn
	start time.Time
	keys  map[string]*message.Keys // by the root of internal subjects
	asked map[string]request       // by body
}

type request struct {
	target string
	codes  []message.Code // the codes that its dead letter may have
	number int            // the result of RawConn.Publish
}

func (f *forbidden) ask(subject, block, target string, may ...message.Code) {
	n := len(f.asked)
	body := fmt.Sprintf("%.60q %.60q %.60q %d", target, subject, block, n)
	if root, _, _ := strings.Cut(subject, "."); block == forged {
		block = forgedState(f.keys[root], subject, body, n, f.start)
	}
	f.asked[body] = request{target, may, f.raw.Publish(subject, block, body)}
}

// askEverywhere requests each forbidden target in every form of request.
func (f *forbidden) askEverywhere() {
	names, err := message.NewNames(message.DefaultPrefix)
	natstest.NoError(f.T, err)
	all := poison.Targets(names.Roots())
	for target := range all {
		if !strings.ContainsAny(target, " \t\r\n") { // white space would end the subject
			f.ask("delay.1s."+target, "", target, message.BadTarget)
			f.ask("delayin.1500ms."+target, "", target, message.BadTarget, message.BadTime)
			f.ask(fmt.Sprintf("delayat.%d.%s", f.start.Unix()+2, target), "", target, message.BadTarget,
				message.BadTime)
			for _, kind := range []string{"hop", "retry"} {
				f.ask("delaysys."+kind+".1s."+target, "", target, message.BadInternal)
				f.ask("delaysys."+kind+".1s."+target, forged, target, message.BadTarget)
			}
		}
		if trimmed := strings.TrimSpace(target); all[trimmed] != "" {
			// A line feed in a target makes a second line, which is not a header.
			f.ask("delay.1s", "NATS/1.0\r\nDelay-Target: "+target+"\r\n\r\n", target, message.BadTarget,
				message.BadHeaders)
		}
	}
}

// askOutsideTargets requests targets that are not in the DELAY_TARGETS of the narrow broker.
func (f *forbidden) askOutsideTargets() {
	for _, target := range []string{"payments.capture", "orders", "Orders.x", "ordersx.y", "mail.send",
		"mail.a.b.send", "exact.x", "delay.1s.orders.x"} {
		f.ask("narrow.1s."+target, "", target, message.BadTarget)
		f.ask("narrowin.1500ms."+target, "", target, message.BadTarget)
		f.ask(fmt.Sprintf("narrowat.%d.%s", f.start.Unix()+2, target), "", target, message.BadTarget)
		f.ask("narrowsys.hop.1s."+target, forged, target, message.BadTarget)
	}
}

// checkDeadLetters checks each dead letter, and returns the number of dead letters by body.
func (f *forbidden) checkDeadLetters() map[string]int {
	times := make(map[string]int)
	for _, a := range append(f.Arrivals("DELAY_DEAD"), f.Arrivals("NARROW_DEAD")...) {
		times[a.Body]++
		code, may := message.Code(a.Header.Get(message.HeaderErrorCode)), f.asked[a.Body].codes
		if !slices.Contains(may, code) {
			f.T.Errorf("%s is a dead letter %s, want %v", a.Body, code, may)
		}
		if _, token, _ := strings.Cut(a.Subject, "."); token != string(code) {
			f.T.Errorf("%s is a dead letter on %s, want no target in the subject", a.Body, a.Subject)
		}
		if a.Header.Get(message.HeaderError) == "" || a.Header.Get(message.HeaderSubject) == "" || a.ID == "" {
			f.T.Errorf("the dead letter %s lacks its reason, its subject or its id: %v", a.Body, a.Header)
		}
	}
	return times
}

// checkRefused expects one dead letter for each request that the server stored, and none for the others. For each
// target, the server must have stored a request in at least one form.
func (f *forbidden) checkRefused(letters map[string]int, accepted []bool) {
	refused := make(map[string]bool)
	for body, r := range f.asked {
		want := 0
		if accepted[r.number] {
			want = 1
			refused[r.target] = true
		}
		if got := letters[body]; got != want {
			f.T.Errorf("%s is %d dead letters, want %d", body, got, want)
		}
		// The server itself refuses only subjects with an empty token.
		if !accepted[r.number] && !slices.Contains(strings.Split(r.target, "."), "") {
			f.T.Errorf("%s was not stored", body)
		}
	}
	for _, r := range f.asked {
		if !refused[r.target] {
			f.T.Errorf("only the server refused %.60q", r.target)
		}
	}
	if got := len(refused); got < 100 {
		f.T.Errorf("the brokers refused %d targets, want at least 100", got)
	}
}

// forged is replaced by a header block of forgedState.
const forged = "forged"

// forgedState returns the header block of a forged message between lanes. The forger has too many rights and knows the
// secret. Each message has a new id, because DELAY_DEAD would discard a dead letter with a used id as a duplicate.
func forgedState(k *message.Keys, subject, body string, n int, at time.Time) string {
	h := message.Request{ID: fmt.Sprintf("FORGED-%d-%d", n+1, at.UnixNano()), Due: at, Accepted: at}.HopHeader()
	k.SealMessage(subject, h, []byte(body))
	block := "NATS/1.0\r\n"
	for name, values := range h {
		block += name + ": " + values[0] + "\r\n"
	}
	return block + "\r\n"
}

// secretTargets denies the user "broker" publishes below "secret".
func secretTargets() server.Options {
	publish := &server.SubjectPermission{Allow: []string{">"}, Deny: []string{"secret.>"}}
	return server.Options{Users: []*server.User{
		{Username: "broker", Password: "b", Permissions: &server.Permissions{Publish: publish}},
		{Username: "client", Password: "c"},
	}}
}

// TestForbiddenToTheBroker: the broker's user has no right to publish to some targets. NATS drops such a delivery and
// reports it asynchronously. The broker counts this as a refusal in every mode.
func TestForbiddenToTheBroker(t *testing.T) {
	t.Parallel()
	natstest.BubbleWith(t, secretTargets(), func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{Attempts: 2}, nats.UserInfo("broker", "b"))
		c := harness.WrapConn(t, s.Connect(nats.UserInfo("client", "c")))
		secret, open := c.Subscribe("secret.>"), c.Subscribe("open.>")
		c.Target("SECRETS", "secret.stored.>")
		modes := []string{"auto", "core", "stream", "request"}
		for _, mode := range modes {
			c.Publish("delay.1s.secret."+mode, mode, message.HeaderDeliver, mode)
			c.Publish("delay.1s.secret.stored."+mode, mode, message.HeaderDeliver, mode)
		}
		c.Publish(`delay.1s.secret."quoted\"`, "quoted")
		c.Publish("delay.1s.open.x", "open")
		time.Sleep(10 * time.Minute)
		harness.CheckCount(t, secret.Arrivals(), 0)
		harness.CheckBodies(t, open.Arrivals(), "open")
		letters := c.DeadLetters()[string(message.Undelivered)]
		harness.CheckCount(t, letters, 2*len(modes)+1)
		for _, l := range letters {
			if why := l.Header.Get(message.HeaderError); !strings.Contains(why, "grant") ||
				l.Header.Get(message.HeaderAttempts) != "2" {
				t.Errorf("%s: after %s attempts: %s", l.Subject, l.Header.Get(message.HeaderAttempts), why)
			}
		}
		c.CheckEmptyBut("DELAY_DEAD")
	})
}

// TestForbiddenWithSlowHandler: nats.go calls its error handlers one after another, so a slow handler delays the report
// of a refusal. The refusal still counts.
func TestForbiddenWithSlowHandler(t *testing.T) {
	t.Parallel()
	natstest.BubbleWith(t, secretTargets(), func(t *testing.T, s *natstest.Server) {
		slow := nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) { time.Sleep(200 * time.Millisecond) })
		harness.StartBroker(t, s, broker.Config{Attempts: 1}, nats.UserInfo("broker", "b"), slow)
		c := harness.WrapConn(t, s.Connect(nats.UserInfo("client", "c")))
		c.Subscribe("secret.>")
		const many = 20
		for i := range many {
			mode := []string{"auto", "core"}[i%2]
			c.Publish("delay.1s.secret."+strconv.Itoa(i), mode, message.HeaderDeliver, mode)
		}
		time.Sleep(10 * time.Minute)
		harness.CheckCount(t, c.DeadLetters()[string(message.Undelivered)], many)
	})
}
