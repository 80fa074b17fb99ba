package deliver

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/acks"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
)

// Each of these texts begins the Reason of some Results. Package doctor recognises them in messages that wait for their
// next attempt.
const (
	NobodyListens   = jsapi.NobodyListens
	NotAllowed      = "NATS does not let the broker publish there"
	NoStream        = "no stream acknowledged in time"
	UnknownListener = "it is not known whether a stream listens on the subject, and none acknowledged in time"
)

// evidence is the set of facts about a target's answer to a delivery, or about its silence. Fields that do not apply
// are zero.
type evidence struct {
	mode    message.Mode
	timeout time.Duration // how long the inbox waits for an answer

	// Exactly one of answer and err is not nil, as in acks.Func.
	answer *nats.Msg
	err    error

	// at is the time of the delivery, if the verdict is Delivered: the time of the answer or, at a silence or timeout, the
	// time at which the server confirmed that it took the message, or zero if it did not. In mode request, it is the time
	// of the ignored answer at a timeout.
	at time.Time

	// For an answer.
	ack       jsapi.Ack // the answer, parsed as an acknowledgement
	isAck     bool      // the answer is an acknowledgement or a refusal; in mode core, false for an answer with data
	ownStream bool      // in modes auto and stream: the answer names one of the broker's own streams
	listener  *listener // in modes auto and stream: the stream that listens on the target; nil if none is known

	// For a silence (acks.ErrSilent), and for a timeout (acks.ErrTimeout).
	forbidden    bool         // since this delivery was sent, the server has refused a publish to the target
	unattributed bool         // the server has refused a publish, and NoteError was not called with the refusal yet
	acknowledges bool         // in mode auto: a stream recently acknowledged for the target, or a listed one would
	listenerKind listenerKind // in mode auto, if acknowledges is false: the kind of stream on the target
	unlistedAcks bool         // in mode auto: an unlisted stream recently acknowledged for the target's group

	// In mode request: the claim of the answer or, at a timeout, of the ignored answer.
	claim claim
}

// claim says whether the stream that an acknowledgement names listens on the target. A service may reply with JSON of
// its own that looks like an acknowledgement.
type claim uint8

const (
	unproven  claim = iota // not checked: the streams are not known, or there is no acknowledgement
	confirmed              // the stream listens on the target, so the answer counts as the stream's
	refuted                // the stream does not listen on the target, so the answer counts as the service's
)

func (e evidence) silent() bool   { return errors.Is(e.err, acks.ErrSilent) }
func (e evidence) timedOut() bool { return errors.Is(e.err, acks.ErrTimeout) }

// verdict is the conclusion from the evidence: a result, or the need to wait for more answers.
type verdict struct {
	pending       bool   // no result yet: the inbox must wait for more answers
	result        Result // the result, if the verdict is not pending
	ackedBy       string // the stream that has acknowledged the delivery; empty if none has
	ignoredStream string // the stream that an ignored acknowledgement with an unproven claim names
	renewList     bool   // the list of streams may be out of date
}

var undecided = verdict{pending: true}

func decided(r Result) verdict { return verdict{result: r} }

// judge decides how a delivery ended.
//
// The server reports a refused publish as an error of the connection. The report arrives before the server's answer to
// the flush that confirms the publish, but nats.go may call the error handler, and so NoteError, after that answer. So
// judge leaves a silence undecided while the connection has a refusal for which NoteError was not called yet.
func judge(e evidence) verdict {
	switch {
	case e.forbidden && (e.silent() || e.timedOut()):
		return decided(Result{Outcome: Refused,
			Reason: NotAllowed + ": grant the subject to the broker's user for deliveries"})
	case e.unattributed && e.silent():
		return undecided
	}
	switch e.mode {
	case message.ModeStream:
		return judgeStream(e)
	case message.ModeCore:
		return judgeCore(e)
	case message.ModeRequest:
		return judgeService(e)
	}
	return judgeAuto(e)
}

// judgeStream decides by an acknowledgement or refusal of the target's stream, or by a refusal of the server. It
// ignores all other answers. One of the broker's own streams may answer, because a subscriber of the target may request
// a delay with the reply subject of the delivery.
func judgeStream(e evidence) verdict {
	switch {
	case e.err != nil:
		return judgeNoAnswer(e)
	case !e.isAck, e.ownStream:
		return undecided
	case e.namesOtherStream():
		return verdict{pending: true, renewList: true} // the subject may have another stream now
	}
	return judgeAck(e.ack)
}

// namesOtherStream reports whether the answer names another stream than the stream that is known to listen on the
// target. A subscriber of the target may publish such an answer to the reply subject.
func (e evidence) namesOtherStream() bool {
	return e.listener != nil && e.ack.Stream != "" && e.ack.Stream != e.listener.name
}

// judgeCore counts silence as a delivery, and every answer except the report that nobody listens. A timeout after the
// server confirmed that it took the message is a silence, too: an earlier silence was left undecided.
func judgeCore(e evidence) verdict {
	switch {
	case e.timedOut() && !e.unattributed && !e.at.IsZero():
		return decided(Result{Outcome: Delivered})
	case e.err != nil && !e.silent():
		return judgeNoAnswer(e)
	case e.noResponder():
		return judgeAck(e.ack)
	}
	return decided(Result{Outcome: Delivered})
}

// noResponder reports whether the answer is the server's report that nobody listens.
func (e evidence) noResponder() bool { return e.answer != nil && len(e.answer.Data) == 0 && e.isAck }

// Headers of a service's error: https://github.com/nats-io/nats-architecture-and-design, ADR-32.
const (
	serviceError     = "Nats-Service-Error"
	serviceErrorCode = "Nats-Service-Error-Code"
)

// judgeService counts every reply of a service as a delivery, unless the reply reports an error. It ignores an
// acknowledgement by a stream on the target. If the streams are not known yet, it decides about an acknowledgement at
// the timeout.
func judgeService(e evidence) verdict {
	switch {
	case e.timedOut() && e.claim == refuted:
		return decided(Result{Outcome: Delivered}) // the ignored answer came from the service
	case e.timedOut():
		return decided(Result{Outcome: Refused, Err: e.err, Reason: fmt.Sprintf("no reply within %s", e.timeout)})
	case e.err != nil:
		return judgeNoAnswer(e)
	}
	code, text := e.answer.Header.Get(serviceErrorCode), e.answer.Header.Get(serviceError)
	switch {
	case code != "" || text != "":
		return decided(Result{Outcome: Refused, Reason: strings.TrimSpace("the service says " + code + " " + text)})
	case e.noResponder():
		return judgeAck(e.ack)
	case !e.isAck, e.ack.Stream == "":
		return decided(Result{Outcome: Delivered})
	case e.claim == confirmed:
		return undecided
	case e.claim == unproven:
		return verdict{pending: true, ignoredStream: e.ack.Stream}
	}
	return decided(Result{Outcome: Delivered})
}

// judgeAuto judges answers and timeouts as in mode stream. It counts silence as a delivery under the conditions in
// "Evidence" of the package documentation.
func judgeAuto(e evidence) verdict {
	switch {
	case !e.silent():
		return judgeStream(e)
	case e.acknowledges:
		return undecided
	case e.listenerKind == kindNoAck, e.listenerKind == kindNone && !e.unlistedAcks:
		return decided(Result{Outcome: Delivered})
	}
	return undecided
}

// judgeAck decides on the answer of a stream, or of the server in the stream's place.
func judgeAck(ack jsapi.Ack) verdict {
	switch ack.Outcome() {
	case jsapi.Stored, jsapi.Duplicate:
		return verdict{result: Result{Outcome: Delivered}, ackedBy: ack.Stream}
	case jsapi.Busy: // the stream may have stored an earlier copy
		return decided(Result{Outcome: Unknown, Err: errors.New(ack.Description)})
	case jsapi.LimitReached: // a limit of the account or the server, and not of the target's stream
		return decided(refusal(NoRoom, ack))
	}
	return decided(refusal(Refused, ack)) // also for StreamFull, a limit of the target's own stream
}

func refusal(o Outcome, ack jsapi.Ack) Result {
	return Result{Outcome: o, Code: ack.Code, Reason: fmt.Sprintf("%s (%d)", ack.Description, ack.Code)}
}

func judgeNoAnswer(e evidence) verdict {
	switch {
	case errors.Is(e.err, nats.ErrMaxPayload):
		return decided(Result{Outcome: Refused, Code: jsapi.CodeTooLarge, Reason: "larger than the server's max_payload"})
	case errors.Is(e.err, nats.ErrBadSubject), errors.Is(e.err, nats.ErrBadHeaderMsg):
		return decided(Result{Outcome: Refused, Reason: e.err.Error()})
	case e.timedOut():
		return decided(Result{Outcome: Unknown, Err: e.err, Reason: e.silenceReason()})
	}
	return decided(Result{Outcome: Unknown, Err: e.err})
}

func (e evidence) silenceReason() string {
	switch {
	case e.mode == message.ModeStream:
		return NoStream
	case e.mode == message.ModeCore:
	case e.acknowledges:
		return "the stream on the subject did not acknowledge in time"
	case e.listenerKind == kindAcks:
		return "a stream listens on the subject, and none acknowledged in time"
	case e.listenerKind == kindUnknown:
		return UnknownListener
	case e.unlistedAcks:
		return "a stream that the account does not list recently acknowledged a similar subject, " +
			"and none acknowledged in time"
	}
	return "the server did not confirm in time that it took the message"
}
