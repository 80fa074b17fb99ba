package deliver

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/acks"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
)

func (v verdict) String() string {
	var words []string
	r := v.result
	switch {
	case v.pending:
		words = append(words, "again")
	case r.Code > 0:
		words = append(words, fmt.Sprintf("%s %d", r.Outcome, r.Code))
	default:
		words = append(words, r.Outcome.String())
	}
	if v.ackedBy != "" {
		words = append(words, "by "+v.ackedBy)
	}
	if v.ignoredStream != "" {
		words = append(words, "ignores "+v.ignoredStream)
	}
	if v.renewList {
		words = append(words, "lists again")
	}
	if r.Reason != "" {
		words = append(words, "because "+r.Reason)
	}
	return strings.Join(words, ", ")
}

func answerEvidence(mode message.Mode, m *nats.Msg) evidence {
	e := evidence{mode: mode, answer: m}
	e.ack, e.isAck = jsapi.ParseAck(m)
	return e
}

func errorEvidence(mode message.Mode, err error) evidence {
	return evidence{mode: mode, err: err, timeout: 10 * time.Second}
}

var (
	noResponder = &nats.Msg{Header: nats.Header{"Status": {"503"}}}
	acked       = &nats.Msg{Data: []byte(`{"stream":"ORDERS","seq":7}`)}
	full        = &nats.Msg{Data: []byte(`{"stream":"ORDERS","error":{"code":503,"err_code":10077,"description":"full"}}`)}
	noRoom      = &nats.Msg{Data: []byte(`{"error":{"code":500,"err_code":10047,"description":"no disk"}}`)}
	inFlight    = &nats.Msg{Data: []byte(`{"error":{"code":409,"err_code":10158,"description":"in flight"}}`)}
	text        = &nats.Msg{Data: []byte("done")}
	empty       = &nats.Msg{}
)

func TestJudgeAnswer(t *testing.T) {
	const nobody503 = "refused 503, because nobody listens on the subject (503)"
	for name, tt := range map[string]struct {
		answer *nats.Msg
		want   map[message.Mode]string
	}{
		"an acknowledgement": {acked, map[message.Mode]string{
			message.ModeStream: "delivered, by ORDERS", message.ModeAuto: "delivered, by ORDERS", message.ModeCore: "delivered",
			message.ModeRequest: "again, ignores ORDERS",
		}},
		"a refusal": {full, map[message.Mode]string{
			message.ModeStream: "refused 10077, because full (10077)", message.ModeAuto: "refused 10077, because full (10077)",
			message.ModeCore: "delivered", message.ModeRequest: "again, ignores ORDERS",
		}},
		"no room": {noRoom, map[message.Mode]string{
			message.ModeStream: "no_room 10047, because no disk (10047)",
			message.ModeAuto:   "no_room 10047, because no disk (10047)",
			message.ModeCore:   "delivered", message.ModeRequest: "delivered",
		}},
		"in flight": {inFlight, map[message.Mode]string{
			message.ModeStream: "unknown", message.ModeAuto: "unknown",
			message.ModeCore: "delivered", message.ModeRequest: "delivered",
		}},
		"nobody there": {noResponder, map[message.Mode]string{
			message.ModeStream: nobody503, message.ModeAuto: nobody503,
			message.ModeCore: nobody503, message.ModeRequest: nobody503,
		}},
		"text": {text, map[message.Mode]string{
			message.ModeStream: "again", message.ModeAuto: "again",
			message.ModeCore: "delivered", message.ModeRequest: "delivered",
		}},
		"nothing": {empty, map[message.Mode]string{
			message.ModeStream: "again", message.ModeAuto: "again",
			message.ModeCore: "delivered", message.ModeRequest: "delivered",
		}},
	} {
		for _, mode := range message.Modes() {
			if got := judge(answerEvidence(mode, tt.answer)).String(); got != tt.want[mode] {
				t.Errorf("%s in mode %s: %s, want %s", name, mode, got, tt.want[mode])
			}
		}
	}
}

// TestJudgeClaimedAnswer: in modes stream and auto, an acknowledgement counts only if the target's stream may have sent
// it. In mode request, it counts as the service's reply only if no stream can have sent it.
func TestJudgeClaimedAnswer(t *testing.T) {
	orders, other := &listener{name: "ORDERS", acks: true}, &listener{name: "OTHER", acks: true}
	for _, tt := range []struct {
		name string
		mode message.Mode
		with func(*evidence)
		want string
	}{
		{"the target's stream", message.ModeStream, func(e *evidence) { e.listener = orders }, "delivered, by ORDERS"},
		{"another stream", message.ModeStream, func(e *evidence) { e.listener = other }, "again, lists again"},
		{"another stream", message.ModeAuto, func(e *evidence) { e.listener = other }, "again, lists again"},
		{"one of the broker's", message.ModeAuto, func(e *evidence) { e.ownStream = true }, "again"},
		{"a stream on the service", message.ModeRequest, func(e *evidence) { e.claim = confirmed }, "again"},
		{"a service like a stream", message.ModeRequest, func(e *evidence) { e.claim = refuted }, "delivered"},
	} {
		e := answerEvidence(tt.mode, acked)
		tt.with(&e)
		if got := judge(e).String(); got != tt.want {
			t.Errorf("%s in mode %s: %s, want %s", tt.name, tt.mode, got, tt.want)
		}
	}
}

// TestJudgeServiceError: a reply with an error header is a refusal, with or without data.
func TestJudgeServiceError(t *testing.T) {
	for want, header := range map[string]nats.Header{
		"refused, because the service says 409 sold out": {serviceErrorCode: {"409"}, serviceError: {"sold out"}},
		"refused, because the service says 409":          {serviceErrorCode: {"409"}},
		"refused, because the service says  sold out":    {serviceError: {"sold out"}},
	} {
		for _, data := range [][]byte{nil, []byte("done"), acked.Data} {
			if got := judge(answerEvidence(message.ModeRequest, &nats.Msg{Header: header, Data: data})).String(); got != want {
				t.Errorf("%v with %q: %s, want %s", header, data, got, want)
			}
		}
	}
}

// TestJudgeSilence judges a silence of a target, in the modes in which silence may count as a delivery.
func TestJudgeSilence(t *testing.T) {
	for _, tt := range []struct {
		name string
		mode message.Mode
		with evidence
		want string
	}{
		{"core", message.ModeCore, evidence{}, "delivered"},
		{"streams not known", message.ModeAuto, evidence{listenerKind: kindUnknown}, "again"},
		{"no stream", message.ModeAuto, evidence{listenerKind: kindNone}, "delivered"},
		{"a stream that acknowledges", message.ModeAuto, evidence{listenerKind: kindAcks}, "again"},
		{"a stream that does not", message.ModeAuto, evidence{listenerKind: kindNoAck}, "delivered"},
		{"a stream that recently acknowledged", message.ModeAuto, evidence{acknowledges: true}, "again"},
		{"a stream elsewhere", message.ModeAuto, evidence{listenerKind: kindNone, unlistedAcks: true}, "again"},
		{"a refusal not attributed yet", message.ModeAuto, evidence{listenerKind: kindNone, unattributed: true}, "again"},
		{"a refusal not attributed yet", message.ModeCore, evidence{unattributed: true}, "again"},
	} {
		tt.with.mode, tt.with.err = tt.mode, acks.ErrSilent
		if got := judge(tt.with).String(); got != tt.want {
			t.Errorf("%s in mode %s: %s, want %s", tt.name, tt.mode, got, tt.want)
		}
		tt.with.forbidden = true
		if got := judge(tt.with).String(); !strings.HasPrefix(got, "refused, because NATS does not let the broker") {
			t.Errorf("%s in mode %s, forbidden: %s, want refused", tt.name, tt.mode, got)
		}
	}
}

// TestJudgeTimeout judges a delivery that was not answered in time. The reason depends on the mode, and on the
// knowledge about the streams.
func TestJudgeTimeout(t *testing.T) {
	for _, tt := range []struct {
		name string
		mode message.Mode
		with evidence
		want string
	}{
		{"stream", message.ModeStream, evidence{}, "unknown, because no stream acknowledged in time"},
		{"core", message.ModeCore, evidence{},
			"unknown, because the server did not confirm in time that it took the message"},
		{"taken by the server", message.ModeCore, evidence{at: time.Unix(1, 0)}, "delivered"},
		{"taken, and a refusal not attributed yet", message.ModeCore, evidence{at: time.Unix(1, 0), unattributed: true},
			"unknown, because the server did not confirm in time that it took the message"},
		{"its stream is silent", message.ModeAuto, evidence{acknowledges: true},
			"unknown, because the stream on the subject did not acknowledge in time"},
		{"a stream without a leader", message.ModeAuto, evidence{listenerKind: kindAcks},
			"unknown, because a stream listens on the subject, and none acknowledged in time"},
		{"streams not known", message.ModeAuto, evidence{listenerKind: kindUnknown},
			"unknown, because it is not known whether a stream listens on the subject, and none acknowledged in time"},
		{"a stream elsewhere", message.ModeAuto, evidence{listenerKind: kindNone, unlistedAcks: true},
			"unknown, because a stream that the account does not list recently acknowledged a similar subject, " +
				"and none acknowledged in time"},
		{"no stream", message.ModeAuto, evidence{listenerKind: kindNone},
			"unknown, because the server did not confirm in time that it took the message"},
		{"a service", message.ModeRequest, evidence{}, "refused, because no reply within 10s"},
		{"behind a stream", message.ModeRequest, evidence{claim: confirmed}, "refused, because no reply within 10s"},
		{"like a stream", message.ModeRequest, evidence{claim: refuted}, "delivered"},
		{"a refusal not attributed yet", message.ModeStream, evidence{unattributed: true},
			"unknown, because no stream acknowledged in time"},
	} {
		e := tt.with
		e.mode, e.err, e.timeout = tt.mode, acks.ErrTimeout, 10*time.Second
		v := judge(e)
		if got := v.String(); got != tt.want {
			t.Errorf("%s in mode %s: %s, want %s", tt.name, tt.mode, got, tt.want)
		}
		if v.result.Outcome != Delivered && !errors.Is(v.result.Err, acks.ErrTimeout) {
			t.Errorf("%s in mode %s: the error is %v, want %v", tt.name, tt.mode, v.result.Err, acks.ErrTimeout)
		}
		e.forbidden = true
		if got := judge(e).String(); !strings.HasPrefix(got, "refused, because NATS does not let the broker") {
			t.Errorf("%s in mode %s, forbidden: %s, want refused", tt.name, tt.mode, got)
		}
	}
}

// TestJudgeFailure: a publish that would fail each time counts as refused. After any other failure, the outcome is
// unknown.
func TestJudgeFailure(t *testing.T) {
	for _, mode := range message.Modes() {
		for err, want := range map[error]string{
			nats.ErrMaxPayload:   "refused 10054, because larger than the server's max_payload",
			nats.ErrBadSubject:   "refused, because nats: invalid subject",
			nats.ErrBadHeaderMsg: "refused, because nats: message could not decode headers",
			acks.ErrDisconnected: "unknown",
			acks.ErrClosed:       "unknown",
			nats.ErrDisconnected: "unknown",
		} {
			v := judge(errorEvidence(mode, err))
			if got := v.String(); got != want {
				t.Errorf("%v in mode %s: %s, want %s", err, mode, got, want)
			}
			if v.result.Outcome == Unknown && !errors.Is(v.result.Err, err) {
				t.Errorf("%v in mode %s: the error is %v", err, mode, v.result.Err)
			}
		}
	}
}
