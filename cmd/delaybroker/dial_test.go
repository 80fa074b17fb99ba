package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// A right that the broker lacks is named, with its subject, and not once for every message.
func TestRightRefused(t *testing.T) {
	if apart(t) {
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
	const said = "NATS denied the broker a permission: grant it to the broker's user; the broker retries"
	line := r.log.await(t, said)
	got, want := fmt.Sprint(line["err"]), `Publish to "orders.`
	if line["level"] != "ERROR" || line["link"] != "deliver" || !strings.Contains(got, want) {
		t.Errorf("got %v, want an error of link deliver with %s", line, want)
	}
	r.stop(t)
	if got := strings.Count(r.log.String(), said); got > 5 {
		t.Errorf("said %d times, want few", got)
	}
}
