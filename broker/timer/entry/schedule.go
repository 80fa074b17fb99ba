package entry

import (
	"maps"
	"slices"
	"time"

	"delaybroker/broker/message"
	"delaybroker/levels"
)

// Schedule is the content of a request with nats-server's headers for schedules.
type Schedule struct {
	Subject string
	Target  string
	At      time.Time // when it fires; if it recurs, for the first time; zero if Every or Cron decides
	Every   time.Duration
	Cron    string
	Zone    string    // the time zone of Cron
	Until   time.Time // the end of the schedule itself (its own Nats-TTL); zero for none
	TTL     string    // the Nats-TTL of each delivered message, such as 10s or never; empty for none
	Rollup  bool      // the delivered message has Nats-Rollup "sub"
	MsgID   string    // the client's own Nats-Msg-Id
	Token   string    // the token of the request, which the entry contains
}

// CheckSchedule returns the problem of a schedule's subject; nil for a valid one.
func CheckSchedule(p message.Policy, subject string) *message.Problem {
	p.Targets = nil
	if problem := p.CheckTarget(subject); problem != nil {
		return message.Problemf(problem.Code, "the schedule's subject: %s", problem.Sentence)
	}
	return nil
}

// ScheduleEntry returns the sealed header of a schedule's entry. The caller must not store an entry with a problem:
// such an entry would replace a valid one. The header contains those headers of the client that the target receives,
// and the headers that a schedule may have. ScheduleEntry refuses all other headers that begin with Delay-: our seal
// would make them valid.
func ScheduleEntry(
	p message.Policy, s Schedule, client message.Header, body []byte, now time.Time,
) (message.Header, *message.Problem) {
	own, problem := message.SplitHeader(client, false)
	if problem != nil {
		return nil, problem
	}
	h := make(message.Header, len(own.User)+12)
	maps.Copy(h, own.User)
	for name, values := range own.Delay {
		if !slices.Contains(message.HeadersOf(message.InSchedule), name) {
			return nil, message.Problemf(message.BadOption, "%s cannot be used for a schedule: leave it out", name)
		}
		h[name] = values
	}
	if problem := own.CheckSpelling(); problem != nil {
		return nil, problem
	}
	if s.Every > 0 || s.Cron != "" {
		message.PutTime(h, message.HeaderLast, s.Until)
	} else if !s.Until.IsZero() && h[message.HeaderExpires] != nil {
		return nil, message.Problemf(message.BadOption, "Nats-TTL and Delay-Expires exclude each other: give one")
	} else {
		message.PutTime(h, message.HeaderExpires, s.Until)
	}
	s.put(h)
	subject := p.Names.ScheduleSubject(s.Subject)
	p.Keys.SealMessage(subject, h, body)
	_, problem = ParseSet(p, message.Incoming{At: now, Subject: subject, Header: h, Data: body})
	return h, problem
}

func (s Schedule) put(h message.Header) {
	message.Put(h, message.HeaderTarget, s.Target)
	message.PutTime(h, message.HeaderUntil, s.At)
	if s.Every > 0 {
		message.Put(h, message.HeaderEvery, levels.FormatDuration(s.Every))
	}
	message.Put(h, message.HeaderCron, s.Cron)
	message.Put(h, message.HeaderZone, s.Zone)
	message.Put(h, message.HeaderMsgID, s.MsgID)
	message.Put(h, message.HeaderWord, s.Token)
	message.Put(h, message.HeaderTTL, s.TTL)
	if s.Rollup {
		message.Put(h, message.HeaderRollup, message.RollupSub)
	}
}

// PutDelivery adds the headers of an extra delivery of a schedule, which count only with our seal. Next is the next due
// time of the schedule; zero for a paused schedule.
func PutDelivery(h message.Header, origin message.Origin, next time.Time) {
	message.Put(h, message.HeaderScheduler, origin.Scheduler)
	message.PutTime(h, message.HeaderScheduleNext, next)
	if origin.Rollup {
		message.Put(h, message.HeaderRollup, message.RollupSub)
	}
}

// delivery parses the headers of PutDelivery. It ignores them unless it can verify the seal, which needs the keys and
// the body.
func delivery(p message.Policy, in message.Incoming, s message.Block) (origin message.Origin) {
	if s.Delay[message.HeaderScheduler] != nil && !in.HeadersOnly && !p.Keys.Empty() && sealed(p, in) {
		origin.Scheduler, origin.Rollup = firstValue(s.Delay[message.HeaderScheduler]), hasRollup(s)
		origin.ScheduleNext = firstValue(s.Delay[message.HeaderScheduleNext])
	}
	return origin
}

func hasRollup(s message.Block) bool {
	return firstValue(s.Delay[message.HeaderRollup]) == message.RollupSub
}

// nextFiring returns the value of Delay-Schedule-Next for a round of a schedule: the time of the next round, or "purge"
// if there is none. S is nil for a schedule that fires once.
func nextFiring(s *Series, round int) string {
	if s != nil && (s.Table.Rounds == 0 || round < s.Table.Rounds) {
		if next, ok := s.Table.Next(s.First, s.Planned); ok {
			return next.UTC().Format(time.RFC3339Nano)
		}
	}
	return "purge"
}
