package deliver

import (
	"context"
	"sync"
	"time"
)

const (
	blankQueue = 1024 // subjects that wait to be asked for; more ask again later
	blanksKept = 1 << 16
)

// blanks are subjects that are asked for one by one, because there are streams that nobody can describe: their leaders have
// been away since before we began. Which stream holds a subject the cluster knows all the same.
type blanks struct {
	wanted chan string

	mu    sync.Mutex
	known map[string]held
}

// held says whether some stream listens on a subject.
type held struct {
	yes bool
	at  time.Time
}

func newBlanks() *blanks {
	return &blanks{wanted: make(chan string, blankQueue), known: make(map[string]held)}
}

// on says what is known of a subject that no described stream holds, and asks to know more.
func (b *blanks) on(subject string) listener {
	b.mu.Lock()
	h, known := b.known[subject]
	b.mu.Unlock()
	switch {
	case !known || time.Since(h.at) >= pictureFresh:
		select {
		case b.wanted <- subject:
		default:
		}
		return unknown
	case h.yes:
		return answerer
	}
	return nobody
}

// run asks for subjects until ctx ends.
func (b *blanks) run(ctx context.Context, s *streams) {
	for {
		select {
		case <-ctx.Done():
			return
		case subject := <-b.wanted:
			if b.fresh(subject) {
				continue // asked for twice
			}
			if yes, err := s.holds(ctx, subject); err == nil {
				b.keep(subject, held{yes: yes, at: time.Now()})
			}
		}
	}
}

// holds reports whether a stream listens on a subject. The list may come without a word about that stream.
func (s *streams) holds(ctx context.Context, subject string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	var page struct {
		Total int `json:"total"`
	}
	err := s.api.Ask(ctx, "STREAM.LIST", map[string]string{"subject": subject}, &page)
	return page.Total > 0, err
}

func (b *blanks) fresh(subject string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	h, known := b.known[subject]
	return known && time.Since(h.at) < pictureFresh
}

func (b *blanks) keep(subject string, h held) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.known) >= blanksKept {
		clear(b.known)
	}
	b.known[subject] = h
}
