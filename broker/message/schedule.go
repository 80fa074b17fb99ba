package message

import (
	"strconv"
	"strings"
	"time"

	"delaybroker/levels"
)

// This file reads and writes schedules: timers of those who speak the dialect of nats-server's own scheduling. Package
// dialect answers them, and writes here what they ask for. The subject of a schedule is its identity, whatever its
// target: the entry's subject is delaytimer._schedule.<the schedule's subject>, and the target stands in a header. So
// such an entry counts only with our seal. What a client publishes there by itself is refused as a bad set is.

// ScheduleKey stands where other timers have their key. A client's key cannot begin so.
const ScheduleKey = "_schedule"

// On schedules, on their markers, and on what comes of them.
const (
	HeaderScheduler    = "Delay-Scheduler"     // the schedule's subject; at the target too
	HeaderScheduleNext = "Delay-Schedule-Next" // "purge", or when it fires again; at the target too
	HeaderRollup       = "Delay-Rollup"        // becomes Nats-Rollup at the target: "sub"
)

const (
	rollupSub    = "sub"
	nextPurge    = "purge"
	headerRollup = "Nats-Rollup"
)

// Schedule is what a request in the server's dialect comes to.
type Schedule struct {
	Subject string
	Target  string
	At      time.Time // when it fires; zero for one that recurs, by one of these:
	Every   time.Duration
	Cron    string
	Zone    string    // of Cron
	Until   time.Time // it is forgotten then; zero for never
	TTL     time.Duration
	TTLEver bool   // the message at the target is to stay: Nats-TTL "never"
	Rollup  bool   // Nats-Rollup "sub" at the target
	MsgID   string // the client's own Nats-Msg-Id
	Word    string // by which the entry is known again
}

// ScheduleName is the name of a schedule among the keys of timers: _schedule.<the schedule's subject>. A key has no
// dot, so no timer has such a name.
func ScheduleName(subject string) string { return ScheduleKey + "." + subject }

// ScheduleOf is the reverse of ScheduleName. Ok is false for the key of any other timer.
func ScheduleOf(name string) (subject string, ok bool) {
	return strings.CutPrefix(name, ScheduleKey+".")
}

// Key is the key of a timer, or the name of a schedule.
func (a Address) Key() string {
	if a.Schedule() {
		return ScheduleName(a.Target)
	}
	return a.Token
}

// ScheduleSubject is the subject of a schedule's entries. The stream keeps them among the timers.
func (n Names) ScheduleSubject(schedule string) string { return n.Timer(ScheduleName(schedule), "") }

// TimerOf is the subject of a timer whose request was read from its marker.
func (n Names) TimerOf(r Request) string {
	if r.Timer.Key == ScheduleKey {
		return n.ScheduleSubject(r.Scheduler)
	}
	return n.Timer(r.Timer.Key, r.Target)
}

// timerTarget is the target in a subject or, of a schedule, in its header.
func (a Address) timerTarget(h Header) string {
	if a.Schedule() {
		return first(h[HeaderTarget])
	}
	return a.Target
}

// CheckSchedule judges the subject of a schedule.
func (p Policy) CheckSchedule(subject string) *Problem {
	p.Targets = nil
	if problem := p.CheckTarget(subject); problem != nil {
		return Problemf(problem.Code, "the schedule's subject: %s", problem.Sentence)
	}
	return nil
}

// ScheduleEntry is the header of a schedule's entry, under our seal. Of the client's header it takes what is passed on,
// and the options Delay-Deliver, Delay-Expires and Delay-Max-Attempts. All else that begins with Delay- is refused: our
// seal would make it true. The request is the one that will be read from it.
func (p Policy) ScheduleEntry(s Schedule, client Header, body []byte, now time.Time) (Header, Request, *Problem) {
	own, problem := splitHeader(client, false)
	if problem != nil {
		return nil, Request{}, problem
	}
	h := Request{User: own.user}.userHeader(12)
	for name, values := range own.delay {
		switch name {
		case HeaderDeliver, HeaderExpires, HeaderMaxAttempts:
			h[name] = values
		default:
			return nil, Request{}, Problemf(BadOption, "%s is not for schedules: leave it out", name)
		}
	}
	if own.typo != "" {
		return nil, Request{}, noSuchHeader(own.typo)
	}
	set(h, HeaderTarget, s.Target)
	setTime(h, HeaderUntil, s.At)
	if s.Every > 0 {
		set(h, HeaderEvery, levels.FormatDuration(s.Every))
	}
	set(h, HeaderCron, s.Cron)
	set(h, HeaderZone, s.Zone)
	set(h, HeaderMsgID, s.MsgID)
	set(h, HeaderWord, s.Word)
	switch {
	case s.TTLEver:
		set(h, HeaderTTL, "never")
	case s.TTL > 0:
		set(h, HeaderTTL, strconv.FormatInt(int64(s.TTL/time.Second), 10)+"s")
	}
	if s.Rollup {
		set(h, HeaderRollup, rollupSub)
	}
	switch {
	case s.Every > 0 || s.Cron != "":
		setTime(h, HeaderLast, s.Until)
	case !s.Until.IsZero() && h[HeaderExpires] != nil:
		return nil, Request{}, Problemf(BadOption, "Nats-TTL and Delay-Expires: one of them")
	default:
		setTime(h, HeaderExpires, s.Until)
	}
	r, problem := p.sealSchedule(s.Subject, h, body, now)
	return h, r, problem
}

// ScheduleCancel is the header that cancels a schedule, under our seal.
func (p Policy) ScheduleCancel(subject, word string, now time.Time) Header {
	h := Header{HeaderCancel: {word}}
	p.Keys.SealMessage(p.Names.ScheduleSubject(subject), h, nil, now)
	return h
}

// ScheduleMove is MoveHeader for an entry of a schedule, under our seal.
func (p Policy) ScheduleMove(
	old Incoming, name, value string, generation uint64, word string, now time.Time,
) (Header, *Problem) {
	h := MoveHeader(old.Header, name, value, generation, word)
	_, problem := p.sealSchedule(p.Names.Parse(old.Subject).Target, h, old.Data, now)
	return h, problem
}

// SetDelivery adds to a header what a message of a schedule has and the set of a timer may not say. It counts only
// under our seal: see ofDelivery. Next is when the schedule fires again; zero for a schedule that is paused.
func (r Request) SetDelivery(h Header, next time.Time) {
	set(h, HeaderScheduler, r.Scheduler)
	setTime(h, HeaderScheduleNext, next)
	if r.Rollup {
		set(h, HeaderRollup, rollupSub)
	}
}

// ofDelivery is the reverse of SetDelivery, for a timer that the broker has set: one delivery of a schedule. Without keys,
// or without the body, nothing proves that it is one.
func (p Policy) ofDelivery(r Request, in Incoming, s split) Request {
	if s.delay[HeaderScheduler] != nil && !in.BodyLeft && !p.Keys.Empty() && p.Keys.Trusts(in, SealedAlways) {
		r.Scheduler, r.ScheduleNext = first(s.delay[HeaderScheduler]), first(s.delay[HeaderScheduleNext])
		r.Rollup = first(s.delay[HeaderRollup]) == rollupSub
	}
	return r
}

// sealSchedule seals an entry, and reads it as it will be read: a bad one would replace a good one.
func (p Policy) sealSchedule(schedule string, h Header, body []byte, now time.Time) (Request, *Problem) {
	subject := p.Names.ScheduleSubject(schedule)
	p.Keys.SealMessage(subject, h, body, now)
	return p.Parse(Incoming{At: now, Subject: subject, Header: h, Data: body})
}

// checkScheduleSet judges an entry on the subject of a schedule. Whoever may publish there may not write it: its header
// names the target.
func (p Policy) checkScheduleSet(in Incoming, addr Address) *Problem {
	if !p.ours(in) {
		return Problemf(BadTimer, "a key that begins with _ is the broker's own, and the broker did not write this: "+
			"publish on the schedule's subject, %s", excerpt(addr.Target))
	}
	return p.CheckSchedule(addr.Target)
}

// ours reports whether an entry has our seal, as far as it was read. It counts however old the entry is: no older
// broker wrote such.
func (p Policy) ours(in Incoming) bool { return p.Keys.Trusts(in, SealedAlways) }

// ofSchedule adds what an entry of a schedule says besides.
func (r Request) ofSchedule(addr Address, s split) Request {
	r.Scheduler = addr.Target
	r.MsgID = first(s.delay[HeaderMsgID])
	r.Rollup = first(s.delay[HeaderRollup]) == rollupSub
	return r
}

// withNext says when a schedule fires again, as the server says it.
func (r Request) withNext() Request {
	if r.Scheduler == "" {
		return r
	}
	r.ScheduleNext = nextPurge
	if s := r.Recurs; s != nil {
		if next, ok := s.Table.After(s.First, s.Planned); ok && (s.Table.Rounds == 0 || r.Round < s.Table.Rounds) {
			r.ScheduleNext = next.UTC().Format(time.RFC3339Nano)
		}
	}
	return r
}

// setSchedule writes what a message of a schedule says besides, on its way and at its target.
func (r Request) setSchedule(h Header) {
	set(h, HeaderScheduler, r.Scheduler)
	set(h, HeaderScheduleNext, r.ScheduleNext)
}

// readSchedule is the reverse.
func (f *fields) readSchedule(in Request) Request {
	in.Scheduler, in.ScheduleNext = f.text(HeaderScheduler), f.token(HeaderScheduleNext)
	in.Rollup = strings.EqualFold(f.text(HeaderRollup), rollupSub)
	return in
}
