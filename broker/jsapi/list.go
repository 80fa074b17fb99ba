package jsapi

import (
	"context"
	"errors"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrChanged is returned by List and Streams when streams were created or deleted while they were listed. Then the
// pages are not consistent, and a stream may be missing.
var ErrChanged = errors.New("streams were created or deleted while they were listed")

// Asker sends one request of the API: see [Client.Ask].
type Asker interface {
	Ask(ctx context.Context, subject string, request, answer any) error
}

// Streams lists the account's streams: see List.
func (l Client) Streams(ctx context.Context) (all []*jetstream.StreamInfo, away []string, err error) {
	return List(ctx, l, func(info *jetstream.StreamInfo) string { return info.Config.Name })
}

// List lists the account's streams, page by page. S is the part of a stream's info that the caller reads, and name
// returns the stream's name from it. Away are the names of streams that exist but have no leader to describe them:
// nats.go's lister omits such streams silently.
func List[S any](ctx context.Context, api Asker, name func(S) string) (all []S, away []string, err error) {
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
		all, away = append(all, page.Streams...), append(away, page.Missing...)
		n := len(page.Streams)
		for _, missing := range page.Missing {
			if !described[missing] { // the server describes a stream whose peers are all offline, and names it here too
				n++
			}
		}
		if offset += n; n == 0 || offset >= total {
			break
		}
	}
	return all, slices.DeleteFunc(away, func(name string) bool { return described[name] }), nil
}
