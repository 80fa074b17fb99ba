package streams

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
)

// Streams is the part of JetStream that provisioning needs.
type Streams interface {
	Conn() *nats.Conn
	Options() jetstream.JetStreamOptions
	ListStreams(ctx context.Context, opts ...jetstream.StreamListOpt) jetstream.StreamInfoLister
	CreateStream(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error)
	UpdateStream(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error)
}

// Provisioner creates and maintains the streams of one prefix.
type Provisioner struct {
	Streams Streams
	Names   message.Names
	// MayCreate allows the provisioner to create and change streams. If MayCreate is false, a missing stream is an error.
	MayCreate bool
	// NeedLeaders makes Provision return ErrNoLeader if some of the broker's streams have no leader. If NeedLeaders is
	// false, Provision assumes that a wanted stream without a leader needs no change, and ignores other streams without a
	// leader. The stream of the journal needs no leader.
	NeedLeaders bool
	// Check is called with the existing streams of the broker and of the account before the first change. Its error ends
	// Provision. Check may be nil.
	Check func(found []Spec, all map[string]*jetstream.StreamInfo) error
	// Provision calls OnSuccess with all streams of the account when it has succeeded. OnSuccess may be nil.
	OnSuccess func(all map[string]*jetstream.StreamInfo)
	// ChangeTimeout is the maximum time for one change of a stream. If zero, jsapi.Timeout applies.
	ChangeTimeout time.Duration
	// SecretConfigured is true if the secret of the seals is configured. Then the streams do not keep the secret: see
	// Secrets.
	SecretConfigured bool

	leaderless map[string]bool // set by Provision: the broker's streams that have no leader
}

// Provision makes sure that the wanted streams exist. It returns all streams with the broker's marks, including levels
// that are no longer configured, and wanted streams without a leader.
func (p Provisioner) Provision(ctx context.Context, want []Spec) ([]Spec, []Drift, error) {
	p.leaderless = make(map[string]bool)
	found, infos, err := p.Find(ctx)
	if err != nil {
		return nil, nil, err
	}
	if p.Check != nil {
		if err := p.Check(found, infos); err != nil {
			return nil, nil, err
		}
	}
	if len(p.leaderless) > 0 && !p.SecretConfigured && len(Secrets(found)) == 0 {
		return nil, nil, fmt.Errorf("%w, so the secret cannot be read: %s", ErrNoLeader,
			strings.Join(slices.Sorted(maps.Keys(p.leaderless)), " "))
	}
	if p.MayCreate {
		if err := p.apply(ctx, p.skipLeaderless(want), found, infos); err != nil {
			return nil, nil, err
		}
		if found, infos, err = p.Find(ctx); err != nil {
			return nil, nil, err
		}
	}
	c := Compare(p.skipLeaderless(want), infos)
	if len(c.ForeignStreams) > 0 {
		return nil, nil, fmt.Errorf("%w: %s", ErrForeignStream, strings.Join(c.ForeignStreams, " "))
	}
	if len(c.MissingStreams) > 0 {
		return nil, nil, fmt.Errorf("%w: %d of %d: %s", ErrMissingStreams, len(c.MissingStreams), len(want),
			strings.Join(c.MissingStreams, " "))
	}
	for _, s := range want {
		if p.leaderless[s.Stream] && infos[s.Stream] == nil {
			found = append(found, s)
		}
	}
	if p.OnSuccess != nil {
		p.OnSuccess(infos)
	}
	return found, append(c.Drift, UnwantedJournal(want, found)...), nil
}

// skipLeaderless returns the wanted streams except those without a leader: the provisioner does not change a stream
// that it cannot read.
func (p Provisioner) skipLeaderless(want []Spec) []Spec {
	return slices.DeleteFunc(slices.Clone(want), func(s Spec) bool { return p.leaderless[s.Stream] })
}

func (p Provisioner) apply(ctx context.Context, want, found []Spec, infos map[string]*jetstream.StreamInfo) error {
	planned := make(map[string]Spec, len(want))
	for _, s := range want {
		planned[s.Stream] = s
	}
	for _, s := range found {
		if _, wanted := planned[s.Stream]; !wanted && !p.leaderless[s.Stream] && s.Kind == Level && s.MarksErr == nil {
			s.Subjects = []string{p.Names.HopFilter(s.Name)} // on which brokers, and no clients, publish
			planned[s.Stream] = s
		}
	}
	want, changed, err := p.seal(ctx, want, found)
	if err != nil {
		return err
	}
	if changed {
		if _, infos, err = p.Find(ctx); err != nil {
			return err
		}
	}
	return p.reconcile(ctx, want, planned, infos)
}

// Comparison is the difference between the wanted streams and the existing ones.
type Comparison struct {
	MissingStreams []string // wanted streams that do not exist
	ForeignStreams []string // streams that have a wanted name but not the broker's marks
	Drift          []Drift
}

// Compare compares the wanted streams with all existing streams.
func Compare(want []Spec, infos map[string]*jetstream.StreamInfo) Comparison {
	var c Comparison
	for _, s := range want {
		info, ok := infos[s.Stream]
		switch {
		case !ok:
			c.MissingStreams = append(c.MissingStreams, s.Stream)
		case !sameMarks(s.Config(), info.Config):
			c.ForeignStreams = append(c.ForeignStreams, s.Stream)
		default:
			c.Drift = append(c.Drift, s.Drift(info.Config)...)
		}
	}
	return c
}

// Find returns the streams whose marks name this prefix, sorted by name, even if their other marks are invalid. It also
// returns the infos of all streams of the account. It changes no stream.
func (p Provisioner) Find(ctx context.Context) ([]Spec, map[string]*jetstream.StreamInfo, error) {
	var found []Spec
	infos := make(map[string]*jetstream.StreamInfo)
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	leaders := jsapi.Client{Conn: p.Streams.Conn(), API: p.api(), Retries: true}
	list, leaderless, err := leaders.Streams(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("list streams: %w", err)
	}
	for _, info := range list {
		infos[info.Config.Name] = info
		if spec, ours := parseMarks(info.Config, p.Names.Prefix()); ours {
			found = append(found, spec)
		}
	}
	leaderless = slices.DeleteFunc(leaderless,
		func(name string) bool { return !strings.HasPrefix(name, p.Names.LevelStream("")) })
	journal := p.Names.JournalStream()
	required := slices.DeleteFunc(slices.Clone(leaderless), func(name string) bool { return name == journal })
	if len(required) > 0 && p.NeedLeaders {
		return nil, nil, fmt.Errorf("%w: %s", ErrNoLeader, strings.Join(required, " "))
	}
	if p.leaderless != nil {
		for _, name := range leaderless {
			p.leaderless[name] = true
		}
	}
	slices.SortFunc(found, func(a, b Spec) int { return strings.Compare(a.Stream, b.Stream) })
	return found, infos, nil
}

func (p Provisioner) reconcile(ctx context.Context, want []Spec, planned map[string]Spec,
	infos map[string]*jetstream.StreamInfo) error {
	m := move{Provisioner: p, planned: planned, configs: make(map[string]*jetstream.StreamConfig),
		giver: make(map[string]string)}
	missingSubjects := make(map[string]bool)
	for name, s := range planned {
		info, exists := infos[name]
		if exists && !sameMarks(s.Config(), info.Config) {
			continue
		}
		var subjects []string
		if exists {
			m.configs[name], subjects = &info.Config, info.Config.Subjects
		}
		for _, subject := range Subtract(s.Subjects, subjects) {
			missingSubjects[subject] = true
		}
		for _, subject := range ownSubjects(p.Names.Roots(), Subtract(subjects, s.Subjects)) {
			m.giver[subject] = name
		}
	}
	// Subjects that no stream will have are removed first, because they may overlap with new subjects.
	for subject, name := range m.giver {
		if !missingSubjects[subject] {
			if err := m.release(ctx, name, subject); err != nil {
				return err
			}
		}
	}
	for i := range want {
		if _, exists := infos[want[i].Stream]; exists && m.configs[want[i].Stream] == nil {
			continue // the stream is not the broker's; Compare reports it
		}
		err := m.apply(ctx, want[i])
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // created by another instance, perhaps with another secret
			err = p.adopt(ctx, want[i:])
		}
		if err != nil {
			return err
		}
	}
	for name, s := range planned { // levels that are no longer configured
		if _, wanted := SpecOf(want, name); !wanted && m.configs[name] != nil {
			if err := m.apply(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// applyLimits applies the configured bounds, and reports whether it changed the configuration. A bound that is not
// configured stays unchanged. A bound below the current contents of a lane removes no message: the stream then refuses
// new messages, and the journal removes its oldest records.
func applyLimits(cfg *jetstream.StreamConfig, want Spec) (changed bool) {
	if want.Kind != Journal && cfg.Discard != jetstream.DiscardNew {
		return false // a bound would remove messages; Drift reports this discard policy
	}
	if want.MaxMsgs > 0 && cfg.MaxMsgs != want.MaxMsgs {
		cfg.MaxMsgs, changed = want.MaxMsgs, true
	}
	if want.MaxBytes > 0 && cfg.MaxBytes != want.MaxBytes {
		cfg.MaxBytes, changed = want.MaxBytes, true
	}
	if want.MaxAge > 0 && cfg.MaxAge != want.MaxAge {
		cfg.MaxAge, changed = want.MaxAge, true
		cfg.Duplicates = min(cfg.Duplicates, want.MaxAge) // the server refuses a window that is longer than max_age
	}
	return changed
}

func (p Provisioner) create(ctx context.Context, s Spec) error {
	err := p.change(ctx, "create", s.Stream, func(ctx context.Context) error {
		_, err := p.Streams.CreateStream(ctx, s.Config())
		return err
	})
	return addRemedy(err, s.Kind, s.MaxBytes)
}

// addRemedy adds a remedy to the error of a server with too little storage. A stream reserves the storage for its
// maximum bytes, so the error names the setting that determines this number.
func addRemedy(err error, kind Kind, bytes int64) error {
	refusal, ok := errors.AsType[*jetstream.APIError](err)
	if !ok || refusal.ErrorCode != jsapi.CodeStorageFull || bytes <= 0 {
		return err
	}
	setting, addition := "DELAY_MAX_PENDING_BYTES", ", as does each other level's stream and the stream of the intake"
	if kind == Journal {
		setting, addition = "DELAY_JOURNAL_BYTES", ""
	}
	return fmt.Errorf("%w: the stream reserves %d bytes%s: lower %s, or give JetStream more storage",
		err, bytes, addition, setting)
}

func (p Provisioner) update(ctx context.Context, cfg jetstream.StreamConfig) error {
	return p.change(ctx, "update", cfg.Name, func(ctx context.Context) error {
		_, err := p.Streams.UpdateStream(ctx, cfg)
		return err
	})
}

// ownSubjects returns the subjects that begin with one of the roots. An operator may have added other subjects.
func ownSubjects(roots, subjects []string) []string {
	return slices.DeleteFunc(subjects, func(s string) bool {
		root, _, _ := strings.Cut(s, ".")
		return !slices.Contains(roots, root)
	})
}
