package ratelog

import (
	"container/list"
	"context"
	"log/slog"
	"sync"
	"time"
)

// A Keyed logs at most one line in an interval for each key that has an entry. The attribute "more" is the number of
// lines of the key that were suppressed after its previous line. Publishers may choose the keys, so a Keyed has entries
// for a bounded number of keys. A new key takes the place of the key that was logged longest ago, if that key's
// interval has ended. Keys without an entry share one interval, and so one line. The attribute "others" is the number
// of suppressed lines that no "more" will count: their key had no entry, or its entry was removed. So the memory and
// the number of lines in an interval are bounded, and every suppressed line is counted. A Keyed is safe for concurrent
// use.
type Keyed struct {
	log      *slog.Logger
	interval time.Duration
	maxKeys  int // maximum number of entries, at least one

	mu         sync.Mutex               // guards the fields below
	entries    map[string]*list.Element // maps a key to its element of the list order
	order      *list.List               // of *entry; the entry logged longest ago is in front
	sharedTime time.Time                // when a line of a key without an entry was last logged
	otherLines int                      // number of suppressed lines for the next attribute "others"
}

// entry records when a key was last logged, and the number of lines suppressed since then.
type entry struct {
	key        string
	lastTime   time.Time
	suppressed int
}

// NewKeyed returns a Keyed that writes to log. It has at most maxKeys entries; maxKeys must be at least one.
func NewKeyed(log *slog.Logger, interval time.Duration, maxKeys int) *Keyed {
	return &Keyed{
		log: log, interval: interval, maxKeys: maxKeys, entries: make(map[string]*list.Element), order: list.New(),
	}
}

// Log logs msg with the attributes of args, or suppresses and counts the line: see Keyed.
func (k *Keyed) Log(key string, level slog.Level, msg string, args ...any) {
	suppressed, otherLines, ok := k.allow(key)
	if !ok {
		return
	}
	args = args[:len(args):len(args)]
	if suppressed > 0 {
		args = append(args, "more", suppressed)
	}
	if otherLines > 0 {
		args = append(args, "others", otherLines)
	}
	k.log.Log(context.Background(), level, msg, args...)
}

// allow reports whether a line for the key may be logged now. If so, suppressed and otherLines are the numbers of
// suppressed lines to report.
func (k *Keyed) allow(key string) (suppressed, otherLines int, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if e := k.entries[key]; e != nil {
		s := e.Value.(*entry)
		if now.Sub(s.lastTime) < k.interval {
			s.suppressed++
			return 0, 0, false
		}
		suppressed, s.suppressed, s.lastTime = s.suppressed, 0, now
		k.order.MoveToBack(e)
		return suppressed, 0, true
	}
	switch {
	case k.makeRoom(now):
		k.entries[key] = k.order.PushBack(&entry{key: key, lastTime: now})
	case k.sharedTime.IsZero() || now.Sub(k.sharedTime) >= k.interval:
		k.sharedTime = now
	default:
		k.otherLines++
		return 0, 0, false
	}
	otherLines, k.otherLines = k.otherLines, 0
	return 0, otherLines, true
}

// makeRoom reports whether there is room for another entry. If there are maxKeys entries, it removes the entry that was
// logged longest ago, provided that its interval has ended.
func (k *Keyed) makeRoom(now time.Time) bool {
	if len(k.entries) < k.maxKeys {
		return true
	}
	oldest := k.order.Front()
	s := oldest.Value.(*entry)
	if now.Sub(s.lastTime) < k.interval {
		return false
	}
	k.otherLines += s.suppressed
	delete(k.entries, s.key)
	k.order.Remove(oldest)
	return true
}
