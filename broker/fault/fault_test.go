package fault

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/acks"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
)

// TestOf: each error has the cause of its row, each row has an error here, and REFERENCE.md lists the cause.
func TestOf(t *testing.T) {
	ended := func(status string) error { return fmt.Errorf("%w: %s", lane.ErrEnded, status) }
	api := func(status int, code jetstream.ErrorCode) error {
		return fmt.Errorf("ask: %w", &jetstream.APIError{Code: status, ErrorCode: code})
	}
	reply := func(code int) error { return OfReply("DELAY_1s", jsapi.Reply{Ack: jsapi.Ack{Code: code}}) }
	reference, err := os.ReadFile("../../cmd/delaybroker/REFERENCE.md")
	if err != nil {
		t.Fatal(err)
	}
	matched := make(map[string]bool)
	for _, tt := range []struct {
		err  error
		want Cause
	}{
		{lane.ErrPaused, ConsumerPaused}, {ended("409 Consumer Deleted"), ConsumerDeleted}, {ended("503"), ConsumerDeleted},
		{ended("409 Exceeded MaxWaiting"), PullRefused}, {ended("409 Exceeded MaxRequestBatch of 0"), PullRefused},
		{nats.ErrMaxSubscriptionsExceeded, SubscriptionRefused}, {nats.ErrPermissionViolation, PermissionMissing},
		{api(400, jsapi.CodeNoTier), ConsumerRefused}, {api(400, jsapi.CodeMaxConsumers), ConsumerRefused},
		{api(503, jetstream.JSErrCodeJetStreamNotEnabledForAccount), JetStreamOff}, {nats.ErrNoResponders, JetStreamOff},
		{jetstream.ErrStreamNotFound, StreamMissing}, {reply(jsapi.CodeSealed), StreamSealed},
		{reply(jsapi.CodeStoreFailed), NoRoom}, {reply(jsapi.CodeStorageFull), NoRoom}, {api(503, 10023), NoRoom},
		{reply(jsapi.CodeTooLarge), TooLarge}, {reply(jsapi.CodeUnavailable), NoLeader}, {api(503, 10008), NoLeader},
		{ended("409 Leadership Change"), NoLeader}, {lane.ErrBehind, ConsumerStalled}, {lane.ErrSilent, ConsumerSilent},
		{lane.ErrOffline, Offline}, {fmt.Errorf("ask: %w", context.DeadlineExceeded), NoAnswer}, {acks.ErrTimeout, NoAnswer},
		{lane.ErrOtherHistory, Other},
	} {
		f := Of(tt.err)
		if matched[f.Remedy] = true; f.Cause != tt.want {
			t.Errorf("%v: got %q, want %q", tt.err, f.Cause, tt.want)
		}
		if !strings.Contains(string(reference), "`"+string(f.Cause)+"`") {
			t.Errorf("REFERENCE.md does not list %q", f.Cause)
		}
	}
	for _, row := range table {
		if !matched[row.remedy] {
			t.Errorf("no error matches the row %q: %s", row.cause, row.remedy)
		}
	}
	for _, code := range []int{0, jsapi.CodeWrongLast, jsapi.CodeInFlight, jsapi.CodeTooMany} {
		if err := OfReply("DELAY_1s", jsapi.Reply{Ack: jsapi.Ack{Code: code}}); err != nil {
			t.Errorf("code %d is the fault %v, want none", code, err)
		}
	}
}
