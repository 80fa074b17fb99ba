package layout

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// This file keeps the secret by which brokers seal what they write, in the metadata of their streams: whoever may read
// messages, directly or by a consumer, does not see it there, and only the JetStream API shows it.
//
// Every stream has it, so that none of them can be lost with it. It is written when a stream is created, and into a
// stream that has none, never over another. Two instances that provision at once may each make one. Of a stream that is
// created, the server lets one of them win. A stream that is there they look at just before they write, one after the
// other, so that at most one stream of the first comes to have the secret of the second after the first has looked for
// the last time; the others keep it. So every secret that was ever used is somewhere: all of them are believed, and the
// one of the intake seals.

// upgradeTime is how long older brokers, which seal nothing, may run beside those that do.
const upgradeTime = time.Hour

// Secrets are those of all streams that were found, the one that seals first, and the time from which a message without
// a seal is not believed: zero when nothing says so.
func Secrets(found []Spec) (secrets []string, sealed time.Time) {
	inOrder := slices.Clone(found)
	slices.SortStableFunc(inOrder, func(a, b Spec) int { return cmp.Compare(sealRank(a), sealRank(b)) })
	for _, s := range inOrder {
		if s.Secret != "" && !slices.Contains(secrets, s.Secret) {
			secrets = append(secrets, s.Secret)
		}
		if s.Sealed.After(sealed) {
			sealed = s.Sealed
		}
	}
	return secrets, sealed
}

func sealRank(s Spec) int {
	if s.Kind == Intake {
		return 0
	}
	return 1
}

// sealMarks adds what a stream is to say of seals.
func (s Spec) sealMarks(metadata map[string]string) {
	if s.Secret != "" {
		metadata[metaSecret] = s.Secret
	}
	if !s.Sealed.IsZero() {
		metadata[metaSealed] = s.Sealed.UTC().Format(time.RFC3339)
	}
}

// seal gives the wanted streams, and those that there are, what they are to say of seals, and writes it into those that
// say nothing yet. It returns the wanted ones with it, and whether it has changed any that there are.
func (p Provisioner) seal(
	ctx context.Context, want, found []Spec, all map[string]*jetstream.StreamInfo,
) (sealed []Spec, changed bool, err error) {
	marks := p.sealOf(found, all)
	found = slices.Clone(found)
	slices.SortStableFunc(found, func(a, b Spec) int { return cmp.Compare(sealRank(a), sealRank(b)) })
	for _, s := range found {
		if s.Format > Format || s.Broken != nil || !lacks(s, marks) {
			continue
		}
		now, err := p.look(ctx, s)
		if err != nil {
			return nil, false, err
		}
		if now == nil {
			continue // gone
		}
		has, ok := specOf(*now, p.Prefix, p.Delay)
		if !ok {
			continue
		}
		// What another instance has just made is as good.
		say := Spec{Secret: cmp.Or(has.Secret, marks.Secret), Sealed: cmp.Or(has.Sealed, marks.Sealed)}
		if lacks(has, marks) {
			now.Metadata = maps.Clone(now.Metadata)
			say.sealMarks(now.Metadata)
			if err := p.update(ctx, *now); err != nil {
				return nil, false, err
			}
			changed = true
		}
		if !p.OwnSecret {
			marks.Secret = say.Secret
		}
		marks.Sealed = say.Sealed
	}
	sealed = slices.Clone(want)
	for i := range sealed {
		sealed[i].Secret, sealed[i].Sealed = marks.Secret, marks.Sealed
	}
	return sealed, changed, nil
}

// lacks reports whether a stream says less than the marks.
func lacks(s, marks Spec) bool {
	return s.Secret == "" && marks.Secret != "" || s.Sealed.IsZero() && !marks.Sealed.IsZero()
}

// sealOf is what all streams should say, given what those do that were found. Where nothing says from when messages are
// sealed there may be older brokers, and what they wrote.
func (p Provisioner) sealOf(found []Spec, all map[string]*jetstream.StreamInfo) Spec {
	secrets, sealed := Secrets(found)
	marks := Spec{Sealed: sealed}
	switch {
	case p.OwnSecret: // kept elsewhere
	case len(secrets) > 0:
		marks.Secret = secrets[0]
	case sealed.IsZero():
		marks.Secret = rand.Text()
	}
	if sealed.IsZero() {
		marks.Sealed = time.Now()
		for _, s := range found {
			if at := all[s.Stream].TimeStamp; !at.IsZero() { // by a server's clock, as messages are
				marks.Sealed = at
			}
		}
		if len(found) > 0 {
			marks.Sealed = marks.Sealed.Add(upgradeTime)
		}
	}
	marks.Sealed = marks.Sealed.UTC().Truncate(time.Second)
	return marks
}

// look is the configuration of one stream as it is now; nil when it is gone. It takes the right to list streams, and no
// other.
func (p Provisioner) look(ctx context.Context, s Spec) (*jetstream.StreamConfig, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	var opts []jetstream.StreamListOpt
	if len(s.Subjects) > 0 {
		opts = append(opts, jetstream.WithStreamListSubject(s.Subjects[0]))
	}
	var config *jetstream.StreamConfig
	list := p.Streams.ListStreams(ctx, opts...)
	for info := range list.Info() {
		if info.Config.Name == s.Stream {
			config = &info.Config
		}
	}
	if err := list.Err(); err != nil {
		return nil, fmt.Errorf("list streams: %w", err)
	}
	return config, nil
}

// adopt gives streams that are yet to be created what another instance, which was quicker, has made.
func (p Provisioner) adopt(ctx context.Context, want []Spec) error {
	found, all, err := p.Find(ctx)
	if err != nil {
		return err
	}
	marks := p.sealOf(found, all)
	for i := range want {
		want[i].Secret, want[i].Sealed = marks.Secret, marks.Sealed
	}
	return nil
}

// taken reports whether a stream could not be created because it is there, with other marks than ours.
func taken(err error) bool { return errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) }
