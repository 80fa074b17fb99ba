package message

import (
	"fmt"
	"regexp"
	"strings"

	"delaybroker/levels"
)

// DefaultPrefix is the root of all subjects unless configured otherwise.
const DefaultPrefix = "delay"

var prefixPattern = regexp.MustCompile(`^[a-z][a-z0-9-]{0,15}$`)

// Form is the shape of a subject: the root below which it lies.
type Form int

// The forms of subject a lane may hold.
const (
	FormForeign Form = iota // none of ours
	FormLevel               // delay.<level or duration>.<target>
	FormIn                  // delayin.<duration>.<target>
	FormTime                // delayat.<time>.<target>
	FormHop                 // delaysys.hop.<level>.<target>
	FormRetry               // delaysys.retry.<level>.<target>
	FormPaused              // delaysys.paused.<pause>.<target>
	FormTimer               // delaytimer.<key>.<target>
)

// Address is a subject taken apart.
type Address struct {
	Form   Form
	Token  string // the level, duration, time or key, or the pause
	Target string // empty where the subject ends after the token
}

// Internal reports whether the message is on its way between our lanes.
func (a Address) Internal() bool {
	return a.Form == FormHop || a.Form == FormRetry || a.Form == FormPaused
}

// Schedule reports whether the subject is that of a schedule's entry: see ScheduleKey.
func (a Address) Schedule() bool { return a.Form == FormTimer && a.Token == ScheduleKey }

// Names makes every subject and stream name from one prefix. They are put together here only. The zero Names is not
// usable; see [NewNames].
type Names struct {
	level, in, at, timer, sys, dead, control string // root tokens
	stream                                   string // stem of the stream names: "DELAY_"
}

// NewNames returns the names below prefix, one token matching [a-z][a-z0-9-]{0,15}.
func NewNames(prefix string) (Names, error) {
	if !prefixPattern.MatchString(prefix) {
		return Names{}, fmt.Errorf("prefix %q: want one token of lower-case letters, digits and '-', at most 16, "+
			"beginning with a letter", prefix)
	}
	return Names{
		level: prefix, in: prefix + "in", at: prefix + "at", timer: prefix + "timer",
		sys: prefix + "sys", dead: prefix + "dead", control: prefix + "ctl",
		stream: strings.ToUpper(prefix) + "_",
	}, nil
}

// Prefix is the token that all names derive from.
func (n Names) Prefix() string { return n.level }

// Roots are the first tokens the broker keeps for itself: no target may lie below them.
func (n Names) Roots() []string {
	return []string{n.level, n.in, n.at, n.timer, n.sys, n.dead, n.control}
}

// LevelStream names the stream of a level. RetryStream, IntakeStream, TimersStream, PausedStream and DeadStream name
// the other streams of messages.
func (n Names) LevelStream(level string) string { return n.stream + level }
func (n Names) RetryStream(level string) string { return n.stream + "RETRY_" + level }
func (n Names) IntakeStream() string            { return n.stream + "INTAKE" }
func (n Names) PausedStream() string            { return n.stream + "PAUSED" }
func (n Names) TimersStream() string            { return n.stream + "TIMERS" }
func (n Names) DeadStream() string              { return n.stream + "DEAD" }

// Own reports whether a stream is one of these, that of the owners, or the journal. Other streams may begin with the
// same stem.
func (n Names) Own(stream string) bool {
	rest, ok := strings.CutPrefix(stream, n.stream)
	switch {
	case !ok:
		return false
	case stream == n.IntakeStream(), stream == n.PausedStream(), stream == n.DeadStream(), stream == n.OwnersStream(),
		stream == n.JournalStream(), stream == n.TimersStream():
		return true
	}
	_, err := levels.ParseDuration(strings.TrimPrefix(rest, "RETRY_"))
	return err == nil
}

// OwnersStream keeps the owners of lanes, among instances that share the work. OwnersFilter is its own subject,
// OwnersTable is the subject of the claims, and OwnersBeat is the prefix of the instances' counters. No stream listens
// on OwnersCall.
func (n Names) OwnersStream() string { return n.stream + "OWNERS" }
func (n Names) OwnersFilter() string { return n.sys + ".owners.>" }
func (n Names) OwnersTable() string  { return n.sys + ".owners.table" }
func (n Names) OwnersBeat() string   { return n.sys + ".owners.beat." }
func (n Names) OwnersCall() string   { return n.control + ".owners" }

// JournalStream keeps what became of deliveries: see package journal. JournalSubject is its own subject.
func (n Names) JournalStream() string  { return n.stream + "JOURNAL" }
func (n Names) JournalSubject() string { return n.sys + ".journal" }

// StatusCall is the subject on which an operator asks all instances for their status. They answer below StatusAnswers
// and nowhere else: the asker must not choose a subject by the rights of an instance. StatusFilter is all of these
// answers.
func (n Names) StatusCall() string    { return n.control + ".status" }
func (n Names) StatusAnswers() string { return n.control + ".status." }
func (n Names) StatusFilter() string  { return n.control + ".status.>" }

// Call begins the subjects of requests about all that is there.
func (n Names) Call(name string) string { return n.control + "." + name }

// TimerCall begins the subjects of requests about one timer; its key and target follow. TimersCall, CancelAllCall and
// ShiftCall are those of requests about many; where their targets begin may follow.
func (n Names) TimerCall(verb string) string { return n.control + ".timer." + verb + "." }
func (n Names) TimersCall() string           { return n.control + ".timers" }
func (n Names) CancelAllCall() string        { return n.control + ".cancel-all" }
func (n Names) ShiftCall() string            { return n.control + ".shift" }

// LevelFilter is the subject of a level's stream. InFilter, AtFilter, TimerFilter, HopFilter, RetryFilter and
// DeadFilter are likewise subjects of streams.
func (n Names) LevelFilter(level string) string { return n.level + "." + level + ".>" }
func (n Names) InFilter() string                { return n.in + ".*.>" }
func (n Names) AtFilter() string                { return n.at + ".*.>" }
func (n Names) TimerFilter() string             { return n.timer + ".*.>" }
func (n Names) HopFilter(level string) string   { return n.sys + ".hop." + level + ".>" }
func (n Names) RetryFilter(level string) string { return n.sys + ".retry." + level + ".>" }
func (n Names) DeadFilter() string              { return n.dead + ".>" }

// PausedFilter is what waits because its target is paused, PauseFilter the part of it that one pause keeps, and Paused
// one message of it. PausesRecord is the subject of the list of pauses, in the same stream.
func (n Names) PausedFilter() string               { return n.sys + ".paused.>" }
func (n Names) PauseFilter(pause string) string    { return n.sys + ".paused." + pause + ".>" }
func (n Names) Paused(pause, target string) string { return n.sys + ".paused." + pause + "." + target }
func (n Names) PausesRecord() string               { return n.sys + ".pauses" }

// Toward narrows one of these filters to the targets of a pattern.
func Toward(filter, pattern string) string { return strings.TrimSuffix(filter, ">") + pattern }

// SysFilter is all that travels between our lanes.
func (n Names) SysFilter() string { return n.sys + ".>" }

// Level is the subject on which a client asks for the delay of a level, or a plain duration. In is that for any
// duration, At that for a time: see TimeToken.
func (n Names) Level(level, target string) string { return n.level + "." + level + "." + target }
func (n Names) In(duration, target string) string { return n.in + "." + duration + "." + target }
func (n Names) At(time, target string) string     { return n.at + "." + time + "." + target }

// Bare is the subject of a level without a target, for the opt-in Delay-Target header.
func (n Names) Bare(level string) string { return n.level + "." + level }

// Hop and Retry are the subjects of a message on its way through our lanes.
func (n Names) Hop(level, target string) string   { return n.sys + ".hop." + level + "." + target }
func (n Names) Retry(level, target string) string { return n.sys + ".retry." + level + "." + target }

// Timer is the subject of a named timer, or of a schedule, whose name stands in place of both key and target: see
// ScheduleName. Marker is that of its marker in a level: one for all timers, since each
// subject of a stream costs the server memory. Armed is the subject of the cursor in the timers' stream.
func (n Names) Timer(key, target string) string {
	if _, schedule := ScheduleOf(key); schedule {
		return n.timer + "." + key
	}
	return n.timer + "." + key + "." + target
}
func (n Names) Marker(level string) string { return n.Hop(level, MarkerTarget) }
func (n Names) Armed() string              { return n.sys + ".armed" }

// ScheduleKey stands where other timers have their key. A client's key cannot begin so.
const ScheduleKey = "_schedule"

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

// MarkerTarget stands in the subject of a marker where other hops have their target.
const MarkerTarget = "timer"

// Dead is the subject of a dead letter. Target is empty when the request had none that passes the policy.
func (n Names) Dead(code Code, target string) string {
	if target == "" {
		return n.dead + "." + string(code)
	}
	return n.dead + "." + string(code) + "." + target
}

// Internal reports whether only the broker may publish on subject.
func (n Names) Internal(subject string) bool {
	root, _, _ := strings.Cut(subject, ".")
	return root == n.sys || root == n.dead
}

// Parse takes a subject apart. It never fails: a subject that is not ours has FormForeign.
func (n Names) Parse(subject string) Address {
	root, rest, _ := strings.Cut(subject, ".")
	form := FormForeign
	switch root {
	case n.level:
		form = FormLevel
	case n.in:
		form = FormIn
	case n.at:
		form = FormTime
	case n.timer:
		form = FormTimer
	case n.sys:
		var kind string
		switch kind, rest, _ = strings.Cut(rest, "."); kind {
		case "hop":
			form = FormHop
		case "retry":
			form = FormRetry
		case "paused":
			form = FormPaused
		}
	}
	if form == FormForeign {
		return Address{}
	}
	token, target, _ := strings.Cut(rest, ".")
	return Address{Form: form, Token: token, Target: target}
}

// ParseDead takes the subject of a dead letter apart; ok is false for any other. Target is empty where the letter has
// none.
func (n Names) ParseDead(subject string) (code Code, target string, ok bool) {
	root, rest, ok := strings.Cut(subject, ".")
	if !ok || root != n.dead {
		return "", "", false
	}
	token, target, _ := strings.Cut(rest, ".")
	return Code(token), target, true
}
