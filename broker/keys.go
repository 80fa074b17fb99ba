package broker

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
	// key.
	keysEvery = 10 * time.Second
	// keysRetry is how soon a message that waits for these secrets is looked at again.
	keysRetry = time.Second
	// unprovenMost and unprovenMostBytes bound the messages of a lane that wait for these secrets. Further messages count
	// as forged, and become dead letters: a client that forges seals must not fill the lane.
	unprovenMost      = 256
	unprovenMostBytes = 1 << 20
)

// keyring holds the keys that seal and prove the messages between lanes, and finds more of them. It is safe for
// concurrent use.
type keyring struct {
	policy  message.Policy // which reads messages, and holds the keys
	subject string         // below which messages are sealed
	fixed   []string       // the secrets of the configuration; if there are any, the streams are not asked for more
	log     *slog.Logger
	find    func(context.Context) ([]layout.Spec, error) // finds the streams that keep secrets
	wg      sync.WaitGroup                               // questions to these streams

	mu     sync.Mutex  // guards the fields below
	marks  layout.Spec // the secret and the time that a new stream gets
	asked  time.Time   // local; when the streams were asked last
	read   time.Time   // local; when the last question began that was answered
	asking bool
	warned bool
}

// learn takes in the secrets of the streams, and since when all messages are sealed. Secrets of the configuration
// replace those of the streams.
func (k *keyring) learn(found []layout.Spec) error {
	all, sealed := layout.Secrets(found)
	marks := layout.Spec{Sealed: sealed}
	switch {
	case len(k.fixed) > 0:
		all = k.fixed
	case len(all) > 0:
		marks.Secret = all[0]
	case !sealed.IsZero():
		return fmt.Errorf("%w: all messages are sealed since %s: set what the others have (DELAY_SECRET)",
			ErrSecret, sealed.Format(time.RFC3339))
	}
	k.policy.Keys.Use(all, sealed)
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

// marked is a stream's specification, with the secret and the seal time that the stream is to keep.
func (k *keyring) marked(s layout.Spec) layout.Spec {
	k.mu.Lock()
	defer k.mu.Unlock()
	s.Secret, s.Sealed = k.marks.Secret, k.marks.Sealed
	return s
}

// readSince reports whether the secrets were read after the time then. If not, it makes sure that they are read soon.
func (k *keyring) readSince(then, local time.Time) bool {
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

func (k *keyring) readSecrets() {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), apiTimeout)
	defer cancel()
	found, err := k.find(ctx)
	if err == nil {
		err = k.learn(found)
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

// wrote reports whether a stored message is a copy of the publish: a client may have used its id.
func (k *keyring) wrote(p *publish, found jsapi.Message) bool {
	header, err := found.Header()
	if err != nil || !k.policy.Names.Internal(found.Subject) {
		return false
	}
	for _, name := range []string{message.HeaderID, message.HeaderHop} {
		if !slices.Equal(header[name], p.header[name]) {
			return false
		}
	}
	in := message.Incoming{Subject: found.Subject, Header: message.Header(header), Data: found.Data, At: found.Time}
	return k.policy.Keys.Proven(in) == nil
}
