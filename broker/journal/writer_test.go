package journal

import (
	"context"
	"slices"
	"testing"
	"time"

	"delaybroker/test/natstest"
)

// TestBatches: a start stores an empty batch. A record waits 150 ms for further records. Each record is in one batch,
// and a stop stores the waiting records.
func TestBatches(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.create()
		began := time.Now()
		w, stop := k.writer("kitchen")
		time.Sleep(time.Second)
		w.Add(record(1))
		time.Sleep(flushInterval - 1)
		w.Add(record(2))
		time.Sleep(time.Minute)
		w.Add(record(3))
		stop()
		heads, times, _ := k.batches()
		var after []time.Duration
		var records []int
		for i, h := range heads {
			after, records = append(after, times[i].Sub(began)), append(records, h.Records)
			if h.Instance != "kitchen" || h.Number != uint64(i+1) || h.Lost != 0 || h.Start != heads[0].Start {
				t.Errorf("batch %d: got %+v, want the next number and no loss", i+1, h)
			}
		}
		stopped := time.Second + flushInterval - 1 + time.Minute
		want := []time.Duration{0, time.Second + flushInterval, stopped}
		if !slices.Equal(after, want) || !slices.Equal(records, []int{0, 2, 1}) {
			t.Errorf("stored %v records after %v, want 0, 2 and 1 after %v", records, after, want)
		}
		if stored, dropped := w.Counts(); stored != 3 || dropped != 0 {
			t.Errorf("%d records count as stored, and %d as dropped; want 3 and 0", stored, dropped)
		}
	})
}

// TestRoomIsBounded: while the stream is missing, records wait in bounded memory, and further records are dropped.
// After the stream is created, the writer stores the waiting records and reports the number of the dropped records.
func TestRoomIsBounded(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.room = 256 << 10
		w, _ := k.writer("kitchen")
		const many = 10_000
		for n := range many {
			w.Add(record(n))
			time.Sleep(time.Millisecond)
		}
		_, dropped := w.Counts()
		if dropped < many/2 || dropped > many-1000 || w.Missing() != many {
			t.Errorf("%d of %d records were dropped, and %d are missing; want 5000 to 9000, and all", dropped, many, w.Missing())
		}
		k.create()
		time.Sleep(time.Minute)
		found, r := k.search(Query{})
		if stored, _ := w.Counts(); len(found) != many-int(dropped) || stored != many-dropped {
			t.Errorf("found %d, want %d", len(found), many-dropped)
		}
		if r.Dropped != dropped || r.Complete() || w.Missing() != 0 {
			t.Errorf("reported %+v, %d missing; want %d dropped, and none missing", r, w.Missing(), dropped)
		}
		if heads, _, sizes := k.batches(); len(heads) > 4 || slices.Max(sizes) > fullBatch+1024 {
			t.Errorf("stored as %d batches, of at most %d bytes; want at most 4", len(heads), slices.Max(sizes))
		}
	})
}

// TestQueuedBatchIsTooOld: the writer drops a batch that has become too old while it waited for earlier batches. The
// reader would take the batch for a copy. The next batch reports the dropped records.
func TestQueuedBatchIsTooOld(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		// The subscriber does not answer, so each publish waits for its whole timeout.
		silent, err := k.conn.SubscribeSync(k.policy.Names.JournalSubject())
		natstest.NoError(t, err)
		natstest.Flush(t, k.conn)
		w, _ := k.writer("kitchen")
		const many = 80_000 // records of some 25 batches
		for n := range many {
			w.Add(record(n))
		}
		time.Sleep(maxRecordAge - 10*time.Second)
		w.Add(record(many))
		time.Sleep(20 * time.Second)
		natstest.NoError(t, silent.Unsubscribe())
		k.create()
		time.Sleep(2 * time.Minute)
		found, r := k.search(Query{})
		if r.Duplicates != 0 || len(found) != 1 || r.Dropped != many {
			t.Errorf("found %d records, %d copies, %d dropped; want the new record, no copy, and %d dropped",
				len(found), r.Duplicates, r.Dropped, many)
		}
	})
}

// TestStopWithoutAStream: a stop waits for the journal for the rest of the grace period, but at least 250 ms and at
// most a second.
func TestStopWithoutAStream(t *testing.T) {
	for drain, want := range map[time.Duration]time.Duration{
		0: time.Second, 900 * time.Millisecond: time.Second, 1400 * time.Millisecond: 600 * time.Millisecond,
		2 * time.Second: 250 * time.Millisecond,
	} {
		natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
			k := newKit(t, s)
			w, stop := k.writer("kitchen")
			time.Sleep(time.Minute)
			w.Add(record(1))
			w.BeginStop()
			time.Sleep(drain)
			began := time.Now()
			stop()
			if took := time.Since(began); took != want {
				t.Errorf("after a drain of %s, the stop took %s, want %s", drain, took, want)
			}
			if _, got := w.Counts(); got != 1 {
				t.Errorf("%d records count as dropped, want 1", got)
			}
			w.Add(record(2))
			if _, got := w.Counts(); got != 2 {
				t.Errorf("after the stop, %d records count as dropped, want 2", got)
			}
		})
	}
}

// TestAcknowledgementOfAnotherStream: a batch does not count as stored if another stream acknowledges it.
func TestAcknowledgementOfAnotherStream(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		sub, err := k.conn.SubscribeSync(k.policy.Names.JournalSubject())
		if err != nil {
			t.Fatal(err)
		}
		w, _ := k.writer("kitchen")
		w.Add(record(1))
		for range 3 {
			m, err := sub.NextMsgWithContext(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Respond([]byte(`{"stream":"ORDERS","seq":7}`)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		if got, _ := w.Counts(); got != 0 {
			t.Errorf("%d records count as stored, want none", got)
		}
	})
}
