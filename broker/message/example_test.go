package message_test

import (
	"fmt"
	"time"

	"delaybroker/broker/message"
)

// Parse parses the request in a stored message. The subject has the target and the delay. The delay begins with the
// server's timestamp.
func ExamplePolicy_Parse() {
	names, err := message.NewNames(message.DefaultPrefix)
	if err != nil {
		panic(err)
	}
	policy := message.Policy{Names: names, MaxDelay: 366 * 24 * time.Hour}
	stored := message.Incoming{
		Stream: "DELAY_30m", Sequence: 7, At: time.Date(2026, 12, 24, 18, 0, 0, 0, time.UTC),
		Subject: "delay.30m.orders.expire", Header: message.Header{"Traceparent": {"00-1-2-01"}, "Nats-Rollup": {"all"}},
	}
	request, _ := policy.Parse(stored)
	fmt.Println(request.Target, "at", request.Due.Format(time.TimeOnly), "with", request.User)

	stored.Subject = "delayin.1.5h.orders.expire"
	_, problem := policy.Parse(stored)
	fmt.Println(problem.Code)
	// Output:
	// orders.expire at 18:30:00 with map[Traceparent:[00-1-2-01]]
	// bad_time
}
