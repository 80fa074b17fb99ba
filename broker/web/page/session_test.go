package page

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// TestMissingRightNamesThePagesUser: the error of a missing permission names the page's user, and the setting for a
// separate user. Other errors do not.
func TestMissingRightNamesThePagesUser(t *testing.T) {
	for err, want := range map[error]bool{
		fmt.Errorf("ask: %w: Publish to x", nats.ErrPermissionViolation): true,
		errors.New("no leader"): false,
	} {
		said := explain(err)
		if strings.Contains(said, "DELAY_HTTP_CONTEXT") != want || !strings.HasPrefix(said, err.Error()) {
			t.Errorf("%v: got %q; the setting named: want %v", err, said, want)
		}
	}
}
