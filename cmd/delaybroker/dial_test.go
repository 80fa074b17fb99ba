package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// The log names a missing permission of the broker, with its subject. It does not repeat the line for every message.
func TestRightRefused(t *testing.T) {
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
	t.Setenv("NATS_USER", "broker")
	t.Setenv("NATS_PASSWORD", "b")
	r := start(t)
	r.log.await(t, "ready")
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
