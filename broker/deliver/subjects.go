package deliver

import (
	"context"
	"sync"
	"time"

	"delaybroker/broker/jsapi"
)

const (
		subjectQueue = 1024    // maximum number of queued subjects; a subject without room is queued at its next silence
	maxSubjects  = 1 << 16 // maximum number of cached answers
)

// subjects looks up single subjects: whether a stream listens on one. The lookups are needed while no leader has
// described some streams since the start of this process; the cluster knows the subjects of such streams. It is safe
// for concurrent use.
type subjects struct {
	wanted chan string

	mu    sync.Mutex // guards known
	known map[string]held
}

// held is the cached answer for a subject.
type held struct {
	yes bool // a stream listens on the subject
	at  time.Time
}

func (h held) fresh() bool { return time.Since(h.at) < snapshotFresh }

func newSubjects() *subjects {
	return &subjects{wanted: make(chan string, subjectQueue), known: make(map[string]held)}
}

// on returns the listener of a subject that no described stream holds. It queues an unknown subject, so that a later
// call returns the answer.
func (b *subjects) on(subject string) listener {
	switch h := b.lookUp(subject); {
	case !h.fresh():
		select {
		case b.wanted <- subject:
		default:
		}
		return notKnown
	case h.yes:
		return answerer
	}
	return nobody
}

// run looks up subjects until ctx ends.
func (b *subjects) run(ctx context.Context, api jsapi.Asker) {
	for {
		select {
		case <-ctx.Done():
			return
		case subject := <-b.wanted:
			if b.lookUp(subject).fresh() {
				continue // it was queued twice
			}
			if yes, err := isHeld(ctx, api, subject); err == nil {
				b.keep(subject, held{yes: yes, at: time.Now()})
			}
		}
	}
}

// isHeld reports whether a stream listens on a subject. The total counts a stream without a leader too, which the list
// itself may leave out.
func isHeld(ctx context.Context, api jsapi.Asker, subject string) (bool, error) {
	var page struct {
		Total int `json:"total"`
	}
	err := api.Ask(ctx, "STREAM.LIST", map[string]string{"subject": subject}, &page)
	return page.Total > 0, err
}

// lookUp returns the cached answer for a subject. Without an answer, it returns the zero held, which is not fresh.
func (b *subjects) lookUp(subject string) held {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.known[subject]
}

func (b *subjects) keep(subject string, h held) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.known) >= maxSubjects {
		clear(b.known)
	}
	b.known[subject] = h
}
