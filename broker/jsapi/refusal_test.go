package jsapi

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
)

// TestRefusals parses the server's permission errors, as nats.go returns them.
func TestRefusals(t *testing.T) {
	violation := func(text string) error { return fmt.Errorf("%w: %s", nats.ErrPermissionViolation, text) }
	for _, tt := range []struct {
		err       error
		operation string // empty if the error is not a refusal
		subject   string // empty if the error is not the refusal of a publish
	}{
		{violation(`Permissions Violation for Publish to "orders.a"`), "Publish to orders.a", "orders.a"},
		{violation(`Permissions Violation for Publish to "a\"b"`), `Publish to a\b`, `a"b`},
		{violation(`Permissions Violation for Publish to orders.a`), "Publish to orders.a", ""},
		{violation(`Permissions Violation for Subscription to "_INBOX.x.*"`), "Subscription to _INBOX.x.*", ""},
		{errors.New(`Permissions Violation for Publish to "orders.a"`), "", ""},
		{nil, "", ""},
	} {
		if got, ok := RefusedOperation(tt.err); got != tt.operation || ok != (tt.operation != "") {
			t.Errorf("%v: got the operation %q, %v, want %q", tt.err, got, ok, tt.operation)
		}
		if got, ok := RefusedSubject(tt.err); got != tt.subject || ok != (tt.subject != "") {
			t.Errorf("%v: got the subject %q, %v, want %q", tt.err, got, ok, tt.subject)
		}
	}
}
