package provision

import (
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/layout"
	"delaybroker/levels"
)

// How much of max_payload the streams keep free, so that every message that was accepted can be moved: a hop adds
// headers, and the limit of the stream that it goes to counts them.
const (
	LevelReserve  = 4 << 10
	intakeReserve = 8 << 10
	leastPayload  = 2 * intakeReserve
)

// journalDuplicates is longer than a batch of records waits between two tries.
const journalDuplicates = time.Minute

// base is what our streams have in common, unless their own specification says otherwise.
func (s Streams) base(replicas int) layout.Spec {
	return layout.Spec{
		Prefix: s.cfg.Prefix, Format: layout.Format, Replicas: replicas, Duplicates: s.cfg.DedupWindow, MaxMsgSize: -1,
	}
}

// specs are the streams that a configuration wants.
func (s Streams) specs(maxPayload int64, replicas int) []layout.Spec {
	base := s.base(replicas)
	var all []layout.Spec
	for _, l := range s.cfg.Ladder.Levels() {
		level := base
		level.Kind, level.Stream, level.Name, level.Delay = layout.Level, s.names.LevelStream(l.Name), l.Name, l.Delay
		level.Subjects = append(s.clientSubjects(l.Name), s.names.HopFilter(l.Name))
		level.MaxMsgSize = int32(maxPayload - LevelReserve)
		level.MaxMsgs, level.MaxBytes = s.cfg.MaxPending, s.cfg.MaxPendingBytes
		all = append(all, level)
	}
	for _, l := range s.lanes.Levels() {
		retry := base
		retry.Kind, retry.Stream, retry.Name, retry.Delay = layout.Retry, s.names.RetryStream(l.Name), l.Name, l.Delay
		retry.Subjects = []string{s.names.RetryFilter(l.Name)}
		retry.MaxMsgSize = int32(maxPayload - LevelReserve)
		all = append(all, retry)
	}
	intake := base
	intake.Kind, intake.Stream, intake.MaxMsgSize = layout.Intake, s.names.IntakeStream(), int32(maxPayload-intakeReserve)
	intake.MaxMsgs, intake.MaxBytes = s.cfg.MaxPending, s.cfg.MaxPendingBytes
	intake.Subjects = []string{s.names.InFilter(), s.names.AtFilter()}
	for _, plain := range levels.Whole() {
		if _, isLevel := s.cfg.Ladder.Lookup(plain); !isLevel {
			intake.Subjects = append(intake.Subjects, s.clientSubjects(plain)...)
		}
	}
	dead := base
	dead.Kind, dead.Stream = layout.Dead, s.names.DeadStream()
	dead.Subjects = []string{s.names.DeadFilter()}
	all = append(all, intake, dead)
	if s.cfg.Timers && !s.cfg.TimersSpare {
		all = append(all, s.timersSpec(maxPayload, replicas))
	}
	if s.cfg.MaxOwners > 0 {
		all = append(all, s.ownersSpec(replicas))
	}
	if s.cfg.Journal > 0 {
		all = append(all, s.journalSpec(replicas))
	}
	all = append(all, s.pausedSpec(maxPayload, replicas)) // late: if there is room for no more, all others are there
	if s.cfg.Timers && s.cfg.TimersSpare {
		all = append(all, s.timersSpec(maxPayload, replicas))
	}
	return all
}

// timersWindow is the shortest duplicate window that the server allows: the key of a timer is its identity, so an id on
// a set is pointless, and costs memory.
const timersWindow = 100 * time.Millisecond

// timersSpec is the stream of the named timers. DELAY_MAX_PENDING is no limit of it: a full stream would refuse
// verdicts.
func (s Streams) timersSpec(maxPayload int64, replicas int) layout.Spec {
	timers := s.base(replicas)
	timers.Kind, timers.Stream, timers.MaxMsgSize = layout.Timers, s.names.TimersStream(), int32(maxPayload-LevelReserve)
	timers.Subjects, timers.Duplicates = []string{s.names.TimerFilter(), s.names.Armed()}, timersWindow
	return timers
}

// clientSubjects are the subjects on which clients publish for one level or plain duration.
func (s Streams) clientSubjects(token string) []string {
	subjects := []string{s.names.LevelFilter(token)}
	if len(s.cfg.HeaderTargets) > 0 {
		subjects = append(subjects, s.names.Bare(token))
	}
	return subjects
}

// tooFewServers reports whether fewer copies would be stored. The cluster that we are connected to need not be the one
// that JetStream runs on: behind a leaf node it may be a single server.
func tooFewServers(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && !isTransient(err) &&
		(api.ErrorCode == jsapi.CodeNoReplicas || api.ErrorCode == jsapi.CodeNoPeers)
}

// pausedSpec is the stream in which what is due waits while its target is paused.
func (s Streams) pausedSpec(maxPayload int64, replicas int) layout.Spec {
	paused := s.base(replicas)
	paused.Kind, paused.Stream, paused.MaxMsgSize = layout.Paused, s.names.PausedStream(), int32(maxPayload-LevelReserve)
	paused.Subjects = []string{s.names.PausedFilter(), s.names.PausesRecord()}
	return paused
}

// ownersSpec is the stream in which instances agree on the owners of lanes.
func (s Streams) ownersSpec(replicas int) layout.Spec {
	owners := s.base(replicas)
	owners.Kind, owners.Stream, owners.Subjects = layout.Owners, s.names.OwnersStream(), []string{s.names.OwnersFilter()}
	return owners
}

// journalSpec is the stream of the records of deliveries.
func (s Streams) journalSpec(replicas int) layout.Spec {
	journal := s.base(replicas)
	journal.Kind, journal.Stream = layout.Journal, s.names.JournalStream()
	journal.Subjects = []string{s.names.JournalSubject()}
	journal.MaxAge, journal.MaxBytes = s.cfg.Journal, s.cfg.JournalBytes
	journal.Duplicates = min(s.cfg.Journal, journalDuplicates) // the server refuses a window that is longer than max_age
	return journal
}
