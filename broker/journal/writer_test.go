package journal

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/test/natstest"
)

// TestBatches: a record waits 150 ms for further records, and a batch of 64 KiB does not wait. A writer without records
// stores a batch once a minute. At a stop, the writer stores the waiting records and marks the last batch.
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
		time.Sleep(time.Second)
		for n := range 900 { // of at least 80 bytes each
			w.Add(record(n))
		}
		synctest.Wait()
		time.Sleep(2 * time.Minute)
		w.Add(record(3))
		stop()
		heads, times, sizes := k.batches()
		var after []time.Duration
		var records []int
		for i, h := range heads {
			after, records = append(after, times[i].Sub(began)), append(records, h.Records)
			if h.Instance != "kitchen" || h.Number != uint64(i+1) || h.Previous != uint64(i) || h.Lost != nil ||
				h.End != (i == len(heads)-1) || h.Start != heads[0].Start {
				t.Errorf("batch %d: got %+v, want the next number, no loss, and an end only in the last batch", i+1, h)
			}
		}
		filled := time.Second + flushInterval - 1 + time.Second
		if len(records) > 2 && (records[2] < 700 || sizes[2] < fullBatch || sizes[2] > fullBatch+1024) {
			t.Errorf("the full batch has %d records, %d bytes; want some %d bytes", records[2], sizes[2], fullBatch)
		}
		want := []time.Duration{0, time.Second + flushInterval, filled, filled + flushInterval}
		want = append(want, want[3]+heartbeatInterval, filled+2*time.Minute)
		if !slices.Equal(after, want) {
			t.Errorf("stored after %v, want %v", after, want)
		}
		if records[1] != 2 || records[2]+records[3] != 900 || records[4] != 0 || records[5] != 1 {
			t.Errorf("the batches have %v records, want 2 in the second batch, 900 in the third and fourth, 0 in the fifth, "+
				"and 1 in the sixth", records)
		}
		if got := k.counts.Stored.Load(); got != 903 || k.counts.Dropped.Load() != 0 {
			t.Errorf("%d records count as stored, want 903", got)
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
		began := time.Now().UTC()
		for n := range many {
			w.Add(record(n))
			if w.waitingBytes > k.room+1024 {
				t.Fatalf("%d bytes wait, want at most %d", w.waitingBytes, k.room+1024)
			}
			time.Sleep(time.Millisecond)
		}
		dropped := int(k.counts.Dropped.Load())
		if dropped < many/2 || dropped > many-1000 {
			t.Errorf("%d of %d records were dropped, want 5000 to 9000", dropped, many)
		}
		k.create()
		time.Sleep(time.Minute)
		found, r := k.search(Query{})
		if len(found) != many-dropped || k.counts.Stored.Load() != uint64(many-dropped) {
			t.Errorf("found %d, want %d", len(found), many-dropped)
		}
		first := began.Add(time.Duration(many-dropped) * time.Millisecond)
		want := []Hole{{Instance: "kitchen", From: first, To: began.Add((many - 1) * time.Millisecond), Records: dropped,
			Reason: "dropped: the journal's stream stored nothing, or too little"}}
		if !slices.Equal(r.Holes, want) {
			t.Errorf("holes %+v, want %+v", r.Holes, want)
		}
		if heads, _, _ := k.batches(); len(heads) > 3 { // the writer joins waiting batches
			t.Errorf("stored as %d batches, want at most 3", len(heads))
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
		w, stop := k.writer("kitchen")
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
		stop()
		found, r := k.search(Query{})
		if r.Duplicates != 0 || len(found) != 1 || len(r.Holes) != 1 || r.Holes[0].Records != many {
			t.Errorf("found %d records, %d copies, holes %+v; want the new record, no copy, and a hole of %d records",
				len(found), r.Duplicates, r.Holes, many)
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
			if got := k.counts.Dropped.Load(); got != 1 {
				t.Errorf("%d records count as dropped, want 1", got)
			}
			w.Add(record(2))
			if got := k.counts.Dropped.Load(); got != 2 {
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
		if got := k.counts.Stored.Load(); got != 0 {
			t.Errorf("%d records count as stored, want none", got)
		}
	})
}
