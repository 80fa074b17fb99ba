package jsapi

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
)

// TestRefusedSubject reads the subject of a refused publish from the error of nats.go.
func TestRefusedSubject(t *testing.T) {
	violation := func(text string) error { return fmt.Errorf("%w: %s", nats.ErrPermissionViolation, text) }
	for _, tt := range []struct {
		err     error
		subject string
		ok      bool
	}{
		{violation(`Permissions Violation for Publish to "orders.a"`), "orders.a", true},
		{violation(`Permissions Violation for Publish to "a\"b"`), `a"b`, true},
		{violation(`Permissions Violation for Subscription to "orders.a"`), "", false},
		{violation(`Permissions Violation for Publish to orders.a`), "", false},
		{errors.New(`Permissions Violation for Publish to "orders.a"`), "", false},
		{nil, "", false},
	} {
		if subject, ok := RefusedSubject(tt.err); subject != tt.subject || ok != tt.ok {
			t.Errorf("%v: got %q, %v, want %q, %v", tt.err, subject, ok, tt.subject, tt.ok)
		}
	}
}

// TestRefusedOperation: every refusal by the server is an error with its text.
func TestRefusedOperation(t *testing.T) {
	violation := func(text string) error { return fmt.Errorf("%w: %s", nats.ErrPermissionViolation, text) }
	for _, tt := range []struct {
		err  error
		what string
		ok   bool
	}{
		{violation(`Permissions Violation for Publish to "orders.a"`), "Publish to orders.a", true},
		{violation(`Permissions Violation for Subscription to "_INBOX.x.*"`), "Subscription to _INBOX.x.*", true},
		{errors.New(`Permissions Violation for Publish to "orders.a"`), "", false},
	} {
		if what, ok := RefusedOperation(tt.err); what != tt.what || ok != tt.ok {
			t.Errorf("%v: got %q, %v, want %q, %v", tt.err, what, ok, tt.what, tt.ok)
		}
	}
}
