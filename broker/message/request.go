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
	RateKey     string // it counts for a rate together with all that have this key; empty for none
	User        Header // the client's own headers, to be passed on
	Timer       Timer  // of a named timer that is pending
	Word        string // of a named timer: the client's own

	Series uint64  // of a timer that recurs: the generation of its first set; zero of any other
	Round  int     // likewise: its number, from 1
	Recurs *Series // likewise, while the round is pending

	Scheduler    string // the subject of the schedule that it comes of; empty for what is no schedule's
	ScheduleNext string // when that fires again, for its consumer
	Rollup       bool   // Nats-Rollup "sub" at the target

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
	r.LastError, r.Deferred = reason(why), ""
	return r
}

// Defer is the request of a message that was not refused, and is to be tried again at the given time.
func (r Request) Defer(again time.Time, why string) Request {
	r.RetryAt, r.Paced, r.Deferred = again, "", reason(why)
	return r
}

// Parse reads a stored message. On a problem the request holds the part that could be read.
func (p Policy) Parse(in Incoming) (Request, *Problem) {
	r := Request{
		ID:       ID{Stream: in.Stream, Sequence: in.Sequence, At: in.At}.String(),
		Subject:  escapeSubject(in.Subject),
		Accepted: in.At,
		Due:      in.At,
	}
	addr := p.Names.Parse(in.Subject)
	if addr.Form == FormTimer && in.Header[HeaderFirst] != nil && in.Header[HeaderFired] != nil { // a round of ours
		e := p.ParseTimer(in)
		return e.Request, e.Problem
	}
	target := addr.timerTarget(in.Header)
	targetProblem := p.CheckTarget(target)
	if targetProblem == nil && !addr.Schedule() {
		r.Target = target
	}
	internal := addr.Form == FormHop || addr.Form == FormRetry || addr.Form == FormPaused
	s, problem := splitHeader(in.Header, internal)
	r.User = s.user
	if internal {
		if unproven := p.Keys.Proven(in); unproven != nil {
			return p.claimed(r, s, targetProblem), unproven
		}
	}
	if in.Undecodable {
		return r, Problemf(BadHeaders, "the headers cannot be decoded: each line is \"Name: value\" ended by CRLF")
	}
	if problem != nil {
		return r, problem
	}
	r.MsgID = s.msgID
	if internal {
		return p.parseInternal(r, s, targetProblem)
	}
	return p.parseClient(r, in, addr, s, targetProblem)
}

// parseClient reads the three forms of subject on which a client may publish. State headers are ignored. An unknown
// Delay-* name is refused: if a misspelt Delay-Until were ignored, the message would be early.
func (p Policy) parseClient(r Request, in Incoming, addr Address, s split, targetProblem *Problem) (Request, *Problem) {
	if addr.Form == FormForeign {
		return r, Problemf(BadTarget, "the subject %s is none of this broker's: take it off the stream %s",
			excerpt(in.Subject), in.Stream)
	}
	if addr.Form == FormTimer {
		r.Timer = Timer{Key: addr.Token, Size: len(in.Data)}
		if problem := p.checkSet(in, addr); problem != nil {
			return r, problem
		}
		r.Word = reason(first(s.delay[HeaderWord]))
		if addr.Schedule() {
			r = r.ofSchedule(addr, s)
		}
	} else if name := s.ofTimers(); name != "" {
		return r, Problemf(BadOption, "%s is for named timers: only what has a key can be cancelled, or recurs", name)
	}
	if s.typo != "" {
		return r, noSuchHeader(s.typo)
	}
	due, problem := p.due(in, addr, s)
	if problem == nil && addr.Form == FormTimer && s.recurs() {
		r, due, problem = p.series(r, in, s, due)
	}
	if problem != nil {
		return r, problem
	}
	r = r.withNext()
	if addr.Form == FormTimer && !addr.Schedule() {
		r = p.ofDelivery(r, in, s)
	}
	if due.After(in.At) {
		r.Due = due
	}
	r.Target, problem = p.target(addr, s, targetProblem)
	r, unread := r.options(s) // whatever the target: its dead letter may be resent to another
	if problem == nil && unread == nil {
		r.MaxAttempts, problem = p.maxAttempts(r.Target, s)
	}
	return r, cmp.Or(problem, unread)
}

// maxAttempts is how often the client lets the message be refused: no more often than the settings let its target.
func (p Policy) maxAttempts(target string, s split) (int, *Problem) {
	asked, problem := s.one(HeaderMaxAttempts)
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
				" (DELAY_ATTEMPTS)", excerpt(asked), most)
	}
	return n, nil
}

// due is the time for which the subject and Delay-Until ask.
func (p Policy) due(in Incoming, addr Address, s split) (time.Time, *Problem) {
	at := in.At
	if addr.Form == FormTimer {
		return p.timerDue(in, s)
	}
	until, problem := s.one(HeaderUntil)
	if problem != nil {
		return at, problem
	}
	asked := s.delay[HeaderUntil] != nil // an empty header counts as a bad time, not as no header
	if s.delay[HeaderFor] != nil || asked && addr.Form != FormLevel {
		return at, Problemf(TimeTwice,
			"the subject already says when: leave out Delay-For, and Delay-Until except on %s.<level> subjects",
			p.Names.Prefix())
	}
	if addr.Form == FormTime {
		if dotted(addr.Target) {
			return at, splitTime(addr)
		}
		due, err := parseTime(addr.Token)
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
		if due, problem = parseTime(until); problem != nil {
			return at, problem
		}
		if due.Before(leg) {
			return at, Problemf(UntilEarly,
				"Delay-Until %s falls before the end of the level %s: it is the first leg, so choose a shorter one or %s.<time>",
				excerpt(until), addr.Token, p.Names.at)
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
		excerpt(addr.Token), excerpt(first))
}

// target is the target in the subject. On the bare subject of a level it is the one in Delay-Target, if that is
// switched on.
func (p Policy) target(addr Address, s split, fromSubject *Problem) (string, *Problem) {
	named, problem := s.one(HeaderTarget)
	if problem != nil {
		return "", problem
	}
	switch {
	case addr.Schedule(): // under our seal: package dialect has asked whether this target may be named
		if fromSubject != nil {
			return "", fromSubject
		}
		return named, nil
	case named == "":
		if fromSubject != nil {
			return "", fromSubject
		}
		return addr.Target, nil
	case addr.Target != "":
		return "", Problemf(BadTarget, "the target stands in the subject and in Delay-Target: leave the header out")
	case !matchAny(p.HeaderTargets, named):
		return "", Problemf(BadTarget,
			"Delay-Target %s is not among the targets that a header may name (DELAY_HEADER_TARGETS)", excerpt(named))
	}
	if problem := p.CheckTarget(named); problem != nil {
		return "", problem
	}
	return named, nil
}

// options reads the request headers other than the time and the target.
func (r Request) options(s split) (Request, *Problem) {
	deliver, problem := s.one(HeaderDeliver)
	if problem != nil {
		return r, problem
	}
	switch mode := Mode(strings.ToLower(deliver)); mode {
	case "", ModeAuto, ModeStream, ModeCore, ModeRequest:
		r.Mode = mode
	default:
		return r, Problemf(BadOption, "Delay-Deliver %s: want auto, stream, core or request", excerpt(deliver))
	}
	expires, problem := s.one(HeaderExpires)
	if problem != nil {
		return r, problem
	}
	if expires != "" {
		if d, err := levels.ParseDuration(expires); err == nil {
			r.Expires = r.Due.Add(d)
		} else if r.Recurs != nil {
			return r, Problemf(BadOption, "Delay-Expires %s of what recurs: want a duration after each round is due (10m)",
				excerpt(expires))
		} else if r.Expires, problem = parseTime(expires); problem != nil {
			return r, Problemf(BadOption,
				"Delay-Expires %s: want a duration after due (10m) or a time (RFC 3339 or unix milliseconds)", excerpt(expires))
		}
		switch {
		case r.Expires.Before(r.Due):
			return r, Problemf(BadOption, "Delay-Expires %s is before the message is due: it could never be delivered",
				excerpt(expires))
		case !writable(r.Expires):
			return r, Problemf(BadOption, "Delay-Expires %s is after the year 9999: leave it out", excerpt(expires))
		}
	}
	ttl, problem := s.one(HeaderTTL)
	if problem != nil {
		return r, problem
	}
	if r.TTL, problem = parseTTL(ttl); problem != nil {
		return r, problem
	}
	r.RateKey, problem = s.one(HeaderRateKey)
	if problem == nil && s.delay[HeaderRateKey] != nil && !validRateKey(r.RateKey) {
		problem = Problemf(BadOption, "Delay-Rate-Key %s: want 1 to %d bytes of printable ASCII without spaces",
			excerpt(r.RateKey), maxRateKey)
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
		return "", Problemf(BadOption, "Delay-TTL %s: want a duration from 1s to %s, or never", excerpt(ttl),
			levels.FormatDuration(MaxTTL))
	}
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10), nil
}

// escapeSubject makes a header value of a client's subject.
func escapeSubject(s string) string { return bounded(url.PathEscape(s)) }

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
