package schedules

import (
	"fmt"

	"delaybroker/broker/jsapi"
)

// Refusal is an error in JetStream's answer to a publish: the message was not stored.
type Refusal struct {
	Code        int    `json:"code"` // an HTTP status
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func (r *Refusal) Error() string { return fmt.Sprintf("%s (%d)", r.Description, r.ErrCode) }

// The refusals of nats-server, with its codes and texts (server/errors.json).
var (
	badPattern   = Refusal{400, 10189, "message schedules pattern is invalid"}
	badTarget    = Refusal{400, 10190, "message schedules target is invalid"}
	badTTL       = Refusal{400, 10191, "message schedules invalid per-message TTL"}
	badRollup    = Refusal{400, 10192, "message schedules invalid rollup"}
	badSource    = Refusal{400, 10203, "message schedules source is invalid"}
	badScheduler = Refusal{400, 10212, "message schedules invalid scheduler"}
	badZone      = Refusal{400, 10223, "message schedules time zone is invalid"}
	badOwnTTL    = Refusal{400, 10165, "invalid per-message TTL"}
	badExpected  = Refusal{400, 10193, "missing sequence for expected last sequence per subject"}
	noTTL        = Refusal{400, 10166, "per-message TTL is disabled"}
	otherStream  = Refusal{400, 10060, "expected stream does not match"}
	noCounters   = Refusal{400, 10168, "message counters is disabled"}
	badCounter   = Refusal{400, 10171, "message counter increment is invalid"}
	noBatches    = Refusal{400, 10174, "atomic publish is disabled"}
	sourced      = Refusal{400, 10227, "message stream source header is not allowed"}
	tooMany      = Refusal{429, jsapi.CodeTooMany, "too many requests"}
	tooLarge     = Refusal{400, jsapi.CodeTooLarge, "message size exceeds maximum allowed"}
)

// withReason returns the refusal with a reason added to its text, for a rule that the server does not have.
func (r Refusal) withReason(format string, args ...any) *Refusal {
	r.Description += ": " + fmt.Sprintf(format, args...)
	return &r
}
