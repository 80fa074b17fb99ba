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

// The reasons of refusals begin with these words if the target does not exist. People read them, and doctor recognises
// them in messages that wait for their next attempt.
const (
	NobodyListens = jsapi.NobodyListens
	NotAllowed    = "NATS does not let the broker publish there"
	NoStream      = "no stream acknowledged in time"
)

// evidence is the facts about a target's answer, or silence, to a delivery. Fields that do not apply are zero.
type evidence struct {
	mode message.Mode
	wait time.Duration // timeout of the answer

	// Exactly one of the two is set, as in acks.Func.
	answer *nats.Msg
	err    error

	// at is when the answer came or, for a silence, when the server had the message: see Result.At. It is zero if neither
	// is known.
	at time.Time

	// For an answer.
	ack    jsapi.Ack // the answer, parsed as an acknowledgement
	isAck  bool      // the parsing succeeded; in mode core only if the answer has no data
	own    bool      // the answer names one of the broker's own streams
	holder *holder   // the stream on the target by a fresh list; nil without such a stream or list

	// For a silence, and for a timeout.
	forbidden    bool     // the server has refused this publish
	unheard      bool     // the server has refused a publish, and it is not known yet which one
	acknowledges bool     // a stream is known to acknowledge for the target
	streams      listener // the streams of the account on the target, unless acknowledges is true
	elsewhere    bool     // a stream that the account does not list recently acknowledged for such targets

	// claims says whether to believe the stream name in an acknowledgement in mode request: in this answer or, after a
	// timeout, in an earlier answer that was ignored.
	claims claim
}

// claim says whether a stream that acknowledged in mode request listens on the target. If it does not, a service has
// written JSON of its own with fields of the same names.
type claim uint8

const (
	unproven  claim = iota // the streams were not known, or no acknowledgement was ignored
	confirmed              // the stream listens on the target: the answer is its own
	refuted                // it does not: the answer is the service's
)

func (e evidence) silent() bool   { return errors.Is(e.err, acks.ErrSilent) }
func (e evidence) timedOut() bool { return errors.Is(e.err, acks.ErrTimeout) }

// verdict is the conclusion from the evidence: a result, or that it is too early for one.
type verdict struct {
	again   bool   // no result yet: the inbox must ask again
	result  Result // unless again
	acked   string // the stream that has acknowledged the delivery
	ignored string // the stream of an acknowledgement that may be the service's, as long as the streams are not known
	renew   bool   // the list of streams may be out of date
}

// undecided is the verdict that it is too early for a result.
var undecided = verdict{again: true}

func decided(r Result) verdict { return verdict{result: r} }

// judge decides how a delivery ended.
//
// The server reports a refused publish as an error of the connection. It does so before it answers the flush that
// establishes the silence, but nats.go calls its error handler later, after all earlier calls of the handler. So no
// silence counts while the connection has seen a refusal for which the handler was not called yet.
func judge(e evidence) verdict {
	switch {
	case e.forbidden && (e.silent() || e.timedOut()):
		return decided(Result{Outcome: Refused,
			Reason: NotAllowed + ": grant the subject to the user that delivers"})
	case e.unheard && e.silent():
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

// judgeStream accepts only an acknowledgement or refusal of a stream, and ignores all other answers.
func judgeStream(e evidence) verdict {
	switch {
	case e.err != nil:
		return judgeNoAnswer(e)
	case !e.isAck, e.own:
		return undecided
	case e.foreign():
		return verdict{again: true, renew: true} // or the subject has another stream now
	}
	return judgeAck(e.ack)
}

// foreign reports whether the answer names another stream than the one that is known to hold the target. A subscriber
// of the target may write anything into our inbox. It can also have the server's acknowledgements of its own delayed
// messages delivered there; those name the broker's own streams.
func (e evidence) foreign() bool {
	return e.holder != nil && e.ack.Stream != "" && e.ack.Stream != e.holder.name
}

// judgeCore accepts every answer, and silence.
func judgeCore(e evidence) verdict {
	switch {
	case e.err != nil && !e.silent():
		return judgeNoAnswer(e)
	case e.nobodyThere():
		return judgeAck(e.ack)
	}
	return decided(Result{Outcome: Delivered})
}

// nobodyThere reports whether the answer is the server's report that nobody listens.
func (e evidence) nobodyThere() bool { return e.answer != nil && len(e.answer.Data) == 0 && e.isAck }

// Headers of a service's error: https://github.com/nats-io/nats-architecture-and-design, ADR-32.
const (
	serviceError     = "Nats-Service-Error"
	serviceErrorCode = "Nats-Service-Error-Code"
)

// judgeService accepts every reply of a service, unless the reply reports an error. A stream on the subject
// acknowledges for itself and not for the service. So its answer is ignored, also while the streams are not known.
func judgeService(e evidence) verdict {
	switch {
	case e.timedOut() && e.claims == refuted:
		return decided(Result{Outcome: Delivered}) // the answer that was ignored was the service's
	case e.timedOut():
		return decided(Result{Outcome: Refused, Err: e.err, Reason: fmt.Sprintf("no reply within %s", e.wait)})
	case e.err != nil:
		return judgeNoAnswer(e)
	}
	code, text := e.answer.Header.Get(serviceErrorCode), e.answer.Header.Get(serviceError)
	switch {
	case code != "" || text != "":
		return decided(Result{Outcome: Refused, Reason: strings.TrimSpace("the service says " + code + " " + text)})
	case e.nobodyThere():
		return judgeAck(e.ack)
	case !e.isAck, e.ack.Stream == "":
		return decided(Result{Outcome: Delivered})
	case e.claims == confirmed:
		return undecided
	case e.claims == unproven:
		return verdict{again: true, ignored: e.ack.Stream}
	}
	return decided(Result{Outcome: Delivered})
}

// judgeAuto accepts an acknowledgement, and silence where it is known that no stream listens, or only one that does not
// acknowledge.
func judgeAuto(e evidence) verdict {
	switch {
	case !e.silent():
		return judgeStream(e)
	case e.acknowledges:
		return undecided
	case e.streams == mute, e.streams == nobody && !e.elsewhere:
		return decided(Result{Outcome: Delivered})
	}
	return undecided
}

// judgeAck decides on the answer of a stream, or of the server in its place.
func judgeAck(ack jsapi.Ack) verdict {
	switch ack.Outcome() {
	case jsapi.Stored, jsapi.Duplicate:
		return verdict{result: Result{Outcome: Delivered}, acked: ack.Stream}
	case jsapi.Busy: // no refusal
		return decided(Result{Outcome: Unknown, Err: errors.New(ack.Description)})
	case jsapi.LimitReached: // neither the message nor the target's stream is the reason
		return decided(refusal(NoRoom, ack))
	}
	return decided(refusal(Refused, ack))
}

func refusal(o Outcome, ack jsapi.Ack) Result {
	return Result{Outcome: o, Code: ack.Code, Reason: fmt.Sprintf("%s (%d)", ack.Description, ack.Code)}
}

// judgeNoAnswer decides on a publish that failed, or that was not answered in time.
func judgeNoAnswer(e evidence) verdict {
	switch {
	case errors.Is(e.err, nats.ErrMaxPayload):
		return decided(Result{Outcome: Refused, Code: jsapi.CodeTooLarge, Reason: "larger than the server's max_payload"})
	case errors.Is(e.err, nats.ErrBadSubject), errors.Is(e.err, nats.ErrBadHeaderMsg):
		return decided(Result{Outcome: Refused, Reason: e.err.Error()})
	case e.timedOut():
		return decided(Result{Outcome: Unknown, Err: e.err, Reason: e.whySilent()})
	}
	return decided(Result{Outcome: Unknown, Err: e.err})
}

// whySilent returns the reason why the silence of a target does not count as a delivery.
func (e evidence) whySilent() string {
	switch {
	case e.mode == message.ModeStream:
		return NoStream
	case e.mode == message.ModeCore:
	case e.acknowledges:
		return "the stream on the subject did not acknowledge in time"
	case e.streams == answerer:
		return "a stream listens on the subject, and none acknowledged in time"
	case e.streams == notKnown:
		return "no stream acknowledged in time, and it is not known whether one listens on the subject"
	case e.elsewhere:
		return "no stream acknowledged in time, but one that the account does not list did so lately for a like subject"
	}
	return "the server did not confirm in time that it took the message"
}
