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
			t.Setenv(name, "") // restores the variable when the test ends
			os.Unsetenv(name)
		}
	}
}

// Long skips the test when go test runs with -short. Tests that take more than some seconds of processor time call it.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("NOT RUN: -short leaves out tests that take long")
	}
}
