package inspect

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/timer/store"
)

// Member is a running instance, by what it says of itself.
type Member struct {
	broker.Answer
	// Proven says that a broker wrote it, as far as the secrets are known that would tell. Any client that may publish
	// below the subject of the answers can have written another one.
	Proven bool
}

// Fleet asks all instances how they are, and for more where that is wanted. It takes a third of a second. The members
// are in the order of their names.
func (i *Inspector) Fleet(ctx context.Context, more broker.Asked) ([]Member, error) {
	asking, cancel := i.Allowed(ctx)
	defer cancel()
	members := make(map[string]Member)
	err := i.askAll(asking, func(reply string) error {
		return i.Conn.PublishMsg(&nats.Msg{Subject: i.names.StatusCall(), Reply: reply, Header: more.Header()})
	}, func(m *nats.Msg, a broker.Answer) (more bool) {
		proven := i.proven(m)
		if before, known := members[a.Instance]; !known || proven || !before.Proven {
			members[a.Instance] = Member{a, proven}
		}
		return true
	})
	all := slices.Collect(maps.Values(members))
	slices.SortFunc(all, func(a, b Member) int { return strings.Compare(a.Instance, b.Instance) })
	return all, Cause(asking, err)
}

// Timers are the named timers, as the verbs change them: with the broker up or down.
func (i *Inspector) Timers() *store.Timers { return i.Session.Timers(i.Policy()) }

// Learn reads the secrets of the streams, by which answers and messages are told from a stranger's.
func (i *Inspector) Learn(ctx context.Context) error {
	ctx, cancel := i.Allowed(ctx)
	defer cancel()
	return Cause(ctx, i.streams.ReadKeys(ctx, i.JetStream))
}
