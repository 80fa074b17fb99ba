package tenants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/doctor"
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/stats"
	"delaybroker/broker/stats/history"
	"delaybroker/broker/web/page"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// This file tests the page, and the rights of its user in permissions/page.conf.

// actionGrants are the rights that the page needs only for its actions.
var actionGrants = []string{
	"delaytimer.>", "delaysys.retry.1s.>", "$JS.API.STREAM.MSG.DELETE.DELAY_DEAD", "delaysys.pauses",
}

var forbiddenSubjects = []string{
	"orders.x", "delay.10s.orders.x", "delaysys.hop.10s.orders.x", "delaydead.expired.orders.x",
	"$JS.API.STREAM.CREATE.X", "$JS.API.STREAM.PURGE.DELAY_10s", "$JS.API.STREAM.MSG.DELETE.DELAY_10s",
	"$JS.API.STREAM.MSG.GET.ORDERS", "$JS.API.CONSUMER.CREATE.ORDERS.x", "$JS.API.CONSUMER.MSG.NEXT.ORDERS.x",
	"$JS.API.CONSUMER.DELETE.ORDERS.x",
}

// TestPageNamesTheMissingRight: with the rights of page.conf, all views and actions of the page work. Without one of
// these rights, some answers fail, and each failure names the right. Without the rights for actions, all views work.
func TestPageNamesTheMissingRight(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	works := role{"page", "g", pageWorks, forbiddenSubjects}
	if err := works.try(t); err != nil {
		t.Errorf("with all rights: %v", err)
	}
	var acts []natstest.Grant
	for _, g := range natstest.Grants(t, tenantsConf, "page") {
		if slices.Contains(actionGrants, g.Subject) {
			acts = append(acts, g)
		}
		t.Run(g.List+" "+g.Subject, func(t *testing.T) {
			t.Parallel()
			err := works.try(t, g)
			if err == nil {
				t.Fatalf("nothing breaks without %s", g)
			}
			if strings.HasPrefix(g.List, "deny") {
				return
			}
			for _, silent := range errorsNotNaming(g.Subject, err) {
				t.Errorf("without %s the page says %v", g, silent)
			}
		})
	}
	if err := (role{"page", "g", pageShows, forbiddenSubjects}).try(t, acts...); err != nil {
		t.Errorf("without the rights to act: %v", err)
	}
}

// refusal matches an error of the server, with the refused subject.
var refusal = regexp.MustCompile(`Violation for (?:Publish|Subscription) to \\?"([^"\\]+)`)

// errorsNotNaming returns the errors in err that name no subject of the grant.
func errorsNotNaming(grant string, err error) (all []error) {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range several.Unwrap() {
			all = append(all, errorsNotNaming(grant, one)...)
		}
		return all
	}
	for _, found := range refusal.FindAllStringSubmatch(err.Error(), -1) {
		if message.Match(grant, found[1]) {
			return nil
		}
	}
	return []error{err}
}

// A viewer uses the page of a broker with the page's token.
type viewer struct{ page *page.Page }

const viewerToken = "0123456789abcdef"

// viewPage runs a broker with data for each view, and the page. The page connects as the user of the role.
func (s *stage) viewPage() (v viewer, stop func() error, err error) {
	b, stop, err := s.runBroker()
	if err != nil {
		return v, nil, err
	}
	if err := s.fill(context.Background()); err != nil {
		_ = stop()
		return v, nil, err
	}
	cfg, err := s.config()
	return newViewer(b, func(context.Context) (*inspect.Inspector, error) {
		return inspect.Open(s.as(s.user, s.password), cfg)
	}), stop, err
}

// newViewer returns a viewer of the page of a broker.
func newViewer(b *broker.Broker, open func(context.Context) (*inspect.Inspector, error)) viewer {
	return viewer{page.New(page.Config{
		Engine: b, Checks: func() []stats.Check { return nil }, History: new(history.Book),
		Durability: new(atomic.Pointer[string]), Version: "v1", Prefix: "delay", Log: slog.New(slog.DiscardHandler),
		Access: page.Access{
			Tokens: []page.Token{{Name: "ann", Secret: viewerToken}}, Actions: true, Bodies: true,
		},
		Open: open, Host: func() doctor.Host { return doctor.Host{Version: "v1"} },
	})}
}

// ask returns an answer of the page, or the text of a failure as an error.
func (v viewer) ask(method, path, body string) (string, error) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:8422"
	r.Header.Set("Authorization", "Bearer "+viewerToken)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	v.page.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		return "", fmt.Errorf("%s %s: %d %s", path, body, w.Code, w.Body)
	}
	return w.Body.String(), nil
}

// fill stores the data for the views: two dead letters, a refused message, a pending message, and three timers.
func (s *stage) fill(ctx context.Context) error {
	for n := range 2 {
		if _, err := s.js.Publish(ctx, fmt.Sprintf("delayin.1s.orders.full.%d", n), nil); err != nil {
			return err
		}
	}
	for n := range 3 {
		m := &nats.Msg{Subject: fmt.Sprintf("delaytimer.k%d.payments.timer", n), Header: nats.Header{"Delay-For": {"10h"}}}
		if _, err := s.js.PublishMsg(ctx, m); err != nil {
			return err
		}
	}
	time.Sleep(time.Minute) // the target orders.full refuses both attempts
	for _, subject := range []string{"delayin.1s.orders.patient", "delayin.1h.payments.later"} {
		if _, err := s.js.Publish(ctx, subject, nil); err != nil {
			return err
		}
	}
	time.Sleep(1100 * time.Millisecond) // the first attempt at orders.patient fails
	return nil
}

// pageShows requests all views.
func pageShows(s *stage) error {
	v, stop, err := s.viewPage()
	if err != nil {
		return err
	}
	defer stop()
	return v.looks()
}

// pageWorks requests all views, and carries out all actions.
func pageWorks(s *stage) error {
	v, stop, err := s.viewPage()
	if err != nil {
		return err
	}
	defer stop()
	if err := errors.Join(v.looks(), v.carryOutAll()); err != nil {
		return err
	}
	if err := stop(); err != nil {
		return err
	}
	// This consumer is like one of a stopped instance: no running instance reports it as its reader.
	reader := jetstream.ConsumerConfig{Name: "delaybroker-x"}
	if _, err := s.js.CreateConsumer(context.Background(), "DELAY_INTAKE", reader); err != nil {
		return err
	}
	_, err = v.ask("GET", "/api/look/pending/ls", "")
	return err
}

func (v viewer) looks() (err error) {
	for _, look := range []struct{ path, says string }{
		{"/api/look/retrying", `"messages":1`}, {"/api/look/pending/ls", `"payments.later"`},
		{"/api/look/where?id=DELAY_INTAKE-1", `"found"`}, {"/api/look/timers/ls", `"k1"`},
		{"/api/look/timers/show?key=k1&target=payments.timer", `"pending"`}, {"/api/look/dead/ls?by=code", `"letters":2`},
		{"/api/look/dead/ls", `"orders.full.1"`}, {"/api/look/dead/show?id=1", `"undelivered"`},
		{"/api/targets", `"orders.patient"`}, {"/api/history?span=1h", `"delivered"`}, {"/api/ahead?span=1h", `"buckets"`},
	} {
		answer, e := v.ask("GET", look.path, "")
		answer = strings.ReplaceAll(answer, `\u003e`, ">")
		if e == nil && !strings.Contains(answer, look.says) || strings.Contains(answer, "cannot be") {
			e = fmt.Errorf("%s does not say %s: %s", look.path, look.says, answer)
		}
		err = errors.Join(err, e)
	}
	return err
}

// carryOutAll carries out all actions, with the resume after the pause.
func (v viewer) carryOutAll() (err error) {
	for _, action := range []string{
		`{"operation":"timers cancel","items":[{"key":"k0","target":"payments.timer"}]}`,
		`{"operation":"timers move","items":[{"key":"k1","target":"payments.timer","by":"+5m"}]}`,
		`{"operation":"timers fire","items":[{"key":"k1","target":"payments.timer"}]}`,
		`{"operation":"timers cancel","items":[{"all":true,"target":"payments.>"}]}`,
		`{"operation":"dead resend","items":[{"id":1,"to":"payments.rescued"}]}`,
		`{"operation":"dead rm","items":[{"code":"undelivered","target":"orders.>"}]}`,
	} {
		err = errors.Join(err, v.act(action))
	}
	paused := v.act(`{"operation":"pause","items":[{"pattern":"payments.paused"}]}`)
	if paused == nil {
		paused = v.act(`{"operation":"resume","items":[{"pattern":"payments.paused"}]}`)
	}
	return errors.Join(err, paused)
}

// act plans an action, and carries it out.
func (v viewer) act(action string) error {
	ticket, err := v.plan(action)
	if err == nil {
		err = v.carryOut(ticket)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	return nil
}

// plan returns the ticket of a planned action.
func (v viewer) plan(action string) (ticket string, err error) {
	answer, err := v.ask("POST", "/api/plan", action)
	if err != nil {
		return "", err
	}
	var plan struct{ Ticket, Sentence string }
	if err := json.Unmarshal([]byte(answer), &plan); err != nil || plan.Ticket == "" {
		return "", fmt.Errorf("no ticket: %s", answer)
	}
	return plan.Ticket, nil
}

// carryOut returns an error unless the page carries out a planned action.
func (v viewer) carryOut(ticket string) error {
	answer, err := v.ask("POST", "/api/act", fmt.Sprintf(`{"ticket":%q}`, ticket))
	if err == nil && !strings.Contains(answer, `"good":true`) {
		err = errors.New(answer)
	}
	return err
}

// TestTicketActsOnce: if the page is asked several times to carry out one valid plan, the series makes one extra
// delivery. A second plan makes a second extra delivery.
func TestTicketActsOnce(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimerConfig(t)
		b, c := harness.Start(t, s, cfg)
		in := c.Subscribe("orders.>")
		c.Publish("delaytimer.k.orders.x", "body", "Delay-Every", "1d")
		v := newViewer(b.Broker, func(context.Context) (*inspect.Inspector, error) {
			return inspect.Open(s.Connect(nats.Name("page")), cfg)
		})
		for plans := 1; plans <= 2; plans++ {
			ticket, err := v.plan(`{"operation":"timers fire","items":[{"key":"k","target":"orders.x"}]}`)
			natstest.NoError(t, err)
			for range 3 {
				natstest.NoError(t, v.carryOut(ticket))
				time.Sleep(50 * time.Second)
			}
			harness.CheckCount(t, in.Arrivals(), plans)
		}
	})
}
