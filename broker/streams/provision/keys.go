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
	configured []string       // the configured secrets; if there is one, the keyring does not read the streams
	log        *slog.Logger
	find       func(context.Context) ([]streams.Spec, error) // finds the streams that keep secrets
	wg         sync.WaitGroup                                // running reads of these streams

	mu          sync.Mutex // guards the fields below
	secrets     []string   // all secrets read so far; the first is for the metadata of a new stream
	lastAttempt time.Time  // local time at which the last read began
	lastRead    time.Time  // local time at which the last successful read began
	reading     bool       // a read is running
}

// learn records the secrets of the streams. Configured secrets replace them. A secret that was read before stays valid,
// because pending messages may have its seals: the streams that keep it may have no leader now, or an operator may have
// edited their metadata.
func (k *Keyring) learn(found []streams.Spec) error {
	if len(k.configured) > 0 {
		return nil
	}
	if streams.SecretElsewhere(found) {
		return fmt.Errorf("%w: the streams keep none: set the secret of the other brokers (DELAY_SECRET)", ErrSecret)
	}
	secrets := streams.Secrets(found)
	if len(secrets) == 0 {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, known := range k.secrets {
		if !slices.Contains(secrets, known) {
			secrets = append(secrets, known)
		}
	}
	k.secrets = secrets
	k.Policy.Keys.Replace(secrets)
	return nil
}

// mark returns a stream's specification with the secret for its metadata.
func (k *Keyring) mark(s streams.Spec) streams.Spec {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.secrets) > 0 {
		s.Secret = k.secrets[0]
	}
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
		err = k.learn(found)
	}
	k.mu.Lock()
	k.reading = false
	if err == nil {
		k.lastRead = began
	}
	missing := len(k.secrets) - len(streams.Secrets(found))
	k.mu.Unlock()
	if err == nil && missing > 0 {
		k.log.Warn("the streams no longer show a secret with which pending messages may be sealed: a stream has no leader,"+
			" or its metadata was changed. Restore the metadata, because this instance forgets the secret when it stops",
			"missing", missing)
	}
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
	if message.ClaimOf(header) != message.ClaimOf(sent) {
		return false
	}
	return k.Policy.Keys.Doubt(found.Incoming("")) == nil
}
