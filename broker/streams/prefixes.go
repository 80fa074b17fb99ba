package streams

import (
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// Prefixes returns the sorted prefixes in the marks of these streams.
func Prefixes(all map[string]*jetstream.StreamInfo) []string {
	found := make(map[string]bool)
	for _, info := range all {
		if m := info.Config.Metadata; m[metaKind] != "" && m[metaPrefix] != "" {
			found[m[metaPrefix]] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
