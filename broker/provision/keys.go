package provision

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/layout"
	"delaybroker/broker/message"
)

const (
	// keysEvery is how often at most the streams are asked for their secrets because a message has a seal of an unknown
	// key, and apiTimeout how long they may take.
	keysEvery  = 10 * time.Second
	apiTimeout = 5 * time.Second
)

// Keyring holds the keys that seal and prove the messages between lanes, and finds more of them. It is safe for
// concurrent use.
type Keyring struct {
	Policy  message.Policy // which reads messages, and holds the keys
	subject string         // below which messages are sealed
	fixed   []string       // the secrets of the configuration; if there are any, the streams are not asked for more
	log     *slog.Logger
	find    func(context.Context) ([]layout.Spec, error) // finds the streams that keep secrets
	wg      sync.WaitGroup                               // questions to these streams

	mu     sync.Mutex   // guards the fields below
	marks  layout.Seals // the secret and the time that a new stream gets
	asked  time.Time    // local; when the streams were asked last
	read   time.Time    // local; when the last question began that was answered
	asking bool
	warned bool
}

// Learn takes in the secrets of the streams, and since when all messages are sealed. Secrets of the configuration
// replace those of the streams.
func (k *Keyring) Learn(found []layout.Spec) error {
	all, sealed := layout.Secrets(found)
	marks := layout.Seals{Sealed: sealed}
	switch {
	case len(k.fixed) > 0:
		all = k.fixed
	case len(all) > 0:
		marks.Secret = all[0]
	case !sealed.IsZero():
		return fmt.Errorf("%w: all messages are sealed since %s: set what the others have (DELAY_SECRET)",
			ErrSecret, sealed.Format(time.RFC3339))
	}
	k.Policy.Keys.Use(all, sealed)
	k.mu.Lock()
	k.marks = marks
	warn := !k.warned && (len(all) == 0 || sealed.IsZero())
	k.warned = true
	k.mu.Unlock()
	if warn {
		k.log.Warn("messages between lanes need no seal, so whoever can have one put there is believed; "+
			"run delaybroker provision once",
			"subject", k.subject, "keys", len(all), "sealed", sealed)
	}
	return nil
}

// Marked is a stream's specification, with the secret and the seal time that the stream is to keep.
func (k *Keyring) Marked(s layout.Spec) layout.Spec {
	k.mu.Lock()
	defer k.mu.Unlock()
	s.Seals = k.marks
	return s
}

// Wait waits for the questions to the streams.
func (k *Keyring) Wait() { k.wg.Wait() }

// ReadSince reports whether the secrets were read after the time then. If not, it makes sure that they are read soon.
func (k *Keyring) ReadSince(then, local time.Time) bool {
	if len(k.fixed) > 0 {
		return true // there are no more to read
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.read.After(then) {
		return true
	}
	if !k.asking && local.Sub(k.asked) >= keysEvery {
		k.asking, k.asked = true, local
		k.wg.Go(k.readSecrets)
	}
	return false
}

func (k *Keyring) readSecrets() {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), apiTimeout)
	defer cancel()
	found, err := k.find(ctx)
	if err == nil {
		err = k.Learn(found)
	}
	k.mu.Lock()
	k.asking = false
	if err == nil {
		k.read = began
	}
	k.mu.Unlock()
	if err != nil {
		k.log.Warn("reading the secrets of the streams anew, since a message has the seal of an unknown key; trying again",
			"err", err)
	}
}

// Wrote reports whether a stored message is a copy of one of ours with this header: a client may have used its id.
func (k *Keyring) Wrote(sent message.Header, found jsapi.Message) bool {
	header, err := found.Header()
	if err != nil || !k.Policy.Names.Internal(found.Subject) {
		return false
	}
	for _, name := range []string{message.HeaderID, message.HeaderHop} {
		if !slices.Equal(header[name], sent[name]) {
			return false
		}
	}
	return k.Policy.Keys.Proven(found.Incoming("")) == nil
}
