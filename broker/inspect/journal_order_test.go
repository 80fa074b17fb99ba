package inspect_test

import (
	"testing"
	"time"

	"delaybroker/broker/inspect"
	"delaybroker/broker/journal"
	"delaybroker/broker/operation"
	"delaybroker/test/natstest"
)

// TestJournalIsInOrder: lanes end their messages in another order than the times of the records show. The rows of a
// page are in the order of their times.
func TestJournalIsInOrder(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := inspect.Journaling(t)
		inspect.CreateStreams(t, s, cfg)
		i := inspect.OpenAs(t, s, cfg, "")
		began := time.Now()
		var stored []journal.Record
		for _, ms := range []int{134, 96, 250, 97} {
			stored = append(stored, journal.Record{ID: "DELAY_1s-1-946684800000000000", Target: "orders.a",
				At: began.Add(time.Duration(ms) * time.Millisecond), Due: began})
		}
		inspect.WriteRecords(t, s, i, stored...)
		o, _ := operation.Find("journal")
		u := o.New(operation.Bounds{})
		var rows []int64
		_, err := u.Look(t.Context(), &operation.Desk{Inspector: i}, func(row any) error {
			rows = append(rows, row.(inspect.Record).At.Sub(began).Milliseconds())
			return nil
		})
		natstest.NoError(t, err)
		if len(rows) != 4 || rows[0] != 96 || rows[1] != 97 || rows[2] != 134 || rows[3] != 250 {
			t.Errorf("the rows have the times %v, want 96, 97, 134 and 250 ms", rows)
		}
	})
}
