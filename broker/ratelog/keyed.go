package ratelog

import (
	"container/list"
	"context"
	"log/slog"
	"sync"
	"time"
)

// A Keyed logs at most one line for each key in an interval, with the number of lines left out since the last as
// "more". Whoever publishes may choose the keys, so it remembers only so many: those it logged last. While there is
// room for no more of them, all other keys share one interval, and so one line in it. What is left out of keys that it
// does not remember is counted too, as "others" of the next line of such a key. So both the memory and the lines of an
// interval are bounded, and what is logged can be added up. It may be used by several goroutines.
type Keyed struct {
	log   *slog.Logger
	every time.Duration
	most  int // keys that are remembered, one at least

	mu     sync.Mutex               // guards what follows
	known  map[string]*list.Element // of byLast
	byLast *list.List               // *said, the one logged longest ago in front
	rest   time.Time                // when a key was logged for which there was no room
	others int                      // lines left out of keys that are not known
}

// said is when a key was logged last, and how often it was not since.
type said struct {
	key  string
	at   time.Time
	more int
}

// NewKeyed returns a Keyed that writes to log.
func NewKeyed(log *slog.Logger, every time.Duration, most int) *Keyed {
	return &Keyed{log: log, every: every, most: most, known: make(map[string]*list.Element), byLast: list.New()}
}

// Log logs msg with the attributes of args, unless it did so for the key just now.
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

// allow reports whether a key may be logged now, and what was left out of it, and of others, since that was said.
func (k *Keyed) allow(key string) (more, others int, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if e := k.known[key]; e != nil {
		s := e.Value.(*said)
		if now.Sub(s.at) < k.every {
			s.more++
			return 0, 0, false
		}
		more, s.more, s.at = s.more, 0, now
		k.byLast.MoveToBack(e)
		return more, 0, true
	}
	switch {
	case k.makeRoom(now):
		k.known[key] = k.byLast.PushBack(&said{key: key, at: now})
	case k.rest.IsZero() || now.Sub(k.rest) >= k.every:
		k.rest = now
	default:
		k.others++
		return 0, 0, false
	}
	others, k.others = k.others, 0
	return 0, others, true
}

// makeRoom forgets the key that was logged longest ago, if there are as many as may be, and its interval is over.
func (k *Keyed) makeRoom(now time.Time) bool {
	if len(k.known) < k.most {
		return true
	}
	oldest := k.byLast.Front()
	s := oldest.Value.(*said)
	if now.Sub(s.at) < k.every {
		return false
	}
	k.others += s.more
	delete(k.known, s.key)
	k.byLast.Remove(oldest)
	return true
}
