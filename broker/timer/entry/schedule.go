package entry

import (
	"maps"
	"strconv"
	"time"

	"delaybroker/broker/message"
	"delaybroker/levels"
)

// nextPurge means that a schedule does not fire again, in the server's words.
const nextPurge = "purge"

// Schedule is the content of a request in the server's dialect.
type Schedule struct {
	Subject string
	Target  string
	At      time.Time // when it fires; zero for a recurring one, which has one of these:
	Every   time.Duration
	Cron    string
	Zone    string    // of Cron
	Until   time.Time // its end; zero for none
	TTL     time.Duration
	TTLEver bool   // the message stays at the target: Nats-TTL "never"
	Rollup  bool   // Nats-Rollup "sub" at the target
	MsgID   string // the client's own Nats-Msg-Id
	Word    string // identifies the entry's request
}

// CheckSchedule judges the subject of a schedule.
func CheckSchedule(p message.Policy, subject string) *message.Problem {
	p.Targets = nil
	if problem := p.CheckTarget(subject); problem != nil {
		return message.Problemf(problem.Code, "the schedule's subject: %s", problem.Sentence)
	}
	return nil
}

// ScheduleEntry returns the header of a schedule's entry, under our seal. It copies the client's headers for the
// target, and the options Delay-Deliver, Delay-Expires and Delay-Max-Attempts. It refuses all other headers that begin
// with Delay-: our seal would make them valid. The request is the result of parsing that header.
func ScheduleEntry(
	p message.Policy, s Schedule, client message.Header, body []byte, now time.Time,
) (message.Header, Pending, *message.Problem) {
	own, problem := message.SplitHeader(client, false)
	if problem != nil {
		return nil, Pending{}, problem
	}
	h := make(message.Header, len(own.User)+12)
	maps.Copy(h, own.User)
	for name, values := range own.Delay {
		switch name {
		case message.HeaderDeliver, message.HeaderExpires, message.HeaderMaxAttempts:
			h[name] = values
		default:
			return nil, Pending{}, message.Problemf(message.BadOption, "%s is not for schedules: leave it out", name)
		}
	}
	if problem := own.Misspelt(); problem != nil {
		return nil, Pending{}, problem
	}
	if s.Every > 0 || s.Cron != "" {
		message.PutTime(h, message.HeaderLast, s.Until)
	} else if !s.Until.IsZero() && h[message.HeaderExpires] != nil {
		return nil, Pending{}, message.Problemf(message.BadOption, "Nats-TTL and Delay-Expires: one of them")
	} else {
		message.PutTime(h, message.HeaderExpires, s.Until)
	}
	s.put(h)
	set, problem := sealSchedule(p, s.Subject, h, body, now)
	return h, set, problem
}

// put sets the time, the target and the options.
func (s Schedule) put(h message.Header) {
	message.Put(h, message.HeaderTarget, s.Target)
	message.PutTime(h, message.HeaderUntil, s.At)
	if s.Every > 0 {
		message.Put(h, message.HeaderEvery, levels.FormatDuration(s.Every))
	}
	message.Put(h, message.HeaderCron, s.Cron)
	message.Put(h, message.HeaderZone, s.Zone)
	message.Put(h, message.HeaderMsgID, s.MsgID)
	message.Put(h, message.HeaderWord, s.Word)
	switch {
	case s.TTLEver:
		message.Put(h, message.HeaderTTL, "never")
	case s.TTL > 0:
		message.Put(h, message.HeaderTTL, strconv.FormatInt(int64(s.TTL/time.Second), 10)+"s")
	}
	if s.Rollup {
		message.Put(h, message.HeaderRollup, message.RollupSub)
	}
}

// ScheduleCancel returns the header that cancels a schedule, under our seal.
func ScheduleCancel(p message.Policy, subject, word string, now time.Time) message.Header {
	h := message.Header{message.HeaderCancel: {word}}
	p.Keys.SealMessage(p.Names.ScheduleSubject(subject), h, nil, now)
	return h
}

// ScheduleMove is MoveHeader for an entry of a schedule, under our seal.
func ScheduleMove(
	p message.Policy, old message.Incoming, name, value string, generation uint64, word string, now time.Time,
) (message.Header, *message.Problem) {
	h := MoveHeader(old.Header, name, value, generation, word)
	_, problem := sealSchedule(p, p.Names.Parse(old.Subject).Target, h, old.Data, now)
	return h, problem
}

// sealSchedule seals an entry, and parses it as brokers will: an invalid one would replace a valid one.
func sealSchedule(
	p message.Policy, schedule string, h message.Header, body []byte, now time.Time,
) (Pending, *message.Problem) {
	subject := p.Names.ScheduleSubject(schedule)
	p.Keys.SealMessage(subject, h, body, now)
	return ParseSet(p, message.Incoming{At: now, Subject: subject, Header: h, Data: body})
}

// checkScheduleSet judges an entry on the subject of a schedule. A client that may publish there may still not write
// one: its header names the target.
func checkScheduleSet(p message.Policy, in message.Incoming, addr message.Address) *message.Problem {
	if !ours(p, in) {
		return message.Problemf(message.BadTimer, "a key that begins with _ is the broker's own, and the broker did not "+
			"write this: publish on the schedule's subject, %s", message.Excerpt(addr.Target))
	}
	return CheckSchedule(p, addr.Target)
}

// PutDelivery adds the headers of one delivery of a schedule, which a client may not use in the set of a timer. They
// count only under our seal. Next is when the schedule fires again; zero for a schedule that is paused.
func PutDelivery(h message.Header, of message.Origin, next time.Time) {
	message.Put(h, message.HeaderScheduler, of.Scheduler)
	message.PutTime(h, message.HeaderScheduleNext, next)
	if of.Rollup {
		message.Put(h, message.HeaderRollup, message.RollupSub)
	}
}

// delivery reads the headers of PutDelivery. Without keys, or without the body, nothing proves that it wrote them.
func delivery(p message.Policy, in message.Incoming, s message.Block) (of message.Origin) {
	if s.Delay[message.HeaderScheduler] != nil && !in.BodyLeft && !p.Keys.Empty() && ours(p, in) {
		of.Scheduler, of.Rollup = first(s.Delay[message.HeaderScheduler]), rollsUp(s)
		of.ScheduleNext = first(s.Delay[message.HeaderScheduleNext])
	}
	return of
}

func rollsUp(s message.Block) bool { return first(s.Delay[message.HeaderRollup]) == message.RollupSub }

// firesNext returns when a schedule fires again after a round, in the server's words.
func firesNext(s *Series, round int) string {
	if s == nil || s.Table.Rounds > 0 && round >= s.Table.Rounds {
		return nextPurge
	}
	next, ok := s.Table.After(s.First, s.Planned)
	if !ok {
		return nextPurge
	}
	return next.UTC().Format(time.RFC3339Nano)
}
