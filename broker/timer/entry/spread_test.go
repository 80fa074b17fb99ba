package entry_test

import (
	"testing"
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
)

// TestSpreadOfTimer: the key and the target of a timer decide its part of Delay-Spread, so a timer that is set again
// keeps its part. A move to a time is exact. A series and a debounced timer have no Delay-Spread.
func TestSpreadOfTimer(t *testing.T) {
	set := func(subject string, sequence uint64, lines ...string) (entry.Pending, *message.Problem) {
		return entry.ParseSet(policy, message.Incoming{
			Stream: "DELAY_TIMERS", Sequence: sequence, At: storedAt, Subject: subject, Header: header(lines...),
		})
	}
	const subject = "delaytimer.order-42.orders.expire"
	first, problem := set(subject, 7, "Delay-For: 1h", "Delay-Spread: 10m")
	again, _ := set(subject, 8, "Delay-For: 1h", "Delay-Spread: 10m", "Nats-Msg-Id: other")
	other, _ := set("delaytimer.order-43.orders.expire", 7, "Delay-For: 1h", "Delay-Spread: 10m")
	part := first.Due.Sub(storedAt.Add(time.Hour))
	if problem != nil || part <= 0 || part >= 10*time.Minute || !again.Due.Equal(first.Due) || other.Due.Equal(first.Due) {
		t.Errorf("due %v, again %v, another key %v, problem %v", first.Due, again.Due, other.Due, problem)
	}
	moved := entry.MoveHeader(header("Delay-For: 1h", "Delay-Spread: 10m", "X: 1"), message.HeaderFor, "0s", 7, "")
	if moved[message.HeaderSpread] != nil || moved["X"] == nil {
		t.Errorf("a move has the headers %v", moved)
	}
	for _, line := range []string{"Delay-Every: 1h", "Delay-Cron: 0 3 * * *", "Delay-Max-Wait: 2h"} {
		lines := []string{"Delay-Spread: 10m", line}
		if line == "Delay-Max-Wait: 2h" {
			lines = append(lines, "Delay-For: 1h")
		}
		_, problem := set(subject, 7, lines...)
		wantProblem(t, line, problem, message.BadTimer, "Delay-Spread", "leave it out")
	}
}
