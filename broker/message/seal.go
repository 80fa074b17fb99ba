package message

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// A seal proves that a broker wrote a message. The permission to publish on the message's subject is no proof, because
// NATS checks no permission for the subject of an answer. A client that may read a stream by direct get, or create a
// consumer, chooses the subject on which the server publishes the stored message. The client also chooses which stored
// message the server publishes, and may have stored that message itself.
//
// # What is sealed
//
// The seal covers the subject, the Delay-* headers except Delay-Seal, the client's own headers, and the body. The
// length of each part except the last precedes the part, so no two messages have the same sealed text. The seal does
// not cover the headers that SplitHeader drops (Nats-*, Nmqtt-*, Status, Description, KV-Operation): nats-server adds
// and removes some of them (Nats-Expected-*, Nats-Trace-*, Nats-Stream), and the broker does not use them below
// delaysys.
//
// # What a replay gains
//
// A seal is valid only on the subject of its message, and so only in the same lane and for the same target. A client
// that may read the lanes can have a message delivered again. The replay has the message's Delay-Id, so within the
// duplicate window of the target's stream, this stream does not store the replay. A tenant cannot replay: it may read
// only its delivered messages, which have no seal, and its own dead letters, whose seals are valid only for these
// letters.
//
// The seal is computed in the same way in all formats, so this broker can check the seal of a message in a newer
// format. The message waits for a newer broker only if its seal is valid.

// MinSecret is the minimum length of a secret, in bytes.
const MinSecret = 16

const (
	keyIDChars = 8  // length of a key's id, which is not secret
	macBytes   = 16 // length of the truncated HMAC-SHA256
)

// Keys make and verify the seals of the broker's messages. The first key makes seals, and all keys verify them. Keys
// are safe for concurrent use, and Replace may replace the keys at any time. Nil Keys, and Keys without a key, make no
// seals and accept all messages.
type Keys struct {
	ring atomic.Pointer[ring]
}

type ring struct{ keys []*key }

// key has the two keys that are derived from one secret: for the seals of messages, and for the seal of each [Note].
type key struct {
	id              string
	messages, notes sealer
}

// NewKeys returns keys derived from secrets.
func NewKeys(secrets []string) *Keys {
	k := &Keys{}
	k.Replace(secrets)
	return k
}

// Replace replaces all keys by keys derived from the given secrets.
func (k *Keys) Replace(secrets []string) {
	r := &ring{}
	for _, secret := range secrets {
		id := base32.StdEncoding.EncodeToString(derive(secret, "key id"))[:keyIDChars]
		if r.find(id) == nil {
			r.keys = append(r.keys,
				&key{id: id, messages: newSealer(derive(secret, "messages")), notes: newSealer(derive(secret, "notes"))})
		}
	}
	k.ring.Store(r)
}

func derive(secret, purpose string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("delaybroker seal 1: " + purpose))
	return mac.Sum(nil)
}

// Empty reports whether there is no key.
func (k *Keys) Empty() bool { return len(k.load().keys) == 0 }

var noKeys ring

func (k *Keys) load() *ring {
	if k != nil {
		if r := k.ring.Load(); r != nil {
			return r
		}
	}
	return &noKeys
}

func (r *ring) find(id string) *key {
	for _, k := range r.keys {
		if k.id == id {
			return k
		}
	}
	return nil
}

// SealMessage adds the seal of a message to its header. After that, only headers that the seal does not cover may
// change.
func (k *Keys) SealMessage(subject string, h Header, body []byte) {
	delete(h, HeaderSeal)
	if r := k.load(); len(r.keys) > 0 {
		Put(h, HeaderSeal, r.keys[0].messages.seal(r.keys[0].id, subject, h, body))
	}
}

// Seal returns the seal of a Note, or "" without keys. The seal of a Note is never valid for a message.
func (k *Keys) Seal(subject string, body []byte) string {
	r := k.load()
	if len(r.keys) == 0 {
		return ""
	}
	return r.keys[0].notes.seal(r.keys[0].id, subject, nil, body)
}

// sealChars is the length of "<key id>.<mac>".
const sealChars = keyIDChars + 1 + (macBytes*8+5)/6

// sealer makes seals with one key. It is safe for concurrent use.
type sealer struct{ pool *sync.Pool } // of *macState

type macState struct {
	mac    hash.Hash
	text   []byte // the sealed text before the body
	digest [sha256.Size]byte

	names []string
}

func newSealer(key []byte) sealer {
	return sealer{&sync.Pool{New: func() any { return &macState{mac: hmac.New(sha256.New, key)} }}}
}

func (s sealer) seal(id, subject string, h Header, body []byte) string {
	b := s.make(id, subject, h, body)
	return string(b[:])
}

// valid reports whether a seal is valid. It compares the seal with the expected seal, in constant time. It compares
// them before they are decoded, because several texts in base64 decode to the same MAC.
func (s sealer) valid(seal, id, subject string, h Header, body []byte) bool {
	b := s.make(id, subject, h, body)
	return subtle.ConstantTimeCompare([]byte(seal), b[:]) == 1
}

func (s sealer) make(id, subject string, h Header, body []byte) (seal [sealChars]byte) {
	copy(seal[:keyIDChars], id)
	seal[keyIDChars] = '.'
	st := s.pool.Get().(*macState)
	base64.RawURLEncoding.Encode(seal[keyIDChars+1:], st.sum(subject, h, body))
	s.pool.Put(st)
	return seal
}

// sum returns the MAC of a subject, the sealed headers in the order of their names, and a body.
func (s *macState) sum(subject string, h Header, body []byte) []byte {
	s.text = s.text[:0]
	s.string(subject)
	s.names = s.names[:0]
	for name, values := range h {
		if len(values) > 0 && sealCovers(name) {
			s.names = append(s.names, name)
		}
	}
	slices.Sort(s.names)
	s.number(len(s.names))
	for _, name := range s.names {
		values := h[name]
		s.string(name)
		s.number(len(values))
		for _, value := range values {
			s.string(wireValue(value))
		}
	}
	clear(s.names) // the pool keeps s, and must not keep the strings
	s.mac.Reset()
	s.mac.Write(s.text)
	s.mac.Write(body) // last, so it needs no length
	return s.mac.Sum(s.digest[:0])[:macBytes]
}

func (s *macState) number(n int) { s.text = binary.AppendUvarint(s.text, uint64(n)) }

func (s *macState) string(v string) {
	s.number(len(v))
	s.text = append(s.text, v...)
}

// wireValue returns a header's value after nats.go has encoded and decoded it.
func wireValue(value string) string {
	value = textproto.TrimString(value)
	if strings.IndexByte(value, '\r') >= 0 || strings.IndexByte(value, '\n') >= 0 { // faster than ContainsAny
		value = strings.NewReplacer("\r", " ", "\n", " ").Replace(value)
	}
	return value
}

// sealCovers reports whether the seal covers a header: all headers except the seal and the reserved headers.
func sealCovers(name string) bool {
	if strings.HasPrefix(name, "Delay-") { // no reserved name begins with Delay-
		return name != HeaderSeal
	}
	return canonicalNames[name] != "" || !isReserved(plainName(name))
}
