package deliver

import (
	"context"
	"sync"
	"time"

	"delaybroker/broker/jsapi"
)

const (
	maxQueuedSubjects = 1024    // while the queue is full, further subjects are dropped
	maxCachedAnswers  = 1 << 16 // when the cache is full, the next answer clears it
)

// subjectLookup finds out whether a stream listens on a single subject. It is needed for a stream without a leader: the
// list of streams lacks its subjects, but the cluster knows them. A subjectLookup is safe for concurrent use.
type subjectLookup struct {
	queue chan string // subjects to look up

	mu      sync.Mutex        // guards answers
	answers map[string]answer // by subject
}

type answer struct {
	listens bool // a stream listens on the subject
	at      time.Time
}

func (a answer) valid() bool { return time.Since(a.at) < snapshotValidity }

func newSubjectLookup() *subjectLookup {
	return &subjectLookup{queue: make(chan string, maxQueuedSubjects), answers: make(map[string]answer)}
}

// listenerKind returns the kind of stream that listens on a subject. The caller has found no stream for the subject in
// the snapshot. A stream that listens is assumed to acknowledge. If the kind is unknown, listenerKind queues the
// subject for run.
func (s *subjectLookup) listenerKind(subject string) listenerKind {
	switch a := s.cachedAnswer(subject); {
	case !a.valid():
		select {
		case s.queue <- subject:
		default:
		}
		return kindUnknown
	case a.listens:
		return kindAcks
	}
	return kindNone
}

func (s *subjectLookup) run(ctx context.Context, api jsapi.Asker) {
	for {
		select {
		case <-ctx.Done():
			return
		case subject := <-s.queue:
			if s.cachedAnswer(subject).valid() {
				continue // the subject was queued twice
			}
			if listens, err := streamListens(ctx, api, subject); err == nil {
				s.mu.Lock()
				if len(s.answers) >= maxCachedAnswers {
					clear(s.answers)
				}
				s.answers[subject] = answer{listens: listens, at: time.Now()}
				s.mu.Unlock()
			}
		}
	}
}

// streamListens asks the cluster whether a stream listens on a subject. It uses the total of the list, which also
// counts streams without a leader.
func streamListens(ctx context.Context, api jsapi.Asker, subject string) (bool, error) {
	var page struct {
		Total int `json:"total"`
	}
	err := api.Ask(ctx, "STREAM.LIST", map[string]string{"subject": subject}, &page)
	return page.Total > 0, err
}

// cachedAnswer returns the cached answer for a subject, or the zero answer, which is not valid.
func (s *subjectLookup) cachedAnswer(subject string) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answers[subject]
}
