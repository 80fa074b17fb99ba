// Package fault is the table of the causes for which the messages of a lane wait although they are due: each has a name
// and a remedy. The log, /readyz, doctor and the page say it in the same words.
//
// The table has causes that an operator can remove. A target that refuses, or is slow, has no row: its messages wait in
// a retry lane, and the broker itself is in order.
package fault
