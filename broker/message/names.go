package message

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"delaybroker/levels"
)

// DefaultPrefix is the default prefix of all subjects and, in upper case, of all stream names.
const DefaultPrefix = "delay"

var prefixPattern = regexp.MustCompile(`^[a-z][a-z0-9-]{0,15}$`)

// Form is the kind of a subject, which follows from its first tokens.
type Form int

// The forms of the subjects of messages in a lane.
const (
	FormForeign Form = iota // not a subject of a message in a lane
	FormLevel               // delay.<level or duration>.<target>
	FormIn                  // delayin.<duration>.<target>
	FormTime                // delayat.<time>.<target>
	FormHop                 // delaysys.hop.<level>.<target>
	FormRetry               // delaysys.retry.<level>.<target>
	FormPaused              // delaysys.paused.<pause>.<target>
	FormTimer               // delaytimer.<key>.<target>
)

// Address is a parsed subject.
type Address struct {
	Form   Form
	Token  string // the level, duration, time or key, or the pause
	Target string // empty if the subject ends after the token; for a schedule, the schedule's subject
}

// StoredByBroker reports whether the subject is that of a message that the broker stored in a lane: as a hop, in a
// retry lane, or for a pause.
func (a Address) StoredByBroker() bool {
	return a.Form == FormHop || a.Form == FormRetry || a.Form == FormPaused
}

// IsSchedule reports whether the subject belongs to the entries of a schedule: see ScheduleKey.
func (a Address) IsSchedule() bool { return a.Form == FormTimer && a.Token == ScheduleKey }

// Names makes all subjects and stream names of the broker from one prefix. The zero Names is not usable: see
// [NewNames].
type Names struct {
	level, in, at, timer, sys, dead, control string // root tokens
	stream                                   string // prefix of the stream names: "DELAY_"
}

// NewNames returns the names with a prefix. The prefix must match [a-z][a-z0-9-]{0,15}.
func NewNames(prefix string) (Names, error) {
	if !prefixPattern.MatchString(prefix) {
		return Names{}, fmt.Errorf("prefix %q: want a letter, then lower-case letters, digits or '-', at most 16 "+
			"characters", prefix)
	}
	return Names{
		level: prefix, in: prefix + "in", at: prefix + "at", timer: prefix + "timer",
		sys: prefix + "sys", dead: prefix + "dead", control: prefix + "ctl",
		stream: strings.ToUpper(prefix) + "_",
	}, nil
}

// Prefix returns the token from which all names derive.
func (n Names) Prefix() string { return n.level }

// Roots returns the first tokens that the broker reserves: no target may begin with one.
func (n Names) Roots() []string {
	return []string{n.level, n.in, n.at, n.timer, n.sys, n.dead, n.control}
}

// LevelStream returns the name of a level's stream. RetryStream, IntakeStream, TimersStream, PausedStream and
// DeadStream return the names of the other streams of messages.
func (n Names) LevelStream(level string) string { return n.stream + level }
func (n Names) RetryStream(level string) string { return n.stream + "RETRY_" + level }
func (n Names) IntakeStream() string            { return n.stream + "INTAKE" }
func (n Names) PausedStream() string            { return n.stream + "PAUSED" }
func (n Names) TimersStream() string            { return n.stream + "TIMERS" }
func (n Names) DeadStream() string              { return n.stream + "DEAD" }

// OwnsStream reports whether a name is that of a stream of the broker. The names of other programs' streams may begin
// with the same prefix.
func (n Names) OwnsStream(stream string) bool {
	rest, ok := strings.CutPrefix(stream, n.stream)
	_, err := levels.ParseDuration(strings.TrimPrefix(rest, "RETRY_"))
	others := []string{
		n.IntakeStream(), n.TimersStream(), n.PausedStream(), n.DeadStream(), n.OwnersStream(), n.JournalStream(),
	}
	return ok && err == nil || slices.Contains(others, stream)
}

// OwnersStream returns the name of the stream that stores the claim of the active instance. OwnersFilter returns the
// pattern of its subjects, and OwnersClaim the subject of the claim: see package lease. OwnersFigures
// returns the subject of the figures of the active instance: see figures.go of package broker. OwnersCalls returns
// the beginning of the subjects on which the instances reach each other, which no stream stores.
func (n Names) OwnersStream() string  { return n.stream + "OWNERS" }
func (n Names) OwnersFilter() string  { return n.sys + ".owners.>" }
func (n Names) OwnersClaim() string   { return n.sys + ".owners.claim" }
func (n Names) OwnersFigures() string { return n.sys + ".owners.figures" }
func (n Names) OwnersCalls() string   { return n.control + ".owners." }

// JournalStream returns the name of the journal's stream, and JournalSubject its subject: see package journal.
func (n Names) JournalStream() string  { return n.stream + "JOURNAL" }
func (n Names) JournalSubject() string { return n.sys + ".journal" }

// StatusCall returns the subject on which an operator asks all instances for their status. The instances answer only
// below StatusAnswers: if they answered on any subject, an operator could publish with an instance's permissions.
// StatusFilter matches all these answers.
func (n Names) StatusCall() string    { return n.control + ".status" }
func (n Names) StatusAnswers() string { return n.control + ".status." }
func (n Names) StatusFilter() string  { return n.control + ".status.>" }

// Call returns the subject of a request that is not about one timer.
func (n Names) Call(name string) string { return n.control + "." + name }

// TimerCall returns the beginning of the subjects of requests about one timer. The key and the target of the timer
// follow. TimersCall, CancelAllCall and ShiftCall return the beginning of the subjects of requests about many timers. A
// dot and the first tokens of the targets may follow.
func (n Names) TimerCall(verb string) string { return n.control + ".timer." + verb + "." }
func (n Names) TimersCall() string           { return n.control + ".timers" }
func (n Names) CancelAllCall() string        { return n.control + ".cancel-all" }
func (n Names) ShiftCall() string            { return n.control + ".shift" }

// LevelFilter returns the pattern of the subjects of requests for a level. InFilter, AtFilter, TimerFilter, HopFilter,
// RetryFilter and DeadFilter return the patterns of other subjects of messages.
func (n Names) LevelFilter(level string) string { return n.level + "." + level + ".>" }
func (n Names) InFilter() string                { return n.in + ".*.>" }
func (n Names) AtFilter() string                { return n.at + ".*.>" }
func (n Names) TimerFilter() string             { return n.timer + ".*.>" }
func (n Names) HopFilter(level string) string   { return n.sys + ".hop." + level + ".>" }
func (n Names) RetryFilter(level string) string { return n.sys + ".retry." + level + ".>" }
func (n Names) DeadFilter() string              { return n.dead + ".>" }

// PausedStreamFilter matches all messages that wait for the end of a pause, and PauseFilter the messages of one pause.
// PausedMessage returns the subject of a message that waits. PausesRecord returns the subject of the list of pauses.
// One stream stores all these subjects.
func (n Names) PausedStreamFilter() string      { return n.sys + ".paused.>" }
func (n Names) PauseFilter(pause string) string { return n.sys + ".paused." + pause + ".>" }
func (n Names) PausedMessage(pause, target string) string {
	return n.sys + ".paused." + pause + "." + target
}
func (n Names) PausesRecord() string { return n.sys + ".pauses" }

// RestrictFilter returns a filter for only the targets that match a pattern. In the given filter, > stands for the
// target.
func RestrictFilter(filter, pattern string) string { return strings.TrimSuffix(filter, ">") + pattern }

// SysFilter matches all subjects on which only brokers may publish, except for the dead letters.
func (n Names) SysFilter() string { return n.sys + ".>" }

// Level returns the subject on which a client requests the delay of a level, or a plain duration. In returns the
// subject for any duration, and At the subject for a time: see TimeToken.
func (n Names) Level(level, target string) string { return n.level + "." + level + "." + target }
func (n Names) In(duration, target string) string { return n.in + "." + duration + "." + target }
func (n Names) At(time, target string) string     { return n.at + "." + time + "." + target }

// BareLevel returns the subject of a level without a target. It is for requests with Delay-Target, if the settings
// allow that header.
func (n Names) BareLevel(level string) string { return n.level + "." + level }

// Hop and Retry return the subjects of a message between lanes.
func (n Names) Hop(level, target string) string   { return n.sys + ".hop." + level + "." + target }
func (n Names) Retry(level, target string) string { return n.sys + ".retry." + level + "." + target }

// Timer returns the subject of a named timer. Timer ignores target if key is the name of a schedule (see ScheduleName).
// Marker returns the subject of the markers in a level. All timers share this subject, because each subject of a stream
// costs the server memory. TimersCursor returns the subject of the cursor in the timers' stream.
func (n Names) Timer(key, target string) string {
	if _, schedule := ParseScheduleName(key); schedule {
		return n.timer + "." + key
	}
	return n.timer + "." + key + "." + target
}
func (n Names) Marker(level string) string { return n.Hop(level, MarkerTarget) }
func (n Names) TimersCursor() string       { return n.sys + ".armed" }

// ScheduleKey replaces the key in the subject of a schedule's entries. A client's key cannot begin with _.
const ScheduleKey = "_schedule"

// ScheduleName returns the name of a schedule among the keys of timers: _schedule.<the schedule's subject>. A key has
// no dot, so no key is the name of a schedule.
func ScheduleName(subject string) string { return ScheduleKey + "." + subject }

// ParseScheduleName is the reverse of ScheduleName. Ok is false if name is the key of a timer.
func ParseScheduleName(name string) (subject string, ok bool) {
	return strings.CutPrefix(name, ScheduleKey+".")
}

// Key returns the key of a timer, or the name of a schedule.
func (a Address) Key() string {
	if a.IsSchedule() {
		return ScheduleName(a.Target)
	}
	return a.Token
}

// ScheduleSubject returns the subject of a schedule's entries in the timers' stream.
func (n Names) ScheduleSubject(schedule string) string { return n.Timer(ScheduleName(schedule), "") }

// MarkerTarget replaces the target in the subject of a marker.
const MarkerTarget = "timer"

// Dead returns the subject of a dead letter. Target is empty if the request had no allowed target.
func (n Names) Dead(code Code, target string) string {
	if target == "" {
		return n.dead + "." + string(code)
	}
	return n.dead + "." + string(code) + "." + target
}

// BrokerOnly reports whether only the broker may publish on a subject.
func (n Names) BrokerOnly(subject string) bool {
	root, _, _ := strings.Cut(subject, ".")
	return root == n.sys || root == n.dead
}

// Parse parses the subject of a request, or of a message in a lane. The result has FormForeign for any other subject.
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

// ParseDead parses the subject of a dead letter. Target is empty if the letter has none. Ok is false if the subject is
// not that of a dead letter.
func (n Names) ParseDead(subject string) (code Code, target string, ok bool) {
	root, rest, ok := strings.Cut(subject, ".")
	if !ok || root != n.dead {
		return "", "", false
	}
	token, target, _ := strings.Cut(rest, ".")
	return Code(token), target, true
}
