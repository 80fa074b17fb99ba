package jsapi

import (
	"context"
	"errors"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrChanged is returned by List and Streams when the number of streams changed between two pages of the answer. Then
// the pages are inconsistent, and may lack a stream.
var ErrChanged = errors.New("streams were created or deleted while they were listed")

// Asker sends one request of the API: see [Client.Ask].
type Asker interface {
	Ask(ctx context.Context, subject string, request, answer any) error
}

// Streams lists the account's streams: see List.
func (c Client) Streams(ctx context.Context) (all []*jetstream.StreamInfo, leaderless []string, err error) {
	return List(ctx, c, func(info *jetstream.StreamInfo) string { return info.Config.Name })
}

// List lists the account's streams, page by page. S is the type into which List decodes the info of a stream, and name
// returns the stream's name from an S. Leaderless are the names of the streams that have no leader, so that no server
// can describe them. nats.go's lister omits such streams silently.
func List[S any](ctx context.Context, api Asker, name func(S) string) (all []S, leaderless []string, err error) {
	described := make(map[string]bool)
	for offset, total := 0, -1; ; {
		var page struct {
			Total   int      `json:"total"`
			Streams []S      `json:"streams"`
			Missing []string `json:"missing"`
		}
		if err := api.Ask(ctx, "STREAM.LIST", map[string]int{"offset": offset}, &page); err != nil {
			return nil, nil, err
		}
		if total >= 0 && page.Total != total {
			return nil, nil, ErrChanged
		}
		total = page.Total
		for _, s := range page.Streams {
			described[name(s)] = true
		}
		all, leaderless = append(all, page.Streams...), append(leaderless, page.Missing...)
		n := len(page.Streams)
		for _, missing := range page.Missing {
			if !described[missing] { // a stream without any online peer is in both lists
				n++
			}
		}
		if offset += n; n == 0 || offset >= total {
			break
		}
	}
	return all, slices.DeleteFunc(leaderless, func(name string) bool { return described[name] }), nil
}
