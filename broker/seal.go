package broker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"delaybroker/broker/layout"
	"delaybroker/broker/message"
)

// This file is where the keys come from that seal and prove what is below delaysys and delaydead.

const (
	// keysEvery is how often the streams are asked for their secrets because a message has a seal of an unknown key.
	keysEvery = 10 * time.Second
	// keysRetry is how soon a message that waits for that is looked at again.
	keysRetry = time.Second
	// strangersMost and strangersBytes bound what of a lane waits for that. Those that are more are not known, and become
	// dead letters: somebody who forges seals must not fill the lane.
	strangersMost  = 256
	strangersBytes = 1 << 20
)

// secrets is what is known of the streams' secrets.
type secrets struct {
	mu     sync.Mutex
	marks  layout.Spec // the secret and the time that a new stream gets
	asked  time.Time   // local; when they were asked for last
	read   time.Time   // local; when the last question began that was answered
	asking bool
	warned bool
}

// learn takes in what the streams say of seals. Secrets of the configuration go before theirs.
func (e *engine) learn(found []layout.Spec) error {
	all, sealed := layout.Secrets(found)
	marks := layout.Spec{Sealed: sealed}
	switch {
	case len(e.cfg.Secrets) > 0:
		all = e.cfg.Secrets
	case len(all) > 0:
		marks.Secret = all[0]
	case !sealed.IsZero():
		return fmt.Errorf("%w: all messages are sealed since %s: set what the others have (DELAY_SECRET)", ErrSecret, sealed.Format(time.RFC3339))
	}
	e.policy.Keys.Use(all, sealed)
	e.secrets.mu.Lock()
	e.secrets.marks = marks
	warn := !e.secrets.warned && (len(all) == 0 || sealed.IsZero())
	e.secrets.warned = true
	e.secrets.mu.Unlock()
	if warn {
		e.cfg.Log.Warn("messages between lanes need no seal, so whoever can have one put there is believed; run delaybroker provision once",
			"subject", e.names.SysFilter(), "keys", len(all), "sealed", sealed)
	}
	return nil
}

// marked is a stream's specification with what it is to say of seals.
func (e *engine) marked(s layout.Spec) layout.Spec {
	e.secrets.mu.Lock()
	defer e.secrets.mu.Unlock()
	s.Secret, s.Sealed = e.secrets.marks.Secret, e.secrets.marks.Sealed
	return s
}

// readSince reports whether the secrets were read since then. If not, it sees to it that they will be, soon.
func (e *engine) readSince(then, local time.Time) bool {
	if len(e.cfg.Secrets) > 0 {
		return true // there is nowhere to read more
	}
	s := &e.secrets
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read.After(then) {
		return true
	}
	if !s.asking && local.Sub(s.asked) >= keysEvery {
		s.asking, s.asked = true, local
		e.wg.Go(e.readSecrets)
	}
	return false
}

func (e *engine) readSecrets() {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), apiTimeout)
	defer cancel()
	found, _, err := e.provisioner(e.js).Find(ctx)
	if err == nil {
		err = e.learn(found)
	}
	e.secrets.mu.Lock()
	e.secrets.asking = false
	if err == nil {
		e.secrets.read = began
	}
	e.secrets.mu.Unlock()
	if err != nil {
		e.cfg.Log.Warn("reading the secrets of the streams anew, since a message has the seal of an unknown key; trying again", "err", err)
	}
}

// stranger deals with a message whose seal is by a key that is not known: an instance that provisioned when we did may have
// made it. It waits until the secrets were read since it came; if it is still a stranger then, it is nobody's.
func (w *worker) stranger(h *held, now time.Time) {
	local := time.Now()
	if h.strange.IsZero() {
		h.strange = local
		w.strangers++
		w.strangersBytes += h.size
	}
	if w.strangers <= strangersMost && w.strangersBytes <= strangersBytes && !w.readSince(h.strange, local) {
		w.wheel.Add(now.Add(keysRetry), h)
		return
	}
	w.strangers--
	w.strangersBytes -= h.size
	h.incoming.KeysRead = true
	h.request, h.problem = w.policy.Parse(h.incoming)
	h.incoming = message.Incoming{}
	w.step(h, now)
}
