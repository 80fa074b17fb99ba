package process

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// signalWindow is the time within which several signals count as one, because timeout(1) and other programs send a
// signal to the process and again to its group.
const signalWindow = 250 * time.Millisecond

// lifetime is the time in which the parts of a broker's process run. The first signal or the first failure ends ctx,
// and then the parts stop.
type lifetime struct {
	ctx            context.Context
	fail           context.CancelCauseFunc // ends ctx with the cause of the stop
	running        sync.WaitGroup          // goroutines that end when ctx does
	signals        context.Context         // ended by a signal, or with the parent
	restoreSignals func()                  // restores the default handling of signals
	finished       chan struct{}           // closed by end, when all parts except those in running have stopped
}

// begin begins a lifetime, and catches signals.
func begin(parent context.Context, log *slog.Logger) *lifetime {
	l := &lifetime{finished: make(chan struct{})}
	l.signals, l.restoreSignals = signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	l.ctx, l.fail = context.WithCancelCause(l.signals)
	l.running.Go(func() {
		<-l.ctx.Done()
		if cause := context.Cause(l.signals); cause != nil {
			log.Info("the broker stops", "cause", cause)
		}
		l.endSignals()
	})
	return l
}

// endSignals waits for signalWindow, and restores the default handling of signals. From then on, a signal kills the
// process. If the parts stop earlier, endSignals only returns, and the method end restores the handling.
func (l *lifetime) endSignals() {
	select {
	case <-l.finished:
	case <-time.After(signalWindow):
		l.restoreSignals()
	}
}

// failureOf returns the failure that ended ctx, which is part of the lifetime. It is nil before the end of ctx, and if
// a signal or the parent context ended ctx.
func (l *lifetime) failureOf(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != context.Cause(l.signals) {
		return cause
	}
	return nil
}

// end ends ctx with err, which may be nil, and waits for the goroutines in running. The caller has stopped all other
// parts.
func (l *lifetime) end(err error) {
	l.fail(err)
	close(l.finished)
	l.running.Wait()
	l.restoreSignals()
}
