package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker/streams"
	"delaybroker/test/natstest"
)

// The log names a missing permission of the broker, with its subject. It does not repeat the line for every message.
func TestServeLogsMissingPermission(t *testing.T) {
	if inOwnProcess(t) {
		return
	}
	noOrders := &server.Permissions{
		Publish: &server.SubjectPermission{Allow: []string{">"}, Deny: []string{"orders.>"}},
	}
	s := startServer(t, server.Options{Port: server.RANDOM_PORT, Users: []*server.User{
		{Username: "broker", Password: "b", Permissions: noOrders},
		{Username: "client", Password: "c"},
	}})
	externalEnv(t, s.ClientURL())
	t.Setenv("DELAY_PROVISION", "create")
	login(t, "broker", "b")
	r := startReady(t)
	_, js := connect(t, strings.Replace(s.ClientURL(), "nats://", "nats://client:c@", 1))
	for i := range 50 {
		publish(t, js, fmt.Sprintf("delay.1s.orders.%d", i), "")
	}
	const warning = "NATS denied the broker a permission: grant it to the broker's user; the broker retries"
	line := r.log.await(t, warning)
	got, want := fmt.Sprint(line["err"]), `Publish to "orders.`
	if line["level"] != "ERROR" || line["link"] != "deliver" || !strings.Contains(got, want) {
		t.Errorf("got %v, want an error of link deliver with %s", line, want)
	}
	r.stop(t)
	if got := strings.Count(r.log.String(), warning); got > 5 {
		t.Errorf("logged %d times, want few", got)
	}
}

// If an external server rejects the credentials at the start, serve ends with exit code 1.
func TestServeEndsWithRejectedCredentials(t *testing.T) {
	if inOwnProcess(t) {
		return
	}
	s := startServer(t, server.Options{Port: server.RANDOM_PORT, Authorization: "right"})
	externalEnv(t, s.ClientURL())
	t.Setenv("NATS_TOKEN", "wr0ng")
	r := start(t)
	err := r.end(t)
	if !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("got %v, want ErrAuthorization", err)
	}
	if got, want := exitCode(err), 1; got != want {
		t.Errorf("exit code: got %d, want %d", got, want)
	}
	if strings.Contains(r.log.String(), "wr0ng") {
		t.Errorf("got the token in the log:\n%s", r.log)
	}
}

// A password is rotated on the server first. The broker reports the rejection, and continues with the new password in
// its context.
func TestServeOutlivesRotatedPassword(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	tenant := &server.User{Username: "orders", Password: "orders"}
	host := natstest.RunWith(t, server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true,
		Users: []*server.User{{Username: "broker", Password: "0ld"}, tenant},
	})
	s := host.Server()
	context := func(password string) string {
		return fmt.Sprintf(`{"url": %q, "user": "broker", "password": %q}`, s.ClientURL(), password)
	}
	httpAddr, path := natstest.FreeAddress(t), writeFile(t, "broker.json", context("0ld"))
	externalEnv(t, "")
	t.Setenv("NATS_CONTEXT", path)
	t.Setenv("DELAY_HTTP_ADDR", httpAddr)
	r := startReady(t)

	host.Reload(func(o *server.Options) {
		o.Port = s.Addr().(*net.TCPAddr).Port
		o.Users = []*server.User{{Username: "broker", Password: "n3w"}, tenant}
	})
	for range 4 {
		r.log.await(t, "NATS rejects the credentials of a link; the link reads them again and retries")
	}
	eventually(t, "three rejections of each link", func() bool { // nats.go alone would give up after the second
		closed, err := s.Connz(&server.ConnzOptions{State: server.ConnClosed, Username: true, Limit: 1000})
		return err == nil && closed.Total >= 16 // four accepted logins, and twelve rejected ones
	})
	wantProbe(t, httpAddr, "/healthz", 200)
	t.Setenv("NATS_CONTEXT", "")
	wantCommandError(t, 1, []string{
		"nats: NATS rejects its credentials: nats: authorization violation: control deliver read write",
	}, "healthcheck", "--ready")

	natstest.NoError(t, os.WriteFile(path, []byte(context("n3w")), 0o600))
	for range 4 {
		r.log.await(t, "a link is reconnected to NATS")
	}
	nc, js := connect(t, "nats://orders:orders@"+s.Addr().String())
	sub := subscribe(t, nc, "orders.expire")
	publish(t, js, "delay.1s.orders.expire", "42")
	wantMessage(t, sub, "42")
	r.stop(t)
	for _, secret := range []string{"0ld", "n3w"} {
		if strings.Contains(r.log.String(), secret) {
			t.Errorf("got the password %q in the log:\n%s", secret, r.log)
		}
	}
}

// A server whose streams have no metadata is refused before the first stream is created.
func TestServeRefusesOldServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	natstest.NoError(t, err)
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go answerPings(conn)
		}
	}()
	externalEnv(t, "nats://"+l.Addr().String())
	err = start(t).end(t)
	if !errors.Is(err, streams.ErrServerTooOld) || !strings.Contains(fmt.Sprint(err), "2.9.10; upgrade it to 2.14.10") {
		t.Errorf("got %v, want the version and the advice", err)
	}
	if got, want := exitCode(err), 2; got != want {
		t.Errorf("exit code: got %d, want %d", got, want)
	}
}

// answerPings acts as a nats-server 2.9.10 without other clients.
func answerPings(conn net.Conn) {
	defer conn.Close()
	fmt.Fprint(conn, `INFO {"server_id":"S","version":"2.9.10","proto":1,"headers":true,"max_payload":1048576}`+"\r\n")
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if lines.Text() == "PING" {
			fmt.Fprint(conn, "PONG\r\n")
		}
	}
}
