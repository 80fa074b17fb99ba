package engine

import (
	"fmt"
	"reflect"
	"runtime"
	"testing"
	"time"

	"delaybroker/broker/config"
	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/role"
	"delaybroker/test/natstest"
)

// TestWaitingCost: a packed message takes at most 600 bytes in addition to its body and the client's headers, and at
// most the bytes that are accounted for it.
func TestWaitingCost(t *testing.T) {
	natstest.SkipShort(t)
	policy := newPolicy(t)
	for _, tt := range []struct {
		body, headers int
		hop           bool
	}{
		{0, 0, false}, {100, 0, false}, {256, 0, false}, {256, 2, false}, {256, 0, true}, {1000, 20, true},
		{33 << 10, 4, true},
	} {
		count := min(10_000, 100<<20/(tt.body+500))
		before := natstest.Heap()
		fs := newFlights(newBudget(config.DefaultHoldBytes, 1).Open(freeShare))
		var cursor lane.Cursor
		for seq := range uint64(count) {
			s := storedMessage(t, policy, seq+1, tt.body, tt.headers, tt.hop)
			f := fs.begin(s, cursor.Begin(seq+1, "x"))
			f.request, f.problem = policy.Parse(s.Incoming("DELAY_10s"))
			fs.packOrHold(f, f.nextAttempt().Add(time.Duration(seq)), leader.Time{})
		}
		took, accounted := natstest.Heap()-before, fs.bytes+spanCost*cursor.Span()
		t.Logf("a body of %d with %d headers takes %d bytes, and is accounted with %d", tt.body, tt.headers, took/count,
			accounted/count)
		if fs.packed != count || fs.waiting() != count {
			t.Fatalf("%d of %d are packed, %d wait", fs.packed, count, fs.waiting())
		}
		if extra := took/count - tt.body - tt.body/4 - 40*tt.headers; extra > 600 {
			t.Errorf("a waiting message takes %d bytes in addition to body and headers, want at most 600", extra)
		}
		if took > accounted || accounted > 2*took {
			t.Errorf("a waiting message takes %d bytes, and is accounted with %d", took/count, accounted/count)
		}
		runtime.KeepAlive(fs)
		runtime.KeepAlive(cursor)
	}
}

// TestUnpack: packing and unpacking change neither the message nor its accounted bytes. A timer is packed only if the
// lane permits that.
func TestUnpack(t *testing.T) {
	policy := newPolicy(t)
	for _, body := range []int{0, 256, maxPackedBody + 1} {
		fs := newTestFlights()
		s := storedMessage(t, policy, 7, body, 2, true)
		s.At = time.Unix(1, 2).UTC()
		for i := range s.Data {
			s.Data[i] = byte(i)
		}
		f := fs.begin(s, lane.Mark{})
		f.request, f.problem = policy.Parse(s.Incoming("DELAY_10s"))
		fs.setOverdue(f, epoch, true)
		f.Header, f.Subject = nil, ""
		f.timer = &role.Alarm{Subject: "delaytimer.k.orders.x"}
		if fs.pack(f, epoch) {
			t.Fatal("a timer is packed, although the lane refers to its flight")
		}
		fs.packsTimers = true
		want, bytes := *f, fs.bytes
		want.Data = append([]byte{}, s.Data...)
		fs.packOrHold(f, epoch, epoch.Add(-minPackedWait))
		if fs.packed != 1 || fs.bytes >= bytes {
			t.Fatalf("%d packed, of %d bytes", fs.packed, fs.bytes)
		}
		for _, got := range fs.takeDue(epoch) {
			if want.growth = got.growth; got.growth == 0 || fs.growth != got.growth || fs.bytes != bytes {
				t.Errorf("unpacking: growth of the message %d, of all messages %d; then %d bytes, want %d",
					got.growth, fs.growth, fs.bytes, bytes)
			}
			if !reflect.DeepEqual(*got, want) {
				t.Errorf("after its wait, the message is\n%+v, want\n%+v", *got, want)
			}
			fs.end(got)
		}
		if fs.count != 0 || fs.bytes != 0 || fs.growth != 0 || fs.overdue.Len() != 0 {
			t.Errorf("in the end there are %d messages of %d bytes, grown by %d", fs.count, fs.bytes, fs.growth)
		}
	}
}

// TestUnpackWithinMemory: if all packed messages are due at the same time, a lane unpacks as many as fit into its
// memory, in order. It unpacks the other messages when the unpacked messages have arrived. An unpacked message that is
// tried again does not wait for packed messages.
func TestUnpackWithinMemory(t *testing.T) {
	account := newBudget(config.MinHoldBytes, 1).Open(freeShare)
	f, read := newFlights(account), uint64(0)
	charge := func() { account.Set(int64(f.bytes)) }
	for account.room(f.reserve()) {
		read++
		fl := f.begin(lane.Message{Sequence: read, Size: 256, Data: make([]byte, 256)}, lane.Mark{})
		f.packOrHold(fl, epoch, leader.Time{})
		charge()
	}
	if f.packed != int(read) || read < 3*uint64(account.limit())/4/800 {
		t.Fatalf("%d messages were read, %d are packed", read, f.packed)
	}
	var out []*flight
	take := func() {
		for _, fl := range f.takeDue(epoch) {
			charge()
			if out = append(out, fl); fl.Sequence != uint64(len(out)) {
				t.Fatalf("message %d is unpacked at place %d", fl.Sequence, len(out))
			}
			if account.Set(int64(f.bytes)); int64(f.bytes) > account.limit()+int64(fl.size) {
				t.Fatalf("%d bytes in use after %d messages were unpacked, want at most %d", f.bytes, len(out), account.limit())
			}
		}
	}
	take()
	next, _ := f.nextTime()
	if at, wakes := f.wakeTime(); len(out) == int(read) || !f.blocked() || wakes || next != epoch {
		t.Fatalf("%d of %d messages are unpacked; the loop wakes at %s: %t", len(out), read, at, wakes)
	}
	last := out[len(out)-1]
	last.tries++
	f.hold(last, epoch)
	if at, wakes := f.wakeTime(); !wakes || at != epoch {
		t.Errorf("a message that is to be tried again wakes the loop at %s: %t", at, wakes)
	}
	for _, repeated := range f.takeDue(epoch) {
		if repeated != last {
			t.Fatalf("message %d is due, want the message that is to be tried again", repeated.Sequence)
		}
	}
	for ended := 0; ended < int(read); take() {
		for ; ended < len(out); ended++ {
			f.end(out[ended])
			charge()
		}
	}
	if f.count != 0 || f.bytes != 0 || f.growth != 0 || f.packed != 0 {
		t.Errorf("in the end: %d messages of %d bytes, grown by %d, %d packed", f.count, f.bytes, f.growth, f.packed)
	}
}

// TestWaitingTimerCost: a packed timer, with its body in memory, takes at most the bytes that are accounted for it.
func TestWaitingTimerCost(t *testing.T) {
	natstest.SkipShort(t)
	policy := newPolicy(t)
	l := role.NewStream(role.Config{Policy: policy}).Lane()
	for _, recurs := range []bool{false, true} {
		const count, body = 10_000, 256
		before := natstest.Heap()
		fs := newFlights(newBudget(config.DefaultHoldBytes, 1).Open(freeShare))
		fs.packsTimers = true
		for seq := range uint64(count) {
			header := message.Header{message.HeaderFor: {"1m"}}
			if recurs {
				header = message.Header{message.HeaderEvery: {"1m"}}
			}
			in := message.Incoming{
				Stream: "DELAY_TIMERS", Sequence: seq + 1, At: epoch.Stamp(), Header: header, Data: make([]byte, body),
				Subject: policy.Names.Timer(fmt.Sprintf("order-%08d", seq), "orders.expire"),
			}
			e := entry.Parse(policy, in)
			if e.Kind != entry.Set || e.Problem != nil {
				t.Fatalf("%+v", e)
			}
			s := storedMessage(t, policy, seq+1, 0, 0, true)
			f := fs.begin(s, lane.Mark{})
			f.request, f.Header, f.Data = e.Request, nil, make([]byte, body)
			f.timer = l.Read(in, 0, nil, true).Alarm
			fs.packOrHold(f, epoch.Add(time.Hour), epoch)
		}
		took := natstest.Heap() - before
		t.Logf("recurs %t: %d bytes, accounted %d", recurs, took/count, fs.bytes/count)
		if fs.packed != count {
			t.Fatalf("%d of %d are packed", fs.packed, count)
		}
		if took > fs.bytes || fs.bytes > 2*took {
			t.Errorf("recurs %t: a waiting timer takes %d bytes, and is accounted with %d", recurs, took/count, fs.bytes/count)
		}
		runtime.KeepAlive(fs)
	}
}
