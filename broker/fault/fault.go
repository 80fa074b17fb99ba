package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/acks"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
)

// Cause is the name of a row of the table.
type Cause string

// The causes.
const (
	ConsumerPaused      Cause = "consumer paused"
	ConsumerDeleted     Cause = "consumer deleted"
	ConsumerRefused     Cause = "consumer refused"
	ConsumerStalled     Cause = "consumer stalled" // it has messages and waiting pulls, and sends nothing
	ConsumerSilent      Cause = "consumer silent"
	PullRefused         Cause = "pull refused"
	SubscriptionRefused Cause = "subscription refused"
	PermissionMissing   Cause = "permission missing"
	JetStreamOff        Cause = "JetStream off"
	StreamMissing       Cause = "stream missing"
	StreamSealed        Cause = "stream sealed"
	NoRoom              Cause = "no room"
	TooLarge            Cause = "too large"
	NoLeader            Cause = "no leader"
	Offline             Cause = "offline"
	NoAnswer            Cause = "no answer"
	Other               Cause = "other"
)

// Fault is why the messages of a lane wait.
type Fault struct {
	Cause  Cause  `json:"cause"`
	Detail string `json:"detail"` // the error
	Remedy string `json:"do"`
}

func (f Fault) String() string { return fmt.Sprintf("%s: %s (do: %s)", f.Cause, f.Detail, f.Remedy) }

// Of returns the fault that an error shows: the first row of the table that matches.
func Of(err error) Fault {
	for _, row := range table {
		if row.matches(err) {
			return Fault{row.cause, err.Error(), row.remedy}
		}
	}
	return Fault{Other, err.Error(), "read the log of the active instance, and check the stream and its leader"}
}

// OfReply returns the error of a reply to a publish into a stream, in the form for Of. It is nil if the stream has the
// message. It is also nil if a refusal only asks to repeat the publish.
func OfReply(stream string, r jsapi.Reply) error {
	switch r.Outcome() {
	case jsapi.Conflict, jsapi.Undecided, jsapi.Busy:
		return nil
	}
	if err := r.Failure(); err != nil {
		return fmt.Errorf("publish into %s: %w", stream, err)
	}
	return nil
}

// row is a row of the table.
type row struct {
	cause   Cause
	remedy  string
	matches func(error) bool
}

// The rows are in the order of their precision: an error may match several.
var table = []row{
	{ConsumerPaused, "resume the broker's consumers, and do not pause them: nats consumer resume; " +
		"the broker creates another", is(lane.ErrPaused)},
	{ConsumerDeleted, "do not remove the broker's consumers; the broker creates another",
		anyOf(ended("Consumer Deleted"), ended("503"))}, // 503: nobody receives the pull
	{PullRefused, "raise the limit of pull requests that the server names, or do not edit the broker's consumers; " +
		"the broker creates another", ended("Exceeded Max")},
	{SubscriptionRefused, "raise max_subscriptions of the server, or subs of the account or the user, to the number " +
		"that delaybroker provision --check prints; the broker reconnects until all are accepted",
		is(nats.ErrMaxSubscriptionsExceeded)},
	{PermissionMissing, "grant the permission to the broker's user; the broker retries", is(nats.ErrPermissionViolation)},
	{ConsumerRefused, "give the account limits for this number of replicas (a tier), or set DELAY_STREAM_REPLICAS",
		code(jsapi.CodeNoTier)},
	{ConsumerRefused, "raise max_consumers of the stream or the account, or remove other consumers",
		code(jsapi.CodeMaxConsumers)},
	{JetStreamOff, "enable JetStream for the account", code(jetstream.JSErrCodeJetStreamNotEnabledForAccount)},
	{JetStreamOff, "enable JetStream on the server, and for the account",
		anyOf(code(jetstream.JSErrCodeJetStreamNotEnabled), is(nats.ErrNoResponders))},
	{StreamMissing, "restore the stream, or restart the broker, which creates it",
		code(jetstream.JSErrCodeStreamNotFound)},
	{StreamSealed, "no edit opens a sealed stream: back it up, remove it with nats stream rm, and restart the broker, " +
		"which creates it", code(jsapi.CodeSealed)},
	{NoRoom, "raise the limit that the error names, of the stream, the account or the server, or delete messages", noRoom},
	{TooLarge, "raise max_payload of the server, or payload of the account or user; the broker notices it",
		anyOf(code(jsapi.CodeTooLarge), is(nats.ErrMaxPayload))},
	{NoLeader, "start the servers of the stream: it has no leader", anyOf(leaderless, ended("Leadership Change"),
		ended("Server Shutdown"))},
	{ConsumerStalled, "check the server of the consumer; the broker creates another", is(lane.ErrBehind)},
	{ConsumerSilent, "check the stream's leader, and the permissions to pull and to receive on the inbox; " +
		"the broker creates another", is(lane.ErrSilent)},
	{Offline, "check the connection; the broker reconnects", is(lane.ErrOffline)},
	{NoAnswer, "check the stream's leader, the servers' disks, and the permission of the request",
		anyOf(is(context.DeadlineExceeded), is(acks.ErrTimeout))},
}

func is(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }

func anyOf(rows ...func(error) bool) func(error) bool {
	return func(err error) bool {
		for _, matches := range rows {
			if matches(err) {
				return true
			}
		}
		return false
	}
}

// ended matches the end of a consumer or a pull for which the server gives this reason.
func ended(reason string) func(error) bool {
	return func(err error) bool { return errors.Is(err, lane.ErrEnded) && strings.Contains(err.Error(), reason) }
}

// code matches a refusal with this error code.
func code(want jetstream.ErrorCode) func(error) bool {
	return func(err error) bool { return codeOf(err) == want }
}

func codeOf(err error) jetstream.ErrorCode {
	if r, ok := errors.AsType[jsapi.Refusal](err); ok {
		return jetstream.ErrorCode(r.Code)
	}
	if r, ok := errors.AsType[*jetstream.APIError](err); ok {
		return r.ErrorCode
	}
	return 0
}

// noRoom matches a refusal because of a limit of a stream, the account or the server.
func noRoom(err error) bool { return jsapi.Ack{Code: int(codeOf(err))}.Outcome().Full() }

// leaderless matches a refusal that ends with an election.
func leaderless(err error) bool {
	if r, ok := errors.AsType[jsapi.Refusal](err); ok {
		return r.Code == jsapi.CodeUnavailable || r.Status == 503
	}
	r, ok := errors.AsType[*jetstream.APIError](err)
	return ok && r.Code == 503
}
