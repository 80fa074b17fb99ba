package main

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
)

// An arrival is a message as a consumer got it. How late it is, is by our own clock.
type arrival struct {
	at      time.Time
	subject string
	id      string
	due     time.Time // zero for a message that no broker delivered
	header  nats.Header
	body    []byte
}

// newArrival takes the time of the call for the time of the arrival.
func newArrival(subject string, header nats.Header, body []byte) arrival {
	told, _ := message.ParseArrival(message.Header(header))
	return arrival{at: time.Now(), subject: subject, id: told.ID, due: told.Due, header: header, body: body}
}

func (a arrival) late() time.Duration { return a.at.Sub(a.due) }

// MarshalJSON leaves out the due time, the lateness and the id of a message that no broker delivered.
func (a arrival) MarshalJSON() ([]byte, error) {
	object := map[string]any{"time": a.at.UTC(), "subject": a.subject}
	if !a.due.IsZero() {
		object["due"], object["late_ms"], object["id"] = a.due, milliseconds(a.late()), a.id
	}
	if len(a.header) > 0 {
		object["headers"] = a.header
	}
	if utf8.Valid(a.body) {
		object["body"] = string(a.body)
	} else {
		object["body_base64"] = a.body
	}
	return json.Marshal(object)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// formatLate shows fractions of milliseconds below ten seconds, and whole seconds above.
func formatLate(d time.Duration) string {
	if -10*time.Second < d && d < 10*time.Second {
		return fmt.Sprintf("%.1f ms", milliseconds(d))
	}
	return d.Round(time.Second).String()
}
