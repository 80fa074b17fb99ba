package provision

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
)

// keysInterval is the minimum time between two reads of the streams' secrets because of an unknown key.
const keysInterval = 10 * time.Second

// Keyring holds the keys that seal messages between lanes and verify their seals. It reads further keys from the
// streams. It is safe for concurrent use.
type Keyring struct {
	Policy     message.Policy // parses messages, and holds the keys
	subject    string         // the filter of the subjects on which messages are sealed
	configured []string       // the configured secrets; if there is one, the keyring does not read the streams
	log        *slog.Logger
	find       func(context.Context) ([]streams.Spec, error) // finds the streams that keep secrets
	wg         sync.WaitGroup                                // running reads of these streams

	mu          sync.Mutex    // guards the fields below
	marks       streams.Seals // for the metadata of a new stream
	lastAttempt time.Time     // local time at which the last read began
	lastRead    time.Time     // local time at which the last successful read began
	reading     bool          // a read is running
	warned      bool          // Learn has run, and has warned if there was a reason
}

// Learn records the secrets of the streams, and their start of sealing. Configured secrets replace the secrets of the
// streams.
func (k *Keyring) Learn(found []streams.Spec) error {
	secrets, start := streams.Secrets(found)
	marks := streams.Seals{SealStart: start}
	switch {
	case len(k.configured) > 0:
		secrets = k.configured
	case len(secrets) > 0:
		marks.Secret = secrets[0]
	case !start.IsZero():
		return fmt.Errorf("%w: all messages are sealed since %s: set the secret of the other brokers (DELAY_SECRET)",
			ErrSecret, start.Format(time.RFC3339))
	}
	k.Policy.Keys.Replace(secrets, start)
	k.mu.Lock()
	k.marks = marks
	warn := !k.warned && (len(secrets) == 0 || start.IsZero())
	k.warned = true
	k.mu.Unlock()
	if warn {
		k.log.Warn("messages between lanes need no seal, so a client that can publish there can forge them; "+
			"run delaybroker provision once",
			"subject", k.subject, "keys", len(secrets), "sealed", start)
	}
	return nil
}

// Mark returns a stream's specification with the marks of seals.
func (k *Keyring) Mark(s streams.Spec) streams.Spec {
	k.mu.Lock()
	defer k.mu.Unlock()
	s.Seals = k.marks
	return s
}

// Wait blocks until no read of the streams is running.
func (k *Keyring) Wait() { k.wg.Wait() }

// ReadSince reports whether the secrets were read after the time earliest. If they were not, ReadSince starts a read,
// unless a read is running or began less than keysInterval ago. Both times are local times.
func (k *Keyring) ReadSince(earliest, now time.Time) bool {
	if len(k.configured) > 0 {
		return true // the configuration has all secrets
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lastRead.After(earliest) {
		return true
	}
	if !k.reading && now.Sub(k.lastAttempt) >= keysInterval {
		k.reading, k.lastAttempt = true, now
		k.wg.Go(k.readSecrets)
	}
	return false
}

func (k *Keyring) readSecrets() {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), jsapi.Timeout)
	defer cancel()
	found, err := k.find(ctx)
	if err == nil {
		err = k.Learn(found)
	}
	k.mu.Lock()
	k.reading = false
	if err == nil {
		k.lastRead = began
	}
	k.mu.Unlock()
	if err != nil {
		k.log.Warn("a message has the seal of an unknown key, and the streams' secrets cannot be read; will retry",
			"err", err)
	}
}

// Recognizes reports whether the message found is the one with the header sent: a broker wrote found, and found has the
// id and the hop of sent. Otherwise a client may have stored found under the same id.
func (k *Keyring) Recognizes(sent message.Header, found jsapi.Message) bool {
	header, err := found.Header()
	if err != nil || !k.Policy.Names.BrokerOnly(found.Subject) {
		return false
	}
	for _, name := range []string{message.HeaderID, message.HeaderHop} {
		if !slices.Equal(header[name], sent[name]) {
			return false
		}
	}
	return k.Policy.Keys.DoubtMessage(found.Incoming("")) == nil
}
