package streams

import (
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// Prefixes returns the sorted prefixes in the marks of the given streams.
func Prefixes(infos map[string]*jetstream.StreamInfo) []string {
	found := make(map[string]bool)
	for _, info := range infos {
		if m := info.Config.Metadata; m[metaKind] != "" && !isCopy(info.Config) && m[metaPrefix] != "" {
			found[m[metaPrefix]] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
