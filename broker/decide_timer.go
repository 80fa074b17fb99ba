package broker

import (
	"log/slog"
	"time"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/layout"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
)

// This file decides the next step of a named timer until its firing is decided, and again when it is settled. In
// between it is a message as any other. See package timer.
//
//	                  the body is in memory                      stored
//	set, or marker ──▶ pending ── due ──▶ claim ── 10071 ──┐    ──▶ fired ──▶ … ──▶ settled ──▶ remove
//	      │                ▲                               ▼
//	      └─ marker ── due ┴──────── examine ◀──────────── doubt

// armAfter is how long a set waits in memory before its marker is sent: a key that is set again and again costs markers
// only when it comes to rest.
const armAfter = time.Second

// otherFlight is how soon a timer is looked at again that another message of this process is about to fire.
const otherFlight = time.Second

// nextOfTimer decides about a timer; ok is false where it is decided as any message.
func nextOfTimer(p plan, m moment, f *flight) (s step, ok bool) {
	t := f.timer
	switch {
	case t.stage == stageSettled && t.entry != 0:
		return step{kind: remove}, true
	case t.stage == stageSettled, t.superseded && t.stage < stageFired:
		return step{kind: arrive}, true
	case t.stage == stageFired, f.problem != nil:
		return step{}, false
	}
	left := f.when().Sub(m.now)
	switch armed := f.storedAt().Add(armAfter); {
	case left <= 0 && m.proven && t.stage == stagePending:
		return step{kind: claim}, true
	case left <= 0 && m.proven:
		return step{kind: examine}, true
	case p.kind == layout.Timers && !m.crowded && m.now.Before(armed) && armed.Before(f.when()):
		return step{kind: hold, at: armed}, true
	}
	return step{}, false
}

// afterClaim decides when the timers' stream has answered a firing, or the answer did not come. What is not certain is
// looked at: see unclear.
func afterClaim(m moment, f *flight, a storeAnswer) step {
	switch {
	case a.wins(f.timer.generation):
		return step{kind: claimed}
	case a.err != nil:
		return repeatLater(m, f, a.err)
	case a.ack.Code == jsapi.CodeTooLarge:
		return step{kind: dead, why: tooLargeToFire(f)}
	case a.ack.Code == jsapi.CodeWrongLast:
		return step{kind: examine}
	}
	s := wait(m, f)
	if a.refusal() && a.ack.Code != jsapi.CodeLastInFlight {
		s.note = &note{slog.LevelError, "timers cannot be fired; trying again until they can: look at the stream's limits, " +
			"and those of the account and server", []any{"reason", a.ack.Description}}
	}
	return s
}

// tooLargeToFire is the problem of a set for which there is no room in its own stream once it has fired.
func tooLargeToFire(f *flight) *message.Problem {
	return message.Problemf(message.TooLarge,
		"%d bytes and headers are more than can be fired: the stream's max_msg_size must leave %d bytes free for the "+
			"broker's headers (generation %d; what it replaced is gone)", len(f.Data), levelReserve, f.timer.generation)
}

// wins reports whether the answer to a publish that expects a generation says that it is stored.
func (a storeAnswer) wins(generation uint64) bool {
	return a.err == nil && !a.ack.Refused() && !a.ack.Duplicate && a.ack.Sequence > generation
}

// unclear reports whether a firing may be stored although the answer does not say so, or another entry may be.
func (a storeAnswer) unclear() bool {
	return !a.refusal() || a.ack.Code == jsapi.CodeWrongLast || a.ack.Code == jsapi.CodeLastInFlight
}

// afterExamine decides when the last entry of a timer's subject was read, and the firing is not to be claimed.
func afterExamine(m moment, f *flight, v timer.Verdict, until time.Time) step {
	switch v {
	case timer.Deliver:
		return step{kind: claimed}
	case timer.Wait:
		return step{kind: hold, at: leader.At(until)}
	case timer.Drop:
		return step{kind: arrive}
	}
	return wait(m, f)
}

// afterRemoval decides when the entry of a timer that is settled was removed, or was to be. Whatever stands on the
// subject now is none of ours.
func afterRemoval(m moment, f *flight, a storeAnswer) step {
	if a.err == nil && (!a.ack.Refused() || a.ack.Code == jsapi.CodeWrongLast) {
		return step{kind: arrive}
	}
	return repeatLater(m, f, a.err)
}
