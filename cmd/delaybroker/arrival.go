package main

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/client"
	"delaybroker/cmd/delaybroker/terminal"
)

// An arrival is a message that a subscriber received. Its lateness is by the local clock.
type arrival struct {
	client.Arrival // without a due time if no broker delivered the message

	message *nats.Msg
}

// newArrival returns an arrival at the current time.
func newArrival(m *nats.Msg) arrival {
	delay, _ := client.ParseArrival(m)
	return arrival{delay, m}
}

// MarshalJSON leaves out the due time, the lateness and the id if no broker delivered the message.
func (a arrival) MarshalJSON() ([]byte, error) {
	m := a.message
	object := map[string]any{"time": a.At.UTC(), "subject": m.Subject}
	if !a.Due.IsZero() {
		object["due"], object["late_ms"], object["id"] = a.Due, terminal.Milliseconds(a.Lateness()), a.ID
	}
	if len(m.Header) > 0 {
		object["headers"] = m.Header
	}
	if utf8.Valid(m.Data) {
		object["body"] = string(m.Data)
	} else {
		object["body_base64"] = m.Data
	}
	return json.Marshal(object)
}
