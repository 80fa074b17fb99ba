package message

import (
	"cmp"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"delaybroker/levels"
)

// Mode is the way in which the target is reached.
type Mode string

// The modes. Auto decides on evidence: see package deliver.
const (
	ModeAuto    Mode = "auto"
	ModeStream  Mode = "stream"
	ModeCore    Mode = "core"
	ModeRequest Mode = "request" // the reply of a service acknowledges
)

// Modes returns all modes.
func Modes() []Mode { return []Mode{ModeAuto, ModeStream, ModeCore, ModeRequest} }

// Incoming is a stored message as a lane reads it.
type Incoming struct {
	Stream      string
	Sequence    uint64
	At          time.Time // the server's timestamp
	Subject     string
	Header      Header
	Undecodable bool // there is a header block that does not decode
	Data        []byte
	BodyLeft    bool // the body was not read, so that the seal cannot be checked
	KeysRead    bool // the keys were read since it was stored, so an unknown key is no broker's
}

// Request is the request of a message. Parse fills it as far as the message can be understood, so that a dead letter
// carries the known part. It is flat as the headers are: most fields are one header each, and a hop takes all of them
// along, but for the few that it changes.
type Request struct {
	ID       string
	Subject  string    // where it was published; escaped, at most 256 bytes
	Accepted time.Time // when the first stream stored it
	Due      time.Time
	Target   string // empty unless it passes the policy
	Mode     Mode   // empty where the client left it open
	Expires  time.Time
	TTL      string // Nats-TTL for the target, or empty
	MsgID    string // the client's own Nats-Msg-Id
	// MaxAttempts is how often the client lets it be refused at most; zero where it left that open.
	MaxAttempts int
	RateKey     string  // it counts for a rate together with all that have this key; empty for none
	User        Header  // the client's own headers, to be passed on
	origin      *Origin // never changed; nil for the zero Origin

	Hop          int // publishes into our streams so far; 0 when a client published it
	Attempts     int // deliveries refused so far
	FirstFailure time.Time
	LastFailure  time.Time
	RetryAt      time.Time // after a refusal, or by the target's rate: not before
	Paced        string    // its turn at the target's rate, named by the broker that gave it; empty if it has none
	Released     string    // the pause for which it has waited, and that was resumed; empty if none

	// For people only.
	LastError string // why it was refused last
	Deferred  string // why it waits until RetryAt although it was not refused; empty if it was
	Allowed   int    // how often it might be refused, by the settings of then
}

// When is the time of delivery: due, or later if a delivery was refused or the target has a rate.
func (r Request) When() time.Time {
	if r.RetryAt.After(r.Due) {
		return r.RetryAt
	}
	return r.Due
}

// Refused is the request after another refused delivery, to be tried again at the given time.
func (r Request) Refused(now, again time.Time, why string) Request {
	r.Attempts++
	if r.FirstFailure.IsZero() {
		r.FirstFailure = now
	}
	r.LastFailure, r.RetryAt, r.Paced = now, again, ""
	r.LastError, r.Deferred = Reason(why), ""
	return r
}

// Defer is the request of a message that was not refused, and is to be tried again at the given time.
func (r Request) Defer(again time.Time, why string) Request {
	r.RetryAt, r.Paced, r.Deferred = again, "", Reason(why)
	return r
}

// Parse reads a stored message of a lane. On a problem the request holds the part that could be read. The entries of
// named timers, and their markers, are no messages: see package entry.
func (p Policy) Parse(in Incoming) (Request, *Problem) {
	addr := p.Names.Parse(in.Subject)
	if !addr.Internal() {
		return p.parseClient(in, addr)
	}
	m, problem := p.ParseHop(in)
	switch {
	case problem != nil:
		return m.Request, problem
	case m.Fields.Delay[HeaderTimer] != nil:
		return m.Request, Problemf(BadInternal, "it is the marker of a named timer, and is no message")
	}
	return m.Request, m.Forbidden
}

// Reading is a message that is being read.
type Reading struct {
	Request   Request
	Fields    Fields
	Forbidden *Problem // why the target in the subject is not allowed; nil if it is
}

// Begin reads what all messages have.
func (p Policy) Begin(in Incoming) (m Reading, problem *Problem) {
	addr := p.Names.Parse(in.Subject)
	m.Request = Request{
		ID:       ID{Stream: in.Stream, Sequence: in.Sequence, At: in.At}.String(),
		Subject:  EscapeSubject(in.Subject),
		Accepted: in.At,
		Due:      in.At,
	}
	if !addr.Schedule() { // its target stands in a header
		if m.Forbidden = p.CheckTarget(addr.Target); m.Forbidden == nil {
			m.Request.Target = addr.Target
		}
	}
	m.Fields.Block, problem = SplitHeader(in.Header, addr.Internal())
	m.Request.User = m.Fields.User
	if in.Undecodable {
		problem = Problemf(BadHeaders, "the headers cannot be decoded: each line is \"Name: value\" ended by CRLF")
	}
	if problem == nil {
		m.Request.MsgID = m.Fields.MsgID
	}
	return m, problem
}

// ParseHop reads what travels between our lanes. The target is not judged, but for m.Forbidden.
func (p Policy) ParseHop(in Incoming) (m Reading, problem *Problem) {
	m, problem = p.Begin(in)
	if unproven := p.Keys.Proven(in); unproven != nil {
		m.Request = p.claimed(m.Request, m.Fields.Block)
		return m, unproven
	}
	if problem != nil {
		return m, problem
	}
	m.Request, m.Fields = p.ReadState(m.Request, m.Fields.Block)
	return m, m.Fields.Problem
}

// parseClient reads the three forms of subject on which a client may publish a message. State headers are ignored.
func (p Policy) parseClient(in Incoming, addr Address) (Request, *Problem) {
	m, problem := p.Begin(in)
	switch {
	case problem != nil:
		return m.Request, problem
	case addr.Form == FormForeign, addr.Form == FormTimer:
		return m.Request, Problemf(BadTarget, "the subject %s is none of this broker's: take it off the stream %s",
			Excerpt(in.Subject), in.Stream)
	}
	if name := m.Fields.First(ofTimers...); name != "" {
		return m.Request, Problemf(BadOption,
			"%s is for named timers: only what has a key can be set again or cancelled, or recurs", name)
	}
	if problem := m.Fields.Misspelt(); problem != nil {
		return m.Request, problem
	}
	due, problem := p.due(in, addr, m.Fields.Block)
	if problem != nil {
		return m.Request, problem
	}
	target, problem := p.TargetOf(addr, m)
	return p.Finish(m, due, target, problem)
}

// Finish reads the options of a client's message, which is due at a time. Its target may have a problem: whatever the
// target, the dead letter may be resent to another one.
func (p Policy) Finish(m Reading, due time.Time, target string, problem *Problem) (Request, *Problem) {
	r, s := m.Request, m.Fields.Block
	if due.After(r.Accepted) {
		r.Due = due
	}
	r.Target = target
	r, unread := r.options(s)
	if problem == nil && unread == nil {
		r.MaxAttempts, problem = p.maxAttempts(r.Target, s)
	}
	return r, cmp.Or(problem, unread)
}

// maxAttempts is how often the client lets the message be refused: no more often than the settings let its target.
func (p Policy) maxAttempts(target string, s Block) (int, *Problem) {
	asked, problem := s.One(HeaderMaxAttempts)
	if problem != nil || asked == "" {
		return 0, problem
	}
	most := math.MaxInt32
	if p.Attempts != nil {
		most = p.Attempts(target)
	}
	n, err := strconv.Atoi(asked)
	if err != nil || n < 1 || n > most {
		return 0, Problemf(BadOption,
			"Delay-Max-Attempts %s: want a whole number from 1 to %d, which is as often as this target may refuse"+
				" (DELAY_ATTEMPTS)", Excerpt(asked), most)
	}
	return n, nil
}

// due is the time for which the subject and Delay-Until ask.
func (p Policy) due(in Incoming, addr Address, s Block) (time.Time, *Problem) {
	at := in.At
	until, problem := s.One(HeaderUntil)
	if problem != nil {
		return at, problem
	}
	asked := s.Delay[HeaderUntil] != nil // an empty header counts as a bad time, not as no header
	if s.Delay[HeaderFor] != nil || asked && addr.Form != FormLevel {
		return at, Problemf(TimeTwice,
			"the subject already says when: leave out Delay-For, and Delay-Until except on %s.<level> subjects",
			p.Names.Prefix())
	}
	if addr.Form == FormTime {
		if dotted(addr.Target) {
			return at, splitTime(addr)
		}
		due, err := ParseTime(addr.Token)
		if err != nil {
			return at, err
		}
		return due, p.CheckDelay(at, due)
	}
	wait, err := levels.ParseDuration(addr.Token)
	if addr.Form == FormIn && dotted(addr.Target) {
		return at, splitTime(addr)
	}
	if err != nil {
		return at, Problemf(BadTime, "%v", err)
	}
	due := at.Add(wait)
	if asked {
		leg := due
		if due, problem = ParseTime(until); problem != nil {
			return at, problem
		}
		if due.Before(leg) {
			return at, Problemf(UntilEarly,
				"Delay-Until %s falls before the end of the level %s: it is the first leg, so choose a shorter one or %s.<time>",
				Excerpt(until), addr.Token, p.Names.at)
		}
	}
	return due, p.CheckDelay(at, due)
}

// CheckDelay judges a time for which somebody asks, at the given time.
func (p Policy) CheckDelay(at, due time.Time) *Problem {
	if p.MaxDelay > 0 && due.Sub(at) > p.MaxDelay {
		return Problemf(TooFar, "due %s is more than %s ahead (DELAY_MAX_DELAY)", due.UTC().Format(time.RFC3339),
			levels.FormatDuration(p.MaxDelay))
	}
	return nil
}

// dotted recognises the second half of a time that a dot cut in two: "1732060800.123", "1.5s", "…00.000Z", and a
// large float as Go and others print it, "1.732060800123e+09". A target that begins like this is refused on delayin and
// delayat, or the message would go to the subject "123.orders.x".
func dotted(target string) bool {
	first, _, _ := strings.Cut(target, ".")
	digits := strings.TrimLeft(first, "0123456789")
	if digits == first {
		return false
	}
	switch digits {
	case "", "ms", "s", "m", "h", "d", "w", "Z", "z":
		return true
	}
	rest := strings.TrimLeft(digits, "eE+-") // of an exponent or a zone
	return rest != digits && strings.Trim(rest, "0123456789:") == ""
}

func splitTime(addr Address) *Problem {
	first, _, _ := strings.Cut(addr.Target, ".")
	return Problemf(BadTime,
		"a dot splits a subject, so the time reads %s and the target begins with %s: write whole seconds or milliseconds, "+
			"or use the header Delay-Until on a level subject",
		Excerpt(addr.Token), Excerpt(first))
}

// TargetOf is the target of a client's message: the one in its subject or, on the bare subject of a level, the one in
// Delay-Target, if that is switched on.
func (p Policy) TargetOf(addr Address, m Reading) (string, *Problem) {
	named, problem := m.Fields.One(HeaderTarget)
	if problem != nil {
		return "", problem
	}
	switch {
	case named == "":
		if m.Forbidden != nil {
			return "", m.Forbidden
		}
		return addr.Target, nil
	case addr.Target != "":
		return "", Problemf(BadTarget, "the target stands in the subject and in Delay-Target: leave the header out")
	case !matchAny(p.HeaderTargets, named):
		return "", Problemf(BadTarget,
			"Delay-Target %s is not among the targets that a header may name (DELAY_HEADER_TARGETS)", Excerpt(named))
	}
	if problem := p.CheckTarget(named); problem != nil {
		return "", problem
	}
	return named, nil
}

// options reads the request headers other than the time and the target.
func (r Request) options(s Block) (Request, *Problem) {
	deliver, problem := s.One(HeaderDeliver)
	if problem != nil {
		return r, problem
	}
	switch mode := Mode(strings.ToLower(deliver)); mode {
	case "", ModeAuto, ModeStream, ModeCore, ModeRequest:
		r.Mode = mode
	default:
		return r, Problemf(BadOption, "Delay-Deliver %s: want auto, stream, core or request", Excerpt(deliver))
	}
	expires, problem := s.One(HeaderExpires)
	if problem != nil {
		return r, problem
	}
	if expires != "" {
		if d, err := levels.ParseDuration(expires); err == nil {
			r.Expires = r.Due.Add(d)
		} else if r.Expires, problem = ParseTime(expires); problem != nil {
			return r, Problemf(BadOption,
				"Delay-Expires %s: want a duration after due (10m) or a time (RFC 3339 or unix milliseconds)", Excerpt(expires))
		}
		switch {
		case r.Expires.Before(r.Due):
			return r, Problemf(BadOption, "Delay-Expires %s is before the message is due: it could never be delivered",
				Excerpt(expires))
		case !writable(r.Expires):
			return r, Problemf(BadOption, "Delay-Expires %s is after the year 9999: leave it out", Excerpt(expires))
		}
	}
	ttl, problem := s.One(HeaderTTL)
	if problem != nil {
		return r, problem
	}
	if r.TTL, problem = parseTTL(ttl); problem != nil {
		return r, problem
	}
	r.RateKey, problem = s.One(HeaderRateKey)
	if problem == nil && s.Delay[HeaderRateKey] != nil && !validRateKey(r.RateKey) {
		problem = Problemf(BadOption, "Delay-Rate-Key %s: want 1 to %d bytes of printable ASCII without spaces",
			Excerpt(r.RateKey), maxRateKey)
	}
	return r, problem
}

// maxRateKey is the longest Delay-Rate-Key, in bytes.
const maxRateKey = 64

func validRateKey(key string) bool {
	return key != "" && len(key) <= maxRateKey &&
		!strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' })
}

// MaxTTL is the longest Nats-TTL at a target. It is far below the value that overflows in nats-server, which would then
// expire the message at once.
const MaxTTL = 36500 * 24 * time.Hour

// parseTTL turns a duration into a Nats-TTL for nats-server: whole seconds, at least one. It rounds up.
func parseTTL(ttl string) (string, *Problem) {
	if ttl == "" || ttl == "never" {
		return ttl, nil
	}
	d, err := levels.ParseDuration(ttl)
	if err != nil || d < time.Second || d > MaxTTL {
		return "", Problemf(BadOption, "Delay-TTL %s: want a duration from 1s to %s, or never", Excerpt(ttl),
			levels.FormatDuration(MaxTTL))
	}
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10), nil
}

// EscapeSubject makes a header value of a client's subject.
func EscapeSubject(s string) string { return bounded(url.PathEscape(s)) }

// bounded cuts an escaped subject that is too long for a header, between two escapes.
func bounded(escaped string) string {
	const most = 256
	if len(escaped) <= most {
		return escaped
	}
	cut := escaped[:most]
	if i := strings.LastIndexByte(cut, '%'); i > most-3 {
		cut = cut[:i]
	}
	return cut
}
