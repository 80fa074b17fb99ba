package stats

import "time"

// Mark is a moment that explains the figures around it, such as a take-over.
type Mark struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}
