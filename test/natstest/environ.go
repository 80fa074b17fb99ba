package natstest

import (
	"os"
	"strings"
	"testing"
)

// ClearEnv clears the environment variables with settings of the broker, until the test ends.
func ClearEnv(t *testing.T) {
	t.Helper()
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "DELAY_") || strings.HasPrefix(name, "NATS_") {
			t.Setenv(name, "") // puts it back afterwards
			os.Unsetenv(name)
		}
	}
}

// Long leaves out a test that takes more than some seconds of a processor when go test runs with -short.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("NOT RUN: -short leaves out tests that take long")
	}
}
