package ratelog

import (
	"container/list"
	"context"
	"log/slog"
	"sync"
	"time"
)

// A Keyed logs at most one line for each key in an interval. The attribute "more" is the number of lines of the key
// that were suppressed since its last line. Publishers may choose the keys, so a Keyed has entries for a bounded number
// of keys. A new key takes the place of the key that was logged longest ago, if that key's interval has ended. Keys
// without an entry share one interval, and so one line. The attribute "others" of a line is the number of lines of keys
// without an entry that were suppressed. So the memory and the number of lines in an interval are bounded, and every
// suppressed line is counted. A Keyed is safe for concurrent use.
type Keyed struct {
	log      *slog.Logger
	interval time.Duration
	maxKeys  int // maximum number of entries, at least one

	mu     sync.Mutex               // guards the fields below
	known  map[string]*list.Element // elements of byLast by key
	byLast *list.List               // of *entry; the entry logged longest ago is in front
	shared time.Time                // when a line of a key without an entry was last logged
	others int                      // number of suppressed lines of keys without an entry, since the last report
}

// entry records when a key was last logged, and the number of lines suppressed since then.
type entry struct {
	key  string
	at   time.Time
	more int
}

// NewKeyed returns a Keyed that writes to log. It has at most maxKeys entries, at least one.
func NewKeyed(log *slog.Logger, interval time.Duration, maxKeys int) *Keyed {
	return &Keyed{
		log: log, interval: interval, maxKeys: maxKeys, known: make(map[string]*list.Element), byLast: list.New(),
	}
}

// Log logs msg with the attributes of args, unless it has logged a line for the key within the interval.
func (k *Keyed) Log(key string, level slog.Level, msg string, args ...any) {
	more, others, ok := k.allow(key)
	if !ok {
		return
	}
	args = args[:len(args):len(args)]
	if more > 0 {
		args = append(args, "more", more)
	}
	if others > 0 {
		args = append(args, "others", others)
	}
	k.log.Log(context.Background(), level, msg, args...)
}

// allow reports whether a line for the key may be logged now. If so, more and others are the numbers of suppressed
// lines to report in it.
func (k *Keyed) allow(key string) (more, others int, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if e := k.known[key]; e != nil {
		s := e.Value.(*entry)
		if now.Sub(s.at) < k.interval {
			s.more++
			return 0, 0, false
		}
		more, s.more, s.at = s.more, 0, now
		k.byLast.MoveToBack(e)
		return more, 0, true
	}
	switch {
	case k.makeRoom(now):
		k.known[key] = k.byLast.PushBack(&entry{key: key, at: now})
	case k.shared.IsZero() || now.Sub(k.shared) >= k.interval:
		k.shared = now
	default:
		k.others++
		return 0, 0, false
	}
	others, k.others = k.others, 0
	return 0, others, true
}

// makeRoom reports whether there is room for another entry. If there are maxKeys entries, it removes the entry that was
// logged longest ago, provided that its interval has ended.
func (k *Keyed) makeRoom(now time.Time) bool {
	if len(k.known) < k.maxKeys {
		return true
	}
	oldest := k.byLast.Front()
	s := oldest.Value.(*entry)
	if now.Sub(s.at) < k.interval {
		return false
	}
	k.others += s.more
	delete(k.known, s.key)
	k.byLast.Remove(oldest)
	return true
}
