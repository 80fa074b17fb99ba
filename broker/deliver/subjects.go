package deliver

import (
	"context"
	"sync"
	"time"

	"delaybroker/broker/jsapi"
)

const (
	subjectQueue = 1024    // maximum number of queued subjects; while the queue is full, further subjects are dropped
	maxSubjects  = 1 << 16 // maximum number of cached answers
)

// subjects looks up whether a stream listens on a single subject. This is needed while some streams have had no leader
// since the start of this process: the list of streams lacks the subjects of these streams, but the cluster knows them.
// A subjects is safe for concurrent use.
type subjects struct {
	queue chan string // subjects to look up

	mu    sync.Mutex // guards known
	known map[string]answer
}

// answer is the cached answer for a subject.
type answer struct {
	listens bool // a stream listens on the subject
	at      time.Time
}

func (a answer) fresh() bool { return time.Since(a.at) < snapshotFresh }

func newSubjects() *subjects {
	return &subjects{queue: make(chan string, subjectQueue), known: make(map[string]answer)}
}

// listenerOn returns the kind of stream that listens on a subject which matches no described stream. If the kind is
// unknown, listenerOn queues the subject, so that a later call returns the kind.
func (s *subjects) listenerOn(subject string) listener {
	switch a := s.cached(subject); {
	case !a.fresh():
		select {
		case s.queue <- subject:
		default:
		}
		return listenerUnknown
	case a.listens:
		return listenerAcks
	}
	return listenerNone
}

// run looks up subjects until ctx ends.
func (s *subjects) run(ctx context.Context, api jsapi.Asker) {
	for {
		select {
		case <-ctx.Done():
			return
		case subject := <-s.queue:
			if s.cached(subject).fresh() {
				continue // the subject was queued twice
			}
			if listens, err := streamListens(ctx, api, subject); err == nil {
				s.keep(subject, answer{listens: listens, at: time.Now()})
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

// cached returns the cached answer for a subject, or the zero answer, which is not fresh.
func (s *subjects) cached(subject string) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[subject]
}

func (s *subjects) keep(subject string, a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxSubjects {
		clear(s.known)
	}
	s.known[subject] = a
}
