package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/streams"
	"delaybroker/broker/streams/provision"
	"delaybroker/levels"
)

// changeTimeout is the timeout for one change of a stream. It exceeds jsapi.Timeout because a command does not repeat a
// change. The server compares each pair of the intake's subjects, of which there are over a thousand.
const changeTimeout = 30 * time.Second

// A StreamChange is a change of one stream.
type StreamChange struct {
	Stream string `json:"stream"`
	Action string `json:"did"` // created or changed
	Detail string `json:"detail"`
}

// ProvisionReport is the result of Provision.
type ProvisionReport struct {
	Wanted   int             `json:"wanted"` // number of streams that should exist
	Changes  []StreamChange  `json:"changes"`
	Drift    []streams.Drift `json:"drift"`
	Complete bool            `json:"complete"`          // no error occurred
	DryRun   bool            `json:"dry_run,omitempty"` // the changes were not made
}

// Check returns what the broker needs of the limits of the account, the server and the user. It changes nothing. If the
// server does not report the account's limits, these needs are left out.
func (i *Inspector) Check(ctx context.Context) ([]provision.Need, error) {
	_, infos, err := i.streams.Provisioner(i.JetStream).Find(ctx)
	if err != nil {
		return nil, err
	}
	var account *jetstream.AccountInfo
	_ = i.Ask(ctx, func(ctx context.Context) (err error) {
		account, err = i.JetStream.AccountInfo(ctx)
		return err
	})
	return provision.Needs(ctx, i.api, account, i.Wanted(), infos, true), nil
}

// Provision creates the missing streams, and updates existing streams. After an error, the result has the changes made
// before it. A dry run changes nothing, and returns the changes and the drift of a real run.
func (i *Inspector) Provision(ctx context.Context, dry bool) (ProvisionReport, error) {
	want := i.Wanted()
	result := ProvisionReport{Wanted: len(want), Changes: []StreamChange{}, Drift: []streams.Drift{}, DryRun: dry}
	if err := streams.CheckServer(i.Conn.ConnectedServerVersion()); err != nil {
		return result, err
	}
	found, infos, err := i.streams.Provisioner(i.JetStream).Find(ctx)
	if err != nil {
		return result, err
	}
	r := &recorder{Streams: i.JetStream, infos: infos, dry: dry}
	p := i.streams.Provisioner(r)
	p.MayCreate, p.ChangeTimeout = true, changeTimeout
	_, drift, err := p.Provision(ctx, want)
	if dry && (err == nil || errors.Is(err, streams.ErrMissingStreams)) { // a dry run does not create missing streams
		drift, err = append(streams.Compare(want, r.infos).Drift, streams.UnwantedJournal(want, found)...), nil
	}
	result.Changes, result.Drift = append(result.Changes, r.changes...), append(result.Drift, drift...)
	result.Complete = err == nil
	return result, err
}

// A recorder records the changes that Provision makes, or would make in a dry run.
type recorder struct {
	streams.Streams
	infos   map[string]*jetstream.StreamInfo // the streams before Provision, updated with each change
	dry     bool
	changes []StreamChange
}

func (r *recorder) CreateStream(ctx context.Context, cfg jetstream.StreamConfig) (s jetstream.Stream, err error) {
	if !r.dry {
		s, err = r.Streams.CreateStream(ctx, cfg)
	}
	if err == nil {
		r.infos[cfg.Name] = &jetstream.StreamInfo{Config: cfg}
		detail := fmt.Sprintf("replicas %d, %s", cfg.Replicas, subjects(cfg.Subjects))
		r.changes = append(r.changes, StreamChange{cfg.Name, "created", detail})
	}
	return s, err
}

func (r *recorder) UpdateStream(ctx context.Context, cfg jetstream.StreamConfig) (s jetstream.Stream, err error) {
	if !r.dry {
		if s, err = r.Streams.UpdateStream(ctx, cfg); err != nil {
			return s, err
		}
	}
	var subjectsBefore, detail []string
	if info := r.infos[cfg.Name]; info != nil {
		subjectsBefore = info.Config.Subjects
		if len(cfg.Metadata) > len(info.Config.Metadata) { // the detail omits the value, which may be a secret
			detail = append(detail, "marked for sealed messages")
		}
		if old := info.Config.MaxAge; old != cfg.MaxAge {
			detail = append(detail, fmt.Sprintf("keeps records for %s, not %s", levels.FormatDuration(cfg.MaxAge),
				levels.FormatDuration(old)))
		}
		if old := info.Config.MaxMsgs; old != cfg.MaxMsgs {
			detail = append(detail, fmt.Sprintf("holds %d messages at most, not %d", cfg.MaxMsgs, old))
		}
		if old := info.Config.MaxBytes; old != cfg.MaxBytes {
			detail = append(detail, fmt.Sprintf("holds %d bytes at most, not %d", cfg.MaxBytes, old))
		}
		info.Config = cfg
	}
	if removed := streams.Subtract(subjectsBefore, cfg.Subjects); len(removed) > 0 {
		detail = append(detail, "no longer "+subjects(removed))
	}
	if added := streams.Subtract(cfg.Subjects, subjectsBefore); len(added) > 0 {
		detail = append(detail, "now "+subjects(added))
	}
	r.changes = append(r.changes, StreamChange{cfg.Name, "changed", strings.Join(detail, ", ")})
	return s, nil
}

// subjects returns the names as text, at most three of them.
func subjects(names []string) string {
	const maxListed = 3
	if len(names) <= maxListed {
		return strings.Join(names, " ")
	}
	return fmt.Sprintf("%s and %d more subjects", strings.Join(names[:maxListed-1], " "), len(names)-maxListed+1)
}
