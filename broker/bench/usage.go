package bench

import "time"

// Usage is what a process has used so far. It is zero where the system does not tell, which only Linux does here.
type Usage struct {
	CPU    time.Duration // of all its threads
	Memory int64         // resident bytes, garbage included
	Peak   int64         // the most so far
}
