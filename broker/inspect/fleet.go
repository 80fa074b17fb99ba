package inspect

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/stats"
)

// Member is an instance's answer to the request for its status.
type Member struct {
	stats.InstanceStatus
	// Proven is true if the seal proves that a broker wrote the status, or if this program has no secret. Any client that
	// may publish to the reply subject can write an unproven status.
	Proven bool
}

// Fleet requests the status of all instances, unless except names an instance that need not answer. The call takes at
// most answerTimeout, and returns the members sorted by name.
func (i *Inspector) Fleet(ctx context.Context, except string) ([]Member, error) {
	ctx, cancel := i.WithRefusal(ctx)
	defer cancel()
	members := make(map[string]Member)
	err := i.askAll(ctx, func(reply string) error {
		return i.Conn.PublishMsg(&nats.Msg{Subject: i.names.StatusCall(), Reply: reply, Header: stats.QueryHeader(except)})
	}, func(m Member) (more bool) {
		if previous, ok := members[m.Instance]; !ok || m.Proven || !previous.Proven {
			members[m.Instance] = m
		}
		return true
	})
	return slices.SortedFunc(maps.Values(members),
		func(a, b Member) int { return strings.Compare(a.Instance, b.Instance) }), Cause(ctx, err)
}
