package provision

import (
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/streams"
)

// The max_msg_size of a lane is max_payload minus one of these reserves, in bytes. A hop adds headers, which count
// toward the limit of the next stream. With the reserves, every accepted message can be moved.
const (
	LevelReserve  = 4 << 10
	intakeReserve = 8 << 10
	minPayload    = 2 * intakeReserve // the lowest max_payload with which a broker starts
)

// journalDuplicates is the journal's duplicate window. It is longer than the time between two attempts to store a batch
// of records.
const journalDuplicates = time.Minute

// timersDuplicates is the shortest duplicate window that the server allows. The broker identifies a timer by its key,
// so the server's records of message ids would only cost memory.
const timersDuplicates = 100 * time.Millisecond

// specs returns the wanted streams. DELAY_MAX_PENDING does not limit the stream of timers: a full stream would refuse
// the broker's own entries, which record state changes of timers.
func (s Streams) specs(maxPayload int64, replicas int) []streams.Spec {
	spec := func(kind streams.Kind, stream string, subjects ...string) streams.Spec {
		return streams.Spec{
			Kind: kind, Stream: stream, Subjects: subjects, Prefix: s.cfg.Prefix,
			Replicas: replicas, Duplicates: s.cfg.DedupWindow, MaxMsgSize: -1,
		}
	}
	n, maxSize := s.names, int32(maxPayload-LevelReserve)
	specs := s.laneSpecs(spec, maxSize)
	intake := spec(streams.Intake, n.IntakeStream(), n.InFilter(), n.AtFilter())
	intake.MaxMsgSize = int32(maxPayload - intakeReserve)
	intake.MaxMsgs, intake.MaxBytes = s.cfg.MaxPending, s.cfg.MaxPendingBytes
	for _, duration := range s.cfg.IntakeDurations {
		if _, isLevel := s.cfg.Ladder.Lookup(duration); !isLevel {
			intake.Subjects = append(intake.Subjects, s.clientSubjects(duration)...)
		}
	}
	timers := spec(streams.Timers, n.TimersStream(), n.TimerFilter(), n.TimersCursor())
	timers.MaxMsgSize, timers.Duplicates = maxSize, timersDuplicates
	specs = append(specs, intake, spec(streams.Dead, n.DeadStream(), n.DeadFilter()))
	if s.cfg.Timers && !s.cfg.TimersOptional {
		specs = append(specs, timers)
	}
	if s.cfg.Leaser == nil {
		specs = append(specs, spec(streams.Owners, n.OwnersStream(), n.OwnersFilter()))
	}
	if s.cfg.Journal > 0 {
		journal := spec(streams.Journal, n.JournalStream(), n.JournalSubject())
		journal.MaxAge, journal.MaxBytes = s.cfg.Journal, s.cfg.JournalBytes
		journal.Duplicates = min(s.cfg.Journal, journalDuplicates) // the server refuses a window that is longer than max_age
		specs = append(specs, journal)
	}
	paused := spec(streams.Paused, n.PausedStream(), n.PausedStreamFilter(), n.PausesRecord())
	paused.MaxMsgSize = maxSize
	specs = append(specs, paused) // after the required streams, which then exist even if JetStream runs out of room
	if s.cfg.Timers && s.cfg.TimersOptional {
		specs = append(specs, timers)
	}
	return s.divide(specs)
}

const (
	// ownersBytes is the part of DELAY_STORAGE of the stream of owners, which has a few small messages.
	ownersBytes = 1 << 20
	// minPart is the smallest part of a stream, in bytes.
	minPart = 2 << 20
)

// divide gives each stream its part of DELAY_STORAGE: the streams in which clients' messages wait for their time get
// twice as much as the others.
func (s Streams) divide(specs []streams.Spec) []streams.Spec {
	if s.cfg.Storage == 0 {
		return specs
	}
	weight := func(k streams.Kind) int64 {
		switch k {
		case streams.Owners:
			return 0
		case streams.Level, streams.Intake, streams.Timers:
			return 2
		}
		return 1
	}
	total := int64(0)
	for _, spec := range specs {
		total += weight(spec.Kind)
	}
	for i, spec := range specs {
		if specs[i].MaxBytes = ownersBytes; spec.Kind != streams.Owners {
			specs[i].MaxBytes = max(minPart, (s.cfg.Storage-ownersBytes)/total*weight(spec.Kind))
		}
	}
	return specs
}

func (s Streams) laneSpecs(
	spec func(kind streams.Kind, stream string, subjects ...string) streams.Spec, maxSize int32,
) (specs []streams.Spec) {
	for _, l := range s.cfg.Ladder.Levels() {
		level := spec(streams.Level, s.names.LevelStream(l.Name),
			append(s.clientSubjects(l.Name), s.names.HopFilter(l.Name))...)
		level.Name, level.Delay, level.MaxMsgSize = l.Name, l.Delay, maxSize
		level.MaxMsgs, level.MaxBytes = s.cfg.MaxPending, s.cfg.MaxPendingBytes
		specs = append(specs, level)
	}
	for _, l := range s.retryLanes.Levels() {
		retry := spec(streams.Retry, s.names.RetryStream(l.Name), s.names.RetryFilter(l.Name))
		retry.Name, retry.Delay, retry.MaxMsgSize = l.Name, l.Delay, maxSize
		specs = append(specs, retry)
	}
	return specs
}

// clientSubjects returns the subjects on which clients publish for one level or plain duration.
func (s Streams) clientSubjects(token string) []string {
	subjects := []string{s.names.LevelFilter(token)}
	if len(s.cfg.HeaderTargets) > 0 {
		subjects = append(subjects, s.names.BareLevel(token))
	}
	return subjects
}

// tooFewServers reports whether a stream was refused because fewer servers exist than copies. The broker may connect to
// a cluster although JetStream, behind a leaf node, runs on a single server. The server gives any other reason in the
// description, after a comma: a tag, a limit of assets, a lack of storage (nats-server, selectPeerError). With such a
// reason, a single copy would be less durable than the operator expects.
func tooFewServers(err error) bool {
	apiErr, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (apiErr.ErrorCode == jsapi.CodeNoReplicas ||
		apiErr.ErrorCode == jsapi.CodeNoPeers && !strings.Contains(apiErr.Description, ", "))
}
