package message

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// This file has the headers with which a message travels: between lanes, at its target, and among the dead letters.

// NatsMsgID is the id under which hop n of a message is published. n rises with every publish into our streams, retries
// included: a message that passes one level twice under one id would be answered "duplicate" and be lost.
func (r Request) NatsMsgID(n int) string { return r.ID + "/" + strconv.Itoa(n) }

// DeadMsgID is the id of the message's dead letter. The hop is part of it. Otherwise, if a letter is resent and its
// message becomes a dead letter again at once, the new letter would be dropped as a copy of the old one, which is about
// to be removed.
func (r Request) DeadMsgID() string { return r.NatsMsgID(r.Hop) + "/dead" }

// HopHeader is the header of the message on its next publish into one of our lanes. Its state headers replace those of
// the last hop, so the header does not grow on the way.
func (r Request) HopHeader() Header {
	if r.Timer.Pending() {
		return r.markerHeader()
	}
	h := r.userHeader(8) // of a message that was never refused; a map of eight entries is the cheapest
	r.identify(h, r.NatsMsgID(r.Hop+1))
	set(h, HeaderFormat, strconv.Itoa(formatForEach))
	set(h, HeaderSubject, r.Subject)
	set(h, HeaderHop, strconv.Itoa(r.Hop+1))
	set(h, HeaderDeliver, string(r.Mode))
	set(h, HeaderTTL, r.TTL)
	setTime(h, HeaderExpires, r.Expires)
	setTime(h, HeaderRetryAt, r.RetryAt)
	set(h, HeaderPaced, r.Paced)
	set(h, HeaderReleased, r.Released)
	r.failures(h)
	setCount(h, HeaderMaxAttempts, r.MaxAttempts)
	set(h, HeaderRateKey, r.RateKey)
	set(h, HeaderLastError, r.LastError)
	set(h, HeaderDeferred, r.Deferred)
	setCount(h, HeaderAllowed, r.Allowed)
	r.setSchedule(h)
	if r.Rollup {
		set(h, HeaderRollup, rollupSub)
	}
	return h
}

// TargetHeader is the header of the message at its target.
func (r Request) TargetHeader() Header {
	h := r.userHeader(4)
	r.identify(h, r.ID)
	r.setSchedule(h)
	if r.Rollup {
		set(h, headerRollup, rollupSub)
	}
	set(h, headerNatsTTL, r.TTL)
	if r.Attempts > 0 {
		set(h, HeaderAttempts, strconv.Itoa(r.Attempts))
	}
	return h
}

// DeadHeader is the header of the message's dead letter.
func (r Request) DeadHeader(p *Problem) Header {
	h := r.userHeader(20)
	r.identify(h, r.DeadMsgID())
	set(h, HeaderFormat, strconv.Itoa(formatForEach))
	if r.Hop > 0 {
		set(h, HeaderHop, strconv.Itoa(r.Hop))
	}
	set(h, HeaderDeliver, string(r.Mode))
	set(h, HeaderTTL, r.TTL)
	setTime(h, HeaderExpires, r.Expires)
	r.failures(h)
	setCount(h, HeaderMaxAttempts, r.MaxAttempts)
	set(h, HeaderRateKey, r.RateKey)
	set(h, HeaderErrorCode, string(p.Code))
	set(h, HeaderError, p.Sentence)
	set(h, HeaderSubject, r.Subject)
	return h
}

func (r Request) identify(h Header, msgID string) {
	set(h, headerNatsMsgID, msgID)
	set(h, HeaderID, r.ID)
	setTime(h, HeaderDue, r.Due)
	setTime(h, HeaderAccepted, r.Accepted)
	set(h, HeaderMsgID, r.MsgID)
	if r.Series > 0 {
		set(h, HeaderSeries, strconv.FormatUint(r.Series, 10))
		setCount(h, HeaderRound, r.Round)
	}
}

func (r Request) failures(h Header) {
	if r.Attempts > 0 {
		set(h, HeaderAttempts, strconv.Itoa(r.Attempts))
		setTime(h, HeaderFirstFailure, r.FirstFailure)
		setTime(h, HeaderLastFailure, r.LastFailure)
	}
}

// parseInternal reads the result of HopHeader.
func (p Policy) parseInternal(r Request, s split, targetProblem *Problem) (Request, *Problem) {
	f := fields{split: s}
	in := Request{
		ID:           f.id(),
		Subject:      cmp.Or(bounded(f.text(HeaderSubject)), r.Subject),
		Target:       r.Target,
		Accepted:     f.moment(HeaderAccepted, required),
		Due:          f.moment(HeaderDue, required),
		Mode:         f.mode(),
		Expires:      f.moment(HeaderExpires, optional),
		TTL:          f.ttl(),
		MsgID:        f.text(HeaderMsgID),
		User:         r.User,
		Hop:          f.count(HeaderHop, required),
		MaxAttempts:  f.count(HeaderMaxAttempts, optional),
		RateKey:      f.rateKey(),
		Attempts:     f.count(HeaderAttempts, optional),
		FirstFailure: f.moment(HeaderFirstFailure, optional),
		LastFailure:  f.moment(HeaderLastFailure, optional),
		RetryAt:      f.moment(HeaderRetryAt, optional),
		Paced:        f.token(HeaderPaced),
		Released:     f.token(HeaderReleased),
		LastError:    reason(f.text(HeaderLastError)),
		Deferred:     reason(f.text(HeaderDeferred)),
		Allowed:      f.count(HeaderAllowed, optional),
		Word:         reason(f.text(HeaderWord)),
		Series:       f.sequence(HeaderSeries),
		Round:        f.count(HeaderRound, optional),
	}
	in = f.parseMarker(f.readSchedule(in))
	format, newest := f.count(HeaderFormat, required), cmp.Or(p.Format, Format)
	switch {
	case format > newest:
		return r, Problemf(NewerFormat, "format %d is newer than this broker's %d", format, newest)
	case f.problem != nil:
		return r, f.problem
	}
	if in.Timer.Pending() {
		return in, nil // the target is checked when the timer is read
	}
	return in, targetProblem
}

// claimed is a request without a proof. Its time and mode are kept in its dead letter, for an operator who knows that
// it is ours after all. The id that it claims does not count, or it could take the place of another dead letter.
func (p Policy) claimed(r Request, s split, targetProblem *Problem) Request {
	claim, problem := p.parseInternal(r, s, targetProblem)
	if problem == nil {
		r.Due, r.Expires, r.Mode, r.TTL, r.MsgID = claim.Due, claim.Expires, claim.Mode, claim.TTL, claim.MsgID
		r.MaxAttempts = claim.MaxAttempts
	}
	return r
}

const (
	required = true
	optional = false
)

// fields reads state headers and keeps the last problem.
type fields struct {
	split
	problem *Problem
}

func (f *fields) text(name string) string {
	v, problem := f.one(name)
	if problem != nil {
		f.refuse(name, problem.Sentence)
	}
	return v
}

// token is a short word of ours.
func (f *fields) token(name string) string {
	const most = 32
	v := f.text(name)
	if len(v) > most {
		f.refuse(name, excerpt(v))
	}
	return v
}

func (f *fields) rateKey() string {
	v := f.text(HeaderRateKey)
	if v != "" && !validRateKey(v) {
		f.refuse(HeaderRateKey, excerpt(v))
	}
	return v
}

func (f *fields) id() string {
	v := f.text(HeaderID)
	if _, err := ParseID(v); err != nil {
		f.refuse(HeaderID, excerpt(v))
	}
	return v
}

func (f *fields) moment(name string, needed bool) time.Time {
	v := f.text(name)
	if v == "" && !needed {
		return time.Time{}
	}
	t, problem := parseTime(v)
	if problem != nil {
		f.refuse(name, excerpt(v))
	}
	return t
}

// mode may be missing, where the client left it open.
func (f *fields) mode() Mode {
	v := Mode(f.text(HeaderDeliver))
	if v != "" && !slices.Contains(Modes(), v) {
		f.refuse(HeaderDeliver, excerpt(string(v)))
	}
	return v
}

// ttl reads the result of parseTTL, which goes to the target unchanged.
func (f *fields) ttl() string {
	v := f.text(HeaderTTL)
	if v != "never" && (len(v) > len("3153600000") || strings.Trim(v, "0123456789") != "") {
		f.refuse(HeaderTTL, excerpt(v))
	}
	return v
}

// count reads a number of at least one; an optional one may be missing.
func (f *fields) count(name string, needed bool) int {
	v := f.text(name)
	if v == "" && !needed {
		return 0
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		f.refuse(name, excerpt(v))
	}
	return n
}

// sequence reads the number of a message in a stream, which may be missing.
func (f *fields) sequence(name string) uint64 {
	v := f.text(name)
	if v == "" {
		return 0
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil || n < 1 {
		f.refuse(name, excerpt(v))
	}
	return n
}

func (f *fields) refuse(name, what string) {
	f.problem = Problemf(BadInternal,
		"%s: %s, on a subject where only the broker may publish: take that right from everybody else", name, what)
}

func set(h Header, key, value string) {
	if value != "" {
		h[key] = []string{value}
	}
}

// setCount leaves out zero.
func setCount(h Header, key string, n int) {
	if n > 0 {
		h[key] = []string{strconv.Itoa(n)}
	}
}

func setTime(h Header, key string, t time.Time) {
	if !t.IsZero() {
		h[key] = []string{t.UTC().Format(time.RFC3339Nano)}
	}
}
