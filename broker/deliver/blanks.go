package deliver

import (
	"context"
	"sync"
	"time"

	"delaybroker/broker/jsapi"
)

const (
	blankQueue = 1024    // subjects that wait to be looked up; when it is full, a subject is looked up at its next silence
	blanksKept = 1 << 16 // subjects whose answer is kept
)

// blanks asks the cluster, for one subject after the other, whether a stream listens on it. That is needed while there
// are streams that no leader has described since the start: the cluster knows their subjects all the same. It is safe
// for concurrent use.
type blanks struct {
	wanted chan string

	mu    sync.Mutex // guards known
	known map[string]held
}

// held is the answer whether a stream listens on a subject.
type held struct {
	yes bool
	at  time.Time
}

func (h held) fresh() bool { return time.Since(h.at) < snapshotFresh }

func newBlanks() *blanks {
	return &blanks{wanted: make(chan string, blankQueue), known: make(map[string]held)}
}

// on returns the listener of a subject that no described stream holds. An unknown subject is looked up for the next
// time.
func (b *blanks) on(subject string) listener {
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
func (b *blanks) run(ctx context.Context, api jsapi.Asker) {
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

// lookUp returns the last answer for a subject. Without one, it returns one that is not fresh.
func (b *blanks) lookUp(subject string) held {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.known[subject]
}

func (b *blanks) keep(subject string, h held) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.known) >= blanksKept {
		clear(b.known)
	}
	b.known[subject] = h
}
