package bench

import (
	"errors"
	"fmt"
	"runtime"
	"time"
)

// A Report is a run and its measurements. The flag --json prints it, and --compare reads it.
type Report struct {
	Plan    Plan      `json:"plan"`
	When    time.Time `json:"when"`
	Version string    `json:"version"`        // of this program
	Server  string    `json:"server_version"` // of nats-server
	OS      string    `json:"os"`
	CPUs    int       `json:"cpus"` // of this host; the server may be on another
	// Clock is the server's clock minus the local clock, and ClockError its maximum error. Both are zero if the run
	// started the server.
	Clock      time.Duration `json:"clock_ns"`
	ClockError time.Duration `json:"clock_within_ns"`
	Results    []Result      `json:"results"`
	// Ratios compares each side with the broker: see RatiosToBroker. Compared compares the run with an earlier report:
	// see Compare.
	Ratios   []Ratio `json:"beside,omitempty"`
	Compared []Ratio `json:"compared,omitempty"`
}

func newReport(plan Plan) *Report {
	return &Report{Plan: plan, When: time.Now().UTC(), OS: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU()}
}

// Err returns the errors of all tallies: see Tally.Err.
func (r *Report) Err() error {
	var problems []error
	for _, result := range r.Results {
		if err := result.Err(); err != nil {
			problems = append(problems, fmt.Errorf("%s, round %d: %w", result.Side, result.Round, err))
		}
	}
	return errors.Join(problems...)
}

// A Result has the measurements of one turn. A value that the turn did not measure is zero or nil.
type Result struct {
	Side        Side   `json:"side"`
	Round       int    `json:"round"`
	Unsupported string `json:"cannot,omitempty"` // the reason why the side does not support the scenario
	Tally
	Dead int `json:"dead,omitempty"` // dead letters of the broker

	Published float64 `json:"published_per_s,omitempty"`
	Arrived   float64 `json:"arrived_per_s,omitempty"` // from the first arrival to the last
	Drained   float64 `json:"drained_per_s,omitempty"` // from the common due time to the last arrival
	Acks      *Spread `json:"acks_ms,omitempty"`
	Late      *Spread `json:"late_ms,omitempty"`          // after the requested time
	Promised  *Spread `json:"late_promised_ms,omitempty"` // after the promised time
	Histogram string  `json:"late_hdr,omitempty"`         // of Late, in microseconds: see Lateness.Encode

	Timers *Phases `json:"timers,omitempty"`

	Passes float64   `json:"passes,omitempty"` // number of lanes that store a message, averaged over all messages
	Cost   *Cost     `json:"cost,omitempty"`
	Idle   *IdleCost `json:"rest,omitempty"`
}

// A Cost is the cost of one message. The fields of a process are zero if the run did not start that process.
type Cost struct {
	Server  float64 `json:"server_us"`       // microseconds of CPU time
	Sidecar float64 `json:"sidecar_us"`      // likewise, of the broker or pipeline
	Peak    float64 `json:"sidecar_peak_mb"` // maximum resident memory of the broker or pipeline, for all messages
}

// Phases has the measurements of the scenario timers. Cancelled, Requested and Moved are rates: the client sends each
// message without waiting for the previous answer.
type Phases struct {
	Cancelled float64 `json:"cancelled_per_s,omitempty"` // cancelled by entries that the client publishes
	Requested float64 `json:"requested_per_s,omitempty"` // cancelled by requests to the broker
	Moved     float64 `json:"moved_per_s,omitempty"`
	Even      *Spread `json:"late_even_ms,omitempty"`  // lateness of timers due one after the other
	Plain     *Spread `json:"late_plain_ms,omitempty"` // lateness of the plain messages published with them
}

// An IdleCost is the cost while no message is due. The scenario pending measures this cost with pending messages, and
// the scenario idle with empty streams.
type IdleCost struct {
	ServerBytes  float64 `json:"server_bytes"`  // resident memory per message
	SidecarBytes float64 `json:"sidecar_bytes"` // likewise
	ReadyMS      float64 `json:"ready_ms"`      // from the start to readiness, after the broker was killed
	ServerIdle   float64 `json:"server_idle"`   // share of a core
	SidecarIdle  float64 `json:"sidecar_idle"`
}
