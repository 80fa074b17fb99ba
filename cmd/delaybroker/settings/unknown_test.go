package settings

import (
	"slices"
	"testing"
)

func TestUnknownNames(t *testing.T) {
	known := variableNames()
	environ := []string{
		"DELAY_LEVELS=1s", "DELAY_NATS_URL=x", "NATS_URL=x", "PATH=x", "DELAYED=x", // valid, or of other programs
		"DELAY_LEVLES=1s", "DELAY_HTTP_ADDRESS=x", "DELAY_FAVOURITE_COLOUR=x",
		"NATS_URI=x", // although NATS_URL is set
		"NATS_USERNAME=x", "NATS_COLOR=on",
		"NATS_PASS=", // empty
		// Kubernetes sets these for Services called "delay" and "delay-broker".
		"DELAY_SERVICE_HOST=10.0.0.1", "DELAY_SERVICE_PORT=8422", "DELAY_SERVICE_PORT_HTTP=8422",
		"DELAY_PORT=tcp://10.0.0.1:8422", "DELAY_PORT_8422_TCP=tcp://10.0.0.1:8422", "DELAY_PORT_8422_TCP_PROTO=tcp",
		"DELAY_PORT_8422_TCP_PORT=8422", "DELAY_PORT_8422_TCP_ADDR=10.0.0.1",
		"DELAY_BROKER_SERVICE_HOST=10.0.0.1", "DELAY_BROKER_PORT_8422_TCP_ADDR=10.0.0.1",
	}
	got := unknownNames(environ, known)
	want := []UnknownName{
		{"DELAY_LEVLES", "DELAY_LEVELS"},
		{"DELAY_HTTP_ADDRESS", "DELAY_HTTP_ADDR"},
		{"DELAY_FAVOURITE_COLOUR", ""},
		{"NATS_USERNAME", "NATS_USER"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
