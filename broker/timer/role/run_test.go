package role

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats.go"

	"delaybroker/test/natstest"
)

// TestReadRun: a run begins after the last entry that is not a debounced set.
func TestReadRun(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]uint64{ // the first set of the run of the last set
		"debounced":                            1,
		"debounced debounced debounced":        1,
		"debounced gone debounced":             1,
		"set debounced debounced":              2,
		"debounced set debounced":              3,
		"debounced cancel:1 debounced":         3,
		"debounced fired:1 debounced":          3,
		"debounced unproven:1 debounced":       3,
		"debounced fired:1 over:1 debounced":   4,
		"debounced every debounced debounced":  3,
		"debounced debounced cancel debounced": 4,
	} {
		bubble(t, func(t *testing.T, e *entries) {
			e.write(words)
			start, err := e.readRun(t.Context(), subject, uint64(len(strings.Fields(words))), runStart{})
			if err != nil || start.set != want {
				t.Errorf("%s: the run begins with %d, %v; want %d", words, start.set, err, want)
			}
		})
	}
}

// TestRunEndsWhileItIsRead: between two requests, another instance removes the first set of a run, and then the cancel
// that has ended the run.
func TestRunEndsWhileItIsRead(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *entries) {
		e.write("debounced cancel:1 debounced")
		other := e.API
		var requests atomic.Int64
		natstest.Proxy(t, e.server, func(request string, _ *nats.Msg) bool {
			if strings.HasPrefix(request, "STREAM.MSG.GET.") && requests.Add(1) == 2 {
				for _, sequence := range []uint64{1, 2} {
					if err := other.Delete(t.Context(), e.Name(), sequence); err != nil {
						t.Error(err)
					}
				}
			}
			return false
		})
		e.API.API = natstest.ProxyAPI
		progress, err := e.readRun(t.Context(), subject, 3, runStart{})
		if !errors.Is(err, errRunEnded) || progress != (runStart{}) {
			t.Errorf("the run begins with %+v, %v; want %v", progress, err, errRunEnded)
		}
		synctest.Wait()
		if start, err := e.readRun(t.Context(), subject, 3, progress); start.set != 3 || err != nil {
			t.Errorf("the run begins with %d, %v; want 3", start.set, err)
		}
	})
}
