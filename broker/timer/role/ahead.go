package role

import (
	"context"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
)

const (
	// MaxCopies is the maximum number of timers in one request. CopiesBytes is the maximum size of their bodies together,
	// unless there is only one body. A replica that answers such a request serves no other request of the stream
	// meanwhile.
	MaxCopies   = jsapi.MaxDirect
	CopiesBytes = 1 << 20
	// headerRoom is the maximum size of the headers of one timer in an answer. The server bounds headers.
	headerRoom = 64 << 10
)

// ReadCopies reads the last entries of some subjects from a replica. The result lacks entries that the replica does not
// have, or that do not fit into one answer. After an error, the result may have some entries; they are valid.
func (s *Stream) ReadCopies(ctx context.Context, subjects []string) (map[string]message.Incoming, error) {
	copies := make(map[string]message.Incoming, len(subjects))
	err := s.askReplica(ctx, func(ctx context.Context) error {
		found, err := s.Copies.LastOfEach(ctx, s.Name(), subjects, CopiesBytes+len(subjects)*headerRoom)
		for _, in := range found {
			copies[in.Subject] = in
		}
		return err
	})
	return copies, err
}

// Copied records a replica's copy of the last entry of a marker's subject, and returns the next step. A replica may
// lag, so only two facts count: the copy is the generation's entry, whose body cannot change and which the firing will
// expect to be the last entry; or the copy is a cancel of the generation. In all other cases, the next step is a read
// from the leader.
func (s *Stream) Copied(a *Alarm, in message.Incoming) (entry.Entry, Step) {
	a.Fresh = false
	e := entry.Parse(s.Policy, in)
	switch {
	case in.Sequence == a.Generation && in.At.Equal(a.At) && e.Kind == entry.Set:
		a.Stage, a.unread = Pending, false
		return e, Step{Kind: Restart}
	case in.Sequence > a.Generation && in.At.After(a.At) && e.Kind == entry.Cancel && e.Cancelled == a.Generation:
		return e, Step{Kind: Drop}
	}
	return e, Step{Kind: Examine}
}
