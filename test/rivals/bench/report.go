package bench

import (
	"errors"
	"fmt"
	"runtime"
	"time"
)

// A Report has the plan and the results of a run. "compare --json" prints a report, and --compare reads one.
type Report struct {
	Plan    Plan      `json:"plan"`
	When    time.Time `json:"when"`
	Version string    `json:"version"`        // of this program
	Server  string    `json:"server_version"` // of nats-server
	OS      string    `json:"os"`             // operating system and architecture of this host
	CPUs    int       `json:"cpus"`           // of this host
	// Clock is the server's clock minus the local clock. ClockError is the maximum error of Clock. Both are zero if the
	// run started the server.
	Clock      time.Duration `json:"clock_ns"`
	ClockError time.Duration `json:"clock_within_ns"`
	Results    []Result      `json:"results"`
	// Ratios has the results of RatiosToBroker. Compared has the results of Compare, for the comparison with an earlier
	// run. The command sets both.
	Ratios   []Ratio `json:"beside,omitempty"`
	Compared []Ratio `json:"compared,omitempty"`
}

func newReport(plan Plan) *Report {
	return &Report{Plan: plan, When: time.Now().UTC(), OS: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU()}
}

// Err returns the errors of all tallies, or nil: see [Tally.Err].
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

	// Rates, in messages per second.
	Published float64 `json:"published_per_s,omitempty"` // from the first publish to the last answer
	Arrived   float64 `json:"arrived_per_s,omitempty"`   // from the first arrival to the last arrival
	Drained   float64 `json:"drained_per_s,omitempty"`   // from the common due time to the last arrival

	Acks      *Spread `json:"acks_ms,omitempty"`          // time from a publish to its answer
	Late      *Spread `json:"late_ms,omitempty"`          // relative to the requested due time
	Promised  *Spread `json:"late_promised_ms,omitempty"` // relative to Delay-Due
	Histogram string  `json:"late_hdr,omitempty"`         // of Late, in microseconds: see Lateness.Encode

	Timers *Phases `json:"timers,omitempty"`

	Passes float64   `json:"passes,omitempty"` // how often the broker's streams store a message, on average
	Cost   *Cost     `json:"cost,omitempty"`
	Idle   *IdleCost `json:"rest,omitempty"`
}

// A Cost is the average CPU time for one message, and the peak memory of the sidecar: the broker or the pipeline. The
// fields of a process are zero if the run did not start the process.
type Cost struct {
	Server  float64 `json:"server_us"`       // microseconds of CPU time
	Sidecar float64 `json:"sidecar_us"`      // microseconds of CPU time
	Peak    float64 `json:"sidecar_peak_mb"` // maximum resident memory of the process, in megabytes
}

// Phases has the measurements of the scenario timers. Cancelled, Requested and Moved are in timers per second.
type Phases struct {
	Cancelled float64 `json:"cancelled_per_s,omitempty"` // cancelled, other than by requests to the broker
	Requested float64 `json:"requested_per_s,omitempty"` // cancelled, by requests to the broker
	Moved     float64 `json:"moved_per_s,omitempty"`
	EvenLate  *Spread `json:"late_even_ms,omitempty"`  // of the timers with consecutive due times: see turn.evenPhase
	PlainLate *Spread `json:"late_plain_ms,omitempty"` // of the plain messages beside these timers
}

// An IdleCost is the cost while no message is due. The scenario pending measures this cost with pending messages, and
// the scenario idle with empty streams.
type IdleCost struct {
	ServerBytes  float64 `json:"server_bytes"`  // growth of the resident memory, in bytes per message
	SidecarBytes float64 `json:"sidecar_bytes"` // growth of the resident memory, in bytes per message
	ReadyMS      float64 `json:"ready_ms"`      // time from the end of the killed broker until the next broker is ready
	ServerIdle   float64 `json:"server_idle"`   // CPU time, as a share of one core
	SidecarIdle  float64 `json:"sidecar_idle"`  // CPU time, as a share of one core
}
