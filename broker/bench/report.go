package bench

import (
	"errors"
	"fmt"
	"runtime"
	"time"
)

// A Report is a run and all that it measured. It is what --json prints and --compare reads.
type Report struct {
	Plan    Plan      `json:"plan"`
	When    time.Time `json:"when"`
	Version string    `json:"version"`        // of this program
	Server  string    `json:"server_version"` // of nats-server
	OS      string    `json:"os"`
	CPUs    int       `json:"cpus"` // that are here; the server may be elsewhere
	// Clock is how far the server's clock is ahead of ours, and ClockWithin how well that is known. Both are zero where
	// the server is on this host for certain.
	Clock       time.Duration `json:"clock_ns"`
	ClockWithin time.Duration `json:"clock_within_ns"`
	Results     []Result      `json:"results"`
	// Ratios and Compared are worked out of the results: see Beside and Compare.
	Ratios   []Ratio `json:"beside,omitempty"`
	Compared []Ratio `json:"compared,omitempty"`
}

func newReport(plan Plan) *Report {
	return &Report{Plan: plan, When: time.Now().UTC(), OS: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU()}
}

// Err joins what is wrong with the turns: see Tally.Err.
func (r *Report) Err() error {
	var problems []error
	for _, result := range r.Results {
		if err := result.Err(); err != nil {
			problems = append(problems, fmt.Errorf("%s, round %d: %w", result.Side, result.Round, err))
		}
	}
	return errors.Join(problems...)
}

// A Result is what one turn of a side measured. What is not known, or has no meaning in the scenario, is zero or nil.
type Result struct {
	Side   Side   `json:"side"`
	Round  int    `json:"round"`
	Cannot string `json:"cannot,omitempty"` // why the side has no such thing
	Tally
	Dead int `json:"dead,omitempty"` // dead letters of the broker

	Published float64 `json:"published_per_s,omitempty"`
	Arrived   float64 `json:"arrived_per_s,omitempty"` // from the first arrival until the last
	Drained   float64 `json:"drained_per_s,omitempty"` // from the instant until the last arrival
	Acks      *Spread `json:"acks_ms,omitempty"`
	Late      *Spread `json:"late_ms,omitempty"`          // after it was asked for
	Promised  *Spread `json:"late_promised_ms,omitempty"` // after the earliest time that was promised
	Histogram string  `json:"late_hdr,omitempty"`         // of Late, in microseconds: see Lateness.Encode

	Timers *Phases `json:"timers,omitempty"`

	Passes float64 `json:"passes,omitempty"` // how often a message was stored before its target
	Cost   *Cost   `json:"cost,omitempty"`
	Rest   *Rest   `json:"rest,omitempty"`
}

// A Cost is for one message, of the server and of the broker or pipeline, where the process is ours.
type Cost struct {
	Server  float64 `json:"server_us"` // microseconds of CPU
	Sidecar float64 `json:"sidecar_us"`
	Peak    float64 `json:"sidecar_peak_mb"` // the most resident memory of the broker or pipeline, in all
}

// Phases are what timers are measured for besides. Rates are of a client that does not wait for one answer before it
// sends the next request.
type Phases struct {
	Cancelled float64 `json:"cancelled_per_s,omitempty"` // by entries that the client publishes
	Requested float64 `json:"requested_per_s,omitempty"` // cancelled by requests to the broker
	Moved     float64 `json:"moved_per_s,omitempty"`
	Even      *Spread `json:"late_even_ms,omitempty"`  // of timers that are due one after the other
	Plain     *Spread `json:"late_plain_ms,omitempty"` // of the plain messages beside them
}

// A Rest is what messages cost that wait, or streams in which nothing waits.
type Rest struct {
	ServerBytes  float64 `json:"server_bytes"`  // resident, for each message
	SidecarBytes float64 `json:"sidecar_bytes"` //
	ReadyMS      float64 `json:"ready_ms"`      // until a broker that was killed is ready again
	ServerIdle   float64 `json:"server_idle"`   // share of a core
	SidecarIdle  float64 `json:"sidecar_idle"`
}
