package streams

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dustin/go-humanize/english"
	"github.com/nats-io/nats.go/jetstream"
)

// Stranded describes messages in the lanes of another prefix that no broker reads. Either the configured prefix was
// changed, or the broker of that prefix does not run.
type Stranded struct {
	Prefix   string
	Streams  []string // names of the streams that hold messages, sorted
	Messages uint64
}

func (s Stranded) String() string {
	return fmt.Sprintf("%s in %s of prefix %q, such as %s, and no broker reads them",
		english.Plural(int(s.Messages), "message waits", "messages wait"), english.Plural(len(s.Streams), "stream", ""),
		s.Prefix, s.Streams[0])
}

// FindStranded finds stranded messages in all streams. It assumes that a running broker has a consumer on at least one
// lane. The assumption does not hold while the next message of every lane is due much later.
func FindStranded(prefix string, infos map[string]*jetstream.StreamInfo) []Stranded {
	found := make(map[string]*Stranded)
	served := make(map[string]bool)
	for name, info := range infos {
		otherPrefix := info.Config.Metadata[metaPrefix]
		if otherPrefix == prefix || !Kind(info.Config.Metadata[metaKind]).IsLane() ||
			isCopy(info.Config) {
			continue
		}
		served[otherPrefix] = served[otherPrefix] || info.State.Consumers > 0
		waiting := info.State.Msgs
		if Kind(info.Config.Metadata[metaKind]) == Paused && waiting > 0 {
			waiting-- // one of these messages is the list of pauses
		}
		if waiting == 0 {
			continue
		}
		s := found[otherPrefix]
		if s == nil {
			s = &Stranded{Prefix: otherPrefix}
			found[otherPrefix] = s
		}
		s.Streams, s.Messages = append(s.Streams, name), s.Messages+waiting
	}
	var stranded []Stranded
	for otherPrefix, s := range found {
		if !served[otherPrefix] {
			slices.Sort(s.Streams)
			stranded = append(stranded, *s)
		}
	}
	slices.SortFunc(stranded, func(a, b Stranded) int { return cmp.Compare(a.Prefix, b.Prefix) })
	return stranded
}
