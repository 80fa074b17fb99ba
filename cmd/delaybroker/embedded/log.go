package embedded

import (
	"fmt"
	"log/slog"
	"sync"
)

// serverLog forwards nats-server's log to the broker's. It logs notices at level debug.
type serverLog struct {
	log  *slog.Logger
	disk *disk

	mu  sync.Mutex // guards err
	err error      // the first fatal error
}

func (l *serverLog) Noticef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *serverLog) Debugf(string, ...any)           {}
func (l *serverLog) Tracef(string, ...any)           {}

// Warnf also detects write errors, as Errorf does.
func (l *serverLog) Warnf(format string, v ...any) {
	line := fmt.Sprintf(format, v...)
	l.log.Warn(line)
	l.disk.checkLog(line)
}

// Errorf also detects write errors, which the server reports only in its log.
func (l *serverLog) Errorf(format string, v ...any) {
	line := fmt.Sprintf(format, v...)
	l.log.Error(line)
	l.disk.checkLog(line)
}

// Fatalf stores the error with which the server gives up. The method fatal returns this error, because nats-server's
// Start returns none.
func (l *serverLog) Fatalf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = fmt.Errorf(format, v...)
	}
}

// fatal returns the first fatal error.
func (l *serverLog) fatal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
