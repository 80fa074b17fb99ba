package page

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// TestMissingRightNamesThePagesUser: who reads on the page that a right is missing learns whose it is, and which
// setting gives the page a user of its own. What is wrong otherwise has nothing to do with that.
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
