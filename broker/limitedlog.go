package broker

import (
	"context"
	"log/slog"
	"time"
)

// sayEvery is how often a lane logs the same message. What happens to one message happens to thousands.
const sayEvery = 10 * time.Second

// limitedLog logs each text so often at most, with how often it was left out since.
type limitedLog struct {
	log  *slog.Logger
	said map[string]said
}

type said struct {
	at   time.Time // local
	more int       // since then
}

func newLimitedLog(log *slog.Logger) *limitedLog {
	return &limitedLog{log: log, said: make(map[string]said)}
}

func (l *limitedLog) write(local time.Time, n note) {
	s, before := l.said[n.text]
	if before && local.Sub(s.at) < sayEvery {
		s.more++
		l.said[n.text] = s
		return
	}
	args := n.args
	if s.more > 0 {
		args = append(args, "more", s.more)
	}
	l.log.Log(context.Background(), n.level, n.text, args...)
	l.said[n.text] = said{at: local}
}
