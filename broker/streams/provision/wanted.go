package provision

import (
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/streams"
	"delaybroker/levels"
)

// The parts of max_payload that the streams keep free, in bytes, so that every accepted message can be moved: a hop
// adds headers, which count toward the size limit of the next stream.
const (
	LevelReserve  = 4 << 10
	intakeReserve = 8 << 10
	minPayload    = 2 * intakeReserve
)

// journalDuplicates is the journal's duplicate window. It is longer than the time between two attempts to store a batch
// of records.
const journalDuplicates = time.Minute

// base returns the settings that our streams have in common.
func (s Streams) base(replicas int) streams.Spec {
	return streams.Spec{
		Prefix: s.cfg.Prefix, Format: streams.Format, Replicas: replicas, Duplicates: s.cfg.DedupWindow, MaxMsgSize: -1,
	}
}

// specs returns the streams that the configuration wants.
func (s Streams) specs(maxPayload int64, replicas int) []streams.Spec {
	base := s.base(replicas)
	var all []streams.Spec
	for _, l := range s.cfg.Ladder.Levels() {
		level := base
		level.Kind, level.Stream, level.Name, level.Delay = streams.Level, s.names.LevelStream(l.Name), l.Name, l.Delay
		level.Subjects = append(s.clientSubjects(l.Name), s.names.HopFilter(l.Name))
		level.MaxMsgSize = int32(maxPayload - LevelReserve)
		level.MaxMsgs, level.MaxBytes = s.cfg.MaxPending, s.cfg.MaxPendingBytes
		all = append(all, level)
	}
	for _, l := range s.lanes.Levels() {
		retry := base
		retry.Kind, retry.Stream, retry.Name, retry.Delay = streams.Retry, s.names.RetryStream(l.Name), l.Name, l.Delay
		retry.Subjects = []string{s.names.RetryFilter(l.Name)}
		retry.MaxMsgSize = int32(maxPayload - LevelReserve)
		all = append(all, retry)
	}
	intake := base
	intake.Kind, intake.Stream, intake.MaxMsgSize = streams.Intake, s.names.IntakeStream(), int32(maxPayload-intakeReserve)
	intake.MaxMsgs, intake.MaxBytes = s.cfg.MaxPending, s.cfg.MaxPendingBytes
	intake.Subjects = []string{s.names.InFilter(), s.names.AtFilter()}
	for _, plain := range levels.Whole() {
		if _, isLevel := s.cfg.Ladder.Lookup(plain); !isLevel {
			intake.Subjects = append(intake.Subjects, s.clientSubjects(plain)...)
		}
	}
	dead := base
	dead.Kind, dead.Stream = streams.Dead, s.names.DeadStream()
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

// timersWindow is the shortest duplicate window that the server allows. The key of a timer is its identity, so
// remembering a message id would only cost memory.
const timersWindow = 100 * time.Millisecond

// timersSpec returns the stream of the named timers. DELAY_MAX_PENDING does not limit it: a full stream would refuse
// the broker's own entries, which decide timers.
func (s Streams) timersSpec(maxPayload int64, replicas int) streams.Spec {
	timers := s.base(replicas)
	timers.Kind, timers.Stream, timers.MaxMsgSize = streams.Timers, s.names.TimersStream(), int32(maxPayload-LevelReserve)
	timers.Subjects, timers.Duplicates = []string{s.names.TimerFilter(), s.names.Armed()}, timersWindow
	return timers
}

// clientSubjects returns the subjects on which clients publish for one level or plain duration.
func (s Streams) clientSubjects(token string) []string {
	subjects := []string{s.names.LevelFilter(token)}
	if len(s.cfg.HeaderTargets) > 0 {
		subjects = append(subjects, s.names.Bare(token))
	}
	return subjects
}

// tooFewServers reports whether the server refused a stream because of its number of copies. The cluster of the
// connection need not be the cluster of JetStream: behind a leaf node, JetStream may run on a single server.
func tooFewServers(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && !isTransient(err) &&
		(api.ErrorCode == jsapi.CodeNoReplicas || api.ErrorCode == jsapi.CodeNoPeers)
}

// pausedSpec returns the stream in which due messages wait while their target is paused.
func (s Streams) pausedSpec(maxPayload int64, replicas int) streams.Spec {
	paused := s.base(replicas)
	paused.Kind, paused.Stream, paused.MaxMsgSize = streams.Paused, s.names.PausedStream(), int32(maxPayload-LevelReserve)
	paused.Subjects = []string{s.names.PausedFilter(), s.names.PausesRecord()}
	return paused
}

// ownersSpec returns the stream in which instances agree on the owners of lanes.
func (s Streams) ownersSpec(replicas int) streams.Spec {
	owners := s.base(replicas)
	owners.Kind, owners.Stream, owners.Subjects = streams.Owners, s.names.OwnersStream(), []string{s.names.OwnersFilter()}
	return owners
}

// journalSpec returns the stream of the records of deliveries.
func (s Streams) journalSpec(replicas int) streams.Spec {
	journal := s.base(replicas)
	journal.Kind, journal.Stream = streams.Journal, s.names.JournalStream()
	journal.Subjects = []string{s.names.JournalSubject()}
	journal.MaxAge, journal.MaxBytes = s.cfg.Journal, s.cfg.JournalBytes
	journal.Duplicates = min(s.cfg.Journal, journalDuplicates) // the server refuses a window that is longer than max_age
	return journal
}
