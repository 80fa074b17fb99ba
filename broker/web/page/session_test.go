package page

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// TestExplain: only the text of a missing permission names the page's user and the setting for this user.
func TestExplain(t *testing.T) {
	for err, want := range map[error]bool{
		fmt.Errorf("ask: %w: Publish to x", nats.ErrPermissionViolation): true,
		errors.New("no leader"): false,
	} {
		got := explain(err)
		if strings.Contains(got, "DELAY_HTTP_CONTEXT") != want || !strings.HasPrefix(got, err.Error()) {
			t.Errorf("%v: got %q, want the setting: %v", err, got, want)
		}
	}
}
