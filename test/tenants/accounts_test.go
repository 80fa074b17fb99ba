package tenants

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

func TestMain(m *testing.M) { harness.Main(m) }

const accountsConf = "../permissions/accounts.conf"

// TestTenantsShareBrokerAcrossAccounts runs one broker for tenants with an account each, with the imports and exports
// of permissions/accounts.conf. Messages reach streams and core subscribers, and refusals reach the broker, with each
// of two settings of DELAY_DELIVER.
func TestTenantsShareBrokerAcrossAccounts(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	for _, modes := range []string{"auto", "*.stored.>=stream,*.core.>=core,auto"} {
		if err := runOnAccounts(t, accountsConf, modes, accountsWork); err != nil {
			t.Errorf("DELAY_DELIVER=%s: %v", modes, err)
		}
	}
}

// TestAnswersBetweenAccounts: a client in another account gets answers about timers only if the broker may publish on
// _R_.>. The server maps the client's reply subject to such a subject.
func TestAnswersBetweenAccounts(t *testing.T) {
	t.Parallel()
	file := changedAccounts(t, "broker-control.conf", func(text string) string {
		return strings.Replace(text, strconv.Quote(accountsReply), "", 1)
	})
	err := runOnAccounts(t, file, "auto", accountsWork)
	if err == nil || !strings.Contains(err.Error(), "asks delayctl.timer.get.") {
		t.Errorf("without the right: %v, want a get without an answer", err)
	}
}

// TestEveryImportIsNeeded removes each import, export and response threshold from permissions/accounts.conf in turn.
// Each removal makes accountsWork fail.
func TestEveryImportIsNeeded(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	conf, err := os.ReadFile(accountsConf)
	natstest.NoError(t, err)
	text := string(conf)
	imports := regexp.MustCompile(`\{ (service|stream): .* \}`).FindAllStringIndex(text, -1)
	thresholds := regexp.MustCompile(`, response_threshold: "5s"`).FindAllStringIndex(text, -1)
	if len(imports) != 28 || len(thresholds) != 2 {
		t.Fatalf("found %d imports and exports and %d thresholds, want 28 and 2", len(imports), len(thresholds))
	}
	for _, cut := range append(imports, thresholds...) {
		file := changedAccounts(t, "accounts.conf", func(text string) string { return text[:cut[0]] + text[cut[1]:] })
		err := runOnAccounts(t, file, "auto", accountsWork)
		if err == nil {
			t.Errorf("nothing breaks without %s", text[cut[0]:cut[1]])
		}
		t.Logf("without %s: %v", text[cut[0]:cut[1]], err)
	}
}

// changedAccounts copies the folder of accounts.conf, changes one of its files, and returns the path of accounts.conf.
func changedAccounts(t *testing.T, name string, change func(string) string) string {
	t.Helper()
	dir := t.TempDir()
	natstest.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Dir(accountsConf))))
	file := filepath.Join(dir, name)
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(change(string(text))), 0o600)
	}
	natstest.NoError(t, err)
	return filepath.Join(dir, filepath.Base(accountsConf))
}

// runOnAccounts runs a scene on a server with a configuration file. The broker's DELAY_DELIVER is modes.
func runOnAccounts(t *testing.T, file, modes string, scene func(*stage) error) (err error) {
	t.Helper()
	opts, err := server.ProcessConfigFile(file)
	if err != nil {
		return err // the server refuses an import without its export
	}
	natstest.BubbleWith(t, *opts, func(_ *testing.T, s *natstest.Server) {
		err = scene(&stage{Server: s, modes: modes})
	})
	return err
}

// accountsWork sends every kind of message across the accounts: a request and its acknowledgement, a delivery and its
// acknowledgement, a refused delivery, and the dead letter.
func accountsWork(s *stage) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Hour)
	defer cancel()
	stop, err := s.provisionAndRun()
	if err != nil {
		return err
	}
	defer stop()

	// In accounts.conf, payments writes its name between the delay and the subject, and orders does not.
	names := map[string]string{"orders": "", "payments": "payments."}
	received := make(map[string]func() map[string]int)
	for tenant, name := range names {
		js := s.JetStream(s.as(tenant, tenant[:1]))
		if err := targets(ctx, js, tenant); err != nil {
			return err
		}
		if received[tenant], err = s.listen(js.Conn(), tenant+".core.>", "delaydead.>"); err != nil {
			return err
		}
		if err := requests(ctx, js, tenant, name); err != nil {
			return err
		}
	}
	// A tenant reaches no target of the other tenant. Payments has no import for the subjects of orders. For orders, a
	// subject below "payments" is a target of orders.
	js := s.JetStream(s.as("payments", "p"))
	if _, err := js.Publish(ctx, "delay.10s.orders.core.x", nil,
		jetstream.WithRetryAttempts(0)); !errors.Is(err, jetstream.ErrNoStreamResponse) {
		return fmt.Errorf("payments may request a delay to orders: %v", err)
	}
	if _, err := s.JetStream(s.as("orders", "o")).Publish(ctx, "delay.10s.payments.core.x", nil); err != nil {
		return err
	}

	time.Sleep(80 * time.Second) // only the timers are not due; no account should still wait for an answer
	for _, account := range []string{"ORDERS", "PAYMENTS"} {
		a, err := s.Server.Server().LookupAccount(account)
		if err != nil {
			return err
		}
		if n := a.NumPendingAllResponses(); n > 0 {
			return fmt.Errorf("%s still waits for %d answers", account, n)
		}
	}
	time.Sleep(15 * time.Minute) // the last delivery is due after 10 minutes
	for tenant := range names {
		if err := s.checkReceived(ctx, tenant, received[tenant]()); err != nil {
			return err
		}
	}
	return nil
}

// checkReceived checks the messages that a tenant received, and the messages in its stream.
func (s *stage) checkReceived(ctx context.Context, tenant string, got map[string]int) error {
	want := map[string]int{tenant + ".core.x": 4, "delaydead.undelivered." + tenant + ".full.x": 1}
	if tenant == "orders" {
		want["delaydead.undelivered.orders.payments.core.x"] = 1
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Errorf("%s received %v, want %v", tenant, got, want)
	}
	st, err := s.JetStream(s.as(tenant, tenant[:1])).Stream(ctx, "STORED")
	if err != nil {
		return err
	}
	if n := st.CachedInfo().State.LastSeq; n != 1 {
		return fmt.Errorf("the stream of %s got %d messages, want 1", tenant, n)
	}
	return nil
}

// requests requests a delay in each form that a tenant may use, reads a timer, and expects that the tenant cannot
// publish a hop.
func requests(ctx context.Context, js jetstream.JetStream, tenant, name string) error {
	for _, subject := range []string{
		"delay.10s." + name + "core.x", "delayin.1500ms." + name + "core.x",
		fmt.Sprintf("delayat.%d.%score.x", time.Now().Add(time.Minute).Unix(), name),
		"delay.10s." + name + "stored.x", "delay.15s." + name + "full.x", "delaytimer.key." + name + "core.x",
	} {
		wait, cancel := context.WithTimeout(ctx, time.Second)
		m := &nats.Msg{Subject: subject, Header: nats.Header{}}
		if strings.HasPrefix(subject, "delaytimer.") {
			m.Header.Set("Delay-For", "10m")
		}
		_, err := js.PublishMsg(wait, m, jetstream.WithRetryAttempts(0))
		cancel()
		if err != nil {
			return fmt.Errorf("%s publishes on %s: %w", tenant, subject, err)
		}
	}
	ask := "delayctl.timer.get.key." + name + "core.x"
	wait, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	answer, err := js.Conn().RequestWithContext(wait, ask, nil)
	if err != nil {
		return fmt.Errorf("%s asks %s: %w", tenant, ask, err)
	}
	if !strings.Contains(string(answer.Data), `"outcome":"pending"`) {
		return fmt.Errorf("the answer to %s on %s is %s", tenant, ask, answer.Data)
	}
	if _, err := js.Publish(ctx, "delaysys.hop.10s."+name+"core.x", nil,
		jetstream.WithRetryAttempts(0)); !errors.Is(err, jetstream.ErrNoStreamResponse) {
		return fmt.Errorf("%s may publish a hop: %v", tenant, err)
	}
	return nil
}

// targets creates a stream with room, and a full stream.
func targets(ctx context.Context, js jetstream.JetStream, tenant string) error {
	for _, c := range []jetstream.StreamConfig{
		{Name: "STORED", Subjects: []string{tenant + ".stored.>"}},
		{Name: "FULL", Subjects: []string{tenant + ".full.>"}, MaxMsgs: 1, Discard: jetstream.DiscardNew},
	} {
		if _, err := js.CreateStream(ctx, c); err != nil {
			return err
		}
	}
	_, err := js.Publish(ctx, tenant+".full.x", nil)
	return err
}
